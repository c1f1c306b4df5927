// The picture of the machine.
"use strict";
const assert = require("node:assert/strict");
const { answers, answered, say } = require("./browser.cjs");
const { sleep } = require("./mock_server.cjs");
const { changes, colorsOf, look, pixelsOf } = require("./picture.cjs");

module.exports = (shared) => {
  const { check, mock } = shared;

  check("the timeline draws a colour for each device, and moves", { mocked: true }, async (page) => {
    await page.locator(".tier").nth(2).waitFor();
    await sleep(1500);
    const { drawn, all, many } = await look(page);
    assert.ok(drawn > all * 0.1 && drawn < all * 0.9, `${drawn} of ${all} pixels are drawn`);
    const colors = await page.locator(".layer-block").evaluateAll((blocks) =>
      blocks.map((block) => getComputedStyle(block).backgroundColor.replace(/rgb\(|\)| /g, "")));
    assert.equal(new Set(colors).size, 3);
    for (const color of colors) assert.ok(many.includes(color), `no block of ${color} among ${many}`);
    const moved = await changes(page, 1000);
    assert.ok(moved >= 8, `it moved ${moved} times in a second`);
    await shared.browser.keepPicture(page, "desktop-light");
  });

  check("something is drawn, with any server", {}, async (page) => {
    await page.locator(".tier").first().waitFor({ timeout: 60_000 });
    const [ground, ...others] = await colorsOf(page, page.locator("#machine"));
    assert.ok(ground < 0.97 && others.length > 20, `${ground} of it is one colour of ${others.length + 1}`);
    const [most] = await colorsOf(page, page.locator("#layers"));
    assert.ok(most > 0.2);
    assert.match(await page.locator("#layers").getAttribute("aria-label"), /layers? \d/);
  });

  check("an answer is seen on the timeline, with any server", {}, async (page) => {
    await page.locator("#model:not(:empty)").waitFor({ timeout: 60_000 });
    await page.locator(".tier").first().waitFor();
    await say(page, "Once upon a time");
    await answers(page).filter({ hasText: /\w/ }).waitFor({ timeout: 60_000 });
    const color = await page.locator(".layer-block").first().evaluate((block) => getComputedStyle(block).backgroundColor);
    let found = 0;
    for (const end = Date.now() + 10_000; found < 30 && Date.now() < end; await sleep(100)) {
      found = await pixelsOf(page, color);
    }
    await page.keyboard.press("Escape");
    await answered(page);
    assert.ok(found >= 30, `${found} pixels of ${color}`);
  });

  check("it stands still when paused, and where motion is not wanted", { mocked: true }, async (page) => {
    await page.locator(".tier").first().waitFor();
    await sleep(1000);
    await page.getByRole("button", { name: "Pause" }).click();
    assert.equal(await changes(page, 1200), 0);
    await page.getByRole("button", { name: "Go on" }).click();
    assert.ok((await changes(page, 500)) > 2);
    await page.emulateMedia({ reducedMotion: "reduce" });
    await sleep(100);
    const moved = await changes(page, 2000);
    assert.ok(moved >= 2 && moved <= 5, `${moved} times in two seconds of four polls`);
  });

  check("ratios are those of the last seconds", { mocked: true }, async (page) => {
    await page.locator(".tier").nth(2).waitFor();
    await sleep(2500);
    // 22, 31 and 40 of 60 ms at work; 4 tokens in each round.
    const shares = await page.locator(".shares").allTextContents();
    const parsed = shares.map((text) => /busy (\d+) %, bubbles (\d+) %/.exec(text).slice(1).map(Number));
    [[37, 63], [52, 48], [67, 33]].forEach(([busy, bubbles], i) => {
      assert.ok(Math.abs(parsed[i][0] - busy) <= 4 && Math.abs(parsed[i][1] - bubbles) <= 4, shares[i]);
    });
    const speed = Number(await page.locator('[data-number="speed"] .number-value').textContent());
    assert.ok(speed > 60 && speed < 73, `${speed} tokens/s`);
    assert.equal(await page.locator('[data-number="running"]').textContent(), "3 / 8");
    assert.equal(await page.locator('[data-number="queued"]').textContent(), "2");
    assert.equal(await page.locator('[data-number="kv"]').textContent(), "25 %, 12 shared");
  });

  check("the table says what the picture shows", { mocked: true }, async (page) => {
    await page.getByText("The same as a table").click();
    const row = page.getByRole("row", { name: /^igpu/ });
    await row.getByRole("cell", { name: "layers 4–11" }).waitFor();
    assert.equal(await page.getByRole("row").count(), 4);
    assert.equal(await page.getByRole("columnheader", { name: "Busy" }).count(), 1);
  });

  check("a lost tier is shown, with its reason", { mocked: true }, async (page) => {
    await page.locator(".tier").nth(2).waitFor();
    mock.machine.lost = 2;
    await page.locator("#state").getByText("degraded").waitFor();
    await page.locator('.tier[data-state="lost"]').getByText("lost: device lost in pass 17").waitFor();
    await page.locator("#faults").getByText(/dgpu, (just now|.* ago): device lost in pass 17/).waitFor();
    await page.locator('.layer-block[data-state="lost"]').waitFor();
    assert.match(await page.locator("#announcer").textContent(), /degraded. Without dgpu/);
    await sleep(1200);  // its mark is on the timeline by now
    const bad = await page.evaluate(() => getComputedStyle(document.querySelector(".tier-state")).color);
    const marks = await pixelsOf(page, bad);
    assert.ok(marks > 80, `${marks} pixels of a mark`);
    await shared.browser.keepPicture(page, "lost");
  });

  check("loading is shown with how far it is", { mocked: true, prepare: (m) => {
    m.state = "loading";
    m.machine.progress = 0.4;
  } }, async (page) => {
    await page.getByText("The model is being loaded: 40 %.").first().waitFor();
    assert.equal(await page.getByRole("progressbar").getAttribute("value"), "0.4");
    mock.state = "ok";
    await page.locator(".tier").nth(2).waitFor();
    assert.ok(await page.locator("#loading").isHidden());
  });

  check("a server that is gone is said to be", { mocked: true, expected: /Failed to load|net::ERR/ }, async (page) => {
    await page.locator(".tier").first().waitFor();
    await page.route("**/v1/status", (route) => route.abort("connectionrefused"));
    await page.locator("#state").getByText("no answer").waitFor();
    await page.unroute("**/v1/status");
    await page.locator("#state").getByText("ok", { exact: true }).waitFor();
  });

  check("nobody is asked while nobody looks", { mocked: true }, async (page) => {
    await page.locator(".tier").first().waitFor();
    const turn = (to) => page.evaluate((state) => {
      Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, to);
    await turn("hidden");
    await sleep(700);
    const before = mock.statusCalls;
    await sleep(1500);
    assert.equal(mock.statusCalls, before);
    await turn("visible");
    await sleep(1500);
    const asked = mock.statusCalls - before;
    assert.ok(asked >= 2 && asked <= 5, `${asked} times in 1.5 s`);
  });
};
