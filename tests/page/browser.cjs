// Debian's chromium with the page in it, and what must hold on every page of every test.
"use strict";
const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { chromium } = require("playwright-core");

function findChromium() {
  if (process.env.TRINE_CHROMIUM) return process.env.TRINE_CHROMIUM;
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // The next one.
    }
  }
  return "";
}

class Browser {
  static async start(executablePath, base) {
    const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const browser = new Browser();
    browser.base = base;
    browser.chromium = await chromium.launch({ executablePath, args: [...args, "--disable-gpu"] });
    return browser;
  }

  // Opens the page, runs `use(page)`, then looks at what went on: no request to anywhere else, no
  // error in the console. `expected`: a pattern of console errors that belong to the test. `key`,
  // `settings`: as if they had been given before.
  async withPage(use, { expected, phone = false, base = this.base, key, settings, ...options } = {}) {
    const size = phone ? { width: 360, height: 740 } : { width: 1280, height: 800 };
    const context = await this.chromium.newContext({
      viewport: size, isMobile: phone, hasTouch: phone, ...options });
    await context.addInitScript(([api_key, kept]) => {
      if (api_key) sessionStorage.setItem("trine.key", api_key);
      if (kept && !localStorage.getItem("trine.settings")) localStorage.setItem("trine.settings", JSON.stringify(kept));
    }, [key, settings]);
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    const errors = [];
    const strangers = [];
    page.on("pageerror", (error) => errors.push(String(error)));
    page.on("console", (message) => {
      if (message.type() !== "error") return;
      if (!expected?.test(message.text())) errors.push(message.text());
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(base)) strangers.push(request.url());
    });
    try {
      await page.goto(base);
      await use(page, context);
      assert.deepEqual(errors, [], "the console has errors");
      assert.deepEqual(strangers, [], "requests left the origin");
    } catch (error) {
      await this.keepPicture(page, "failed");
      throw error;
    } finally {
      await context.close();
    }
  }

  // Into the folder that TRINE_PAGE_PICTURES names, if any.
  async keepPicture(page, name) {
    const folder = process.env.TRINE_PAGE_PICTURES;
    if (!folder) return;
    fs.mkdirSync(folder, { recursive: true });
    await page.screenshot({ path: path.join(folder, `${name}.png`) }).catch(() => {});
  }

  close() {
    return this.chromium.close();
  }
}

const answers = (page) => page.locator(".message.assistant .body");
const box = (page) => page.getByRole("textbox", { name: /^(Message|Text to continue)$/ });

async function say(page, text) {
  await box(page).fill(text);
  await page.keyboard.press("Enter");
}

// The answer is complete when Send is there again.
async function answered(page) {
  await page.locator("#stop").waitFor({ state: "hidden", timeout: 60_000 });
}

module.exports = { Browser, findChromium, answers, answered, box, say };
