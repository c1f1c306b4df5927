// Usable with a keyboard, with a screen reader, on a phone, in both themes.
"use strict";
const assert = require("node:assert/strict");
const { badIds, focused, nameless, pale, tooWide } = require("./accessible.cjs");
const { answers, answered, box, say } = require("./browser.cjs");
const { sleep } = require("./mock_server.cjs");

const sample = { pieces: ["A `word`, **bold** and a [link](https://example.org).\n\n```\ncode ".concat("x".repeat(300), "\n```\n"),
                          "y".repeat(200)] };

module.exports = (shared) => {
  const { check, mock } = shared;

  for (const colorScheme of ["light", "dark"]) {
    check(`names, references and contrast, ${colorScheme}`, { mocked: true, colorScheme, expected: /Failed to load/ },
      async (page, context) => {
        mock.plans.push(sample, { status: 500, error: { message: "It broke.", type: "server_error" } });
        mock.machine.lost = 1;
        await say(page, "Hello");
        await answered(page);
        await say(page, "Again");
        await page.locator(".failure-text").waitFor();
        await page.locator('.tier[data-state="lost"]').waitFor();
        await page.getByText("The same as a table").click();
        assert.deepEqual(await nameless(page, context), []);
        assert.deepEqual(await badIds(page), []);
        assert.deepEqual(await pale(page), []);
        await shared.browser.keepPicture(page, `failure-${colorScheme}`);
        await page.getByRole("button", { name: "Settings" }).click();
        assert.deepEqual(await nameless(page, context), []);
        assert.deepEqual(await pale(page), []);
        await shared.browser.keepPicture(page, `settings-${colorScheme}`);
        const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
        assert.equal(/rgb\(2[45]/.test(ground), colorScheme === "light", ground);
      });
  }

  for (const phone of [false, true]) {
    check(`names, contrast and width with any server, ${phone ? "phone" : "desktop"}`, { phone }, async (page, context) => {
      await page.locator("#model:not(:empty)").waitFor({ timeout: 60_000 });
      await box(page).fill("Once upon a time");
      await page.locator("#send").click();
      await answers(page).filter({ hasText: /\w/ }).waitFor({ timeout: 60_000 });
      await page.keyboard.press("Escape");
      await answered(page);
      if (phone) await page.getByRole("button", { name: "Machine" }).click();
      await page.locator(".tier").first().waitFor();
      assert.deepEqual(await nameless(page, context), []);
      assert.deepEqual(await pale(page), []);
      assert.ok((await tooWide(page)) <= 0);
      await shared.browser.keepPicture(page, `any-${phone ? "phone" : "desktop"}`);
    });
  }

  check("all of it with a keyboard", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: Array(500).fill("on and "), delayMs: 20 });
    assert.equal(await focused(page), "prompt", "it begins in the box");
    await page.keyboard.type("First line");
    await page.keyboard.press("Shift+Enter");
    await page.keyboard.type("second");
    await page.keyboard.press("Enter");
    await answers(page).getByText("on and").waitFor();
    assert.equal(mock.asked[0].body.messages[0].content, "First line\nsecond");
    await page.keyboard.press("Tab");
    assert.equal(await focused(page), "stop");
    await page.keyboard.press("Enter");
    await answered(page);
    assert.equal(await focused(page), "prompt", "focus is not lost with the button");
    await page.keyboard.press("Shift+Tab");
    assert.equal(await focused(page), "Regenerate");
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.equal(outline, "solid", "focus is seen");
    await page.keyboard.press("Enter");
    await answered(page);
    assert.equal(mock.asked.length, 2);
    await page.locator("#open-settings").focus();
    await page.keyboard.press("Enter");
    for (let i = 0; i < 30; i += 1) {
      const inside = await page.evaluate(() =>
        document.activeElement === document.body || document.activeElement.closest("#settings") !== null);
      assert.ok(inside, "focus left the dialog");
      await page.keyboard.press("Tab");
    }
    await page.keyboard.press("Escape");
    assert.equal(await focused(page), "open-settings");
  });

  check("every control is reached by Tab, from the top", { mocked: true }, async (page) => {
    await say(page, "Hello");
    await answered(page);
    await page.evaluate(() => document.activeElement.blur());
    await page.locator(".skip").focus();
    const seen = new Set();
    for (let i = 0; i < 40; i += 1) {
      seen.add(await focused(page));
      await page.keyboard.press("Tab");
    }
    for (const one of ["new-chat", "open-settings", "log", "Edit", "Regenerate", "prompt", "send", "span", "pause",
                       "The same as a table"]) {
      assert.ok(seen.has(one), `${one} is not reached: ${[...seen]}`);
    }
  });

  check("an answer is read out when it is complete", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: ["All ", "is ", "said."], delayMs: 100 });
    await say(page, "Hello");
    await answered(page);
    assert.deepEqual(await page.getByRole("status").locator("p").allTextContents(), ["The model answers.", "All is said."]);
    assert.equal(await page.locator(".assistant").getAttribute("aria-busy"), null);
  });

  check("fits a phone", { mocked: true, phone: true, colorScheme: "dark" }, async (page) => {
    mock.plans.push(sample, { pieces: ["Short, and to the point: ", "**yes**."] });
    await box(page).fill("Hello ".repeat(30) + "z".repeat(120));
    await page.getByRole("button", { name: "Send" }).click();
    await answered(page);
    assert.ok((await tooWide(page)) <= 0, "the chat is too wide");
    await box(page).fill("Is it?");
    await page.getByRole("button", { name: "Send" }).click();
    await answered(page);
    await shared.browser.keepPicture(page, "phone-chat");
    mock.machine.lost = 1;
    await page.getByRole("button", { name: "Machine" }).click();
    await page.locator("#timeline").waitFor();
    await page.locator('.tier[data-state="lost"]').waitFor();
    assert.ok(await page.locator("#chat").isHidden());
    await page.getByText("The same as a table").click();
    assert.ok((await tooWide(page)) <= 0, "the machine is too wide");
    await page.getByText("The same as a table").click();
    await page.locator("#machine").evaluate((node) => (node.scrollTop = 0));
    await sleep(1000);
    await shared.browser.keepPicture(page, "phone-machine");
    await page.getByRole("button", { name: "Settings" }).click();
    assert.ok((await tooWide(page)) <= 0, "settings are too wide");
    const small = await page.locator("button:visible, select:visible").evaluateAll((nodes) =>
      nodes.filter((node) => node.getBoundingClientRect().height < 24).map((node) => node.textContent));
    assert.deepEqual(small, [], "too small for a finger");
    await shared.browser.keepPicture(page, "phone-settings");
  });
};
