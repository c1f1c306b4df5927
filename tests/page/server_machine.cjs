// The picture of a real machine at work.
"use strict";
const assert = require("node:assert/strict");
const { sleep, until } = require("../clients/trine_server.cjs");
const { answers, answered, box, say } = require("./browser.cjs");
const { changes, pixelsOf } = require("./picture.cjs");

const devices = ["cpu", "several0", "several1"];
const number = (page, name) => page.locator(`[data-number="${name}"] .number-value`).textContent();

// Shares that are shown, by tier: [busy, bubbles] in percent.
async function shares(page) {
  const texts = await page.locator(".tier .shares").allTextContents();
  return texts.map((text) => /^busy (\d+) %, bubbles (\d+) %$/.exec(text).slice(1).map(Number));
}

// The same from the server's own counters, over so long.
async function measure(server, ms) {
  const before = await server.json("/v1/status");
  await sleep(ms);
  const after = await server.json("/v1/status");
  const span = (after.timeline.now_us - before.timeline.now_us) / 1000;
  return after.tiers.map((tier, i) => (100 * (tier.busy_ms - before.tiers[i].busy_ms)) / span);
}

module.exports = (shared) => {
  const { check } = shared;

  check("server: tiers, shares and a timeline that moves while there is an answer",
    { server: "slow", settings: { temperature: 0, max_tokens: 900 } }, async (page, context, server) => {
      await page.locator("#model:not(:empty)").waitFor();
      await page.locator(".tier").nth(2).waitFor();
      assert.deepEqual(await page.locator(".layer-block").allTextContents(), ["cpu0–11", "several012–21", "several122–31"]);
      assert.equal(await page.locator("#layers").getAttribute("aria-label"),
                   "cpu: layers 0–11, embedding; several0: layers 12–21; several1: layers 22–31, head");
      assert.deepEqual(await page.locator(".tier .device").allTextContents(), devices);
      assert.equal(await page.locator("#state").textContent(), "ok");
      assert.ok(await page.locator("#faults-section").isHidden());
      assert.equal(await number(page, "running"), "0 / 1");
      assert.equal(await changes(page, 700), 0, "nothing happens, and it moves");
      const flat = await page.locator(".sparkline polyline").last().getAttribute("points");

      await say(page, "Once upon a time");
      await answers(page).filter({ hasText: /\w/ }).waitFor();
      const begin = Date.now();
      await until(async () => (await number(page, "running")) === "1 / 1", { what: "a request that runs" });
      const colors = await page.locator(".layer-block").evaluateAll((blocks) =>
        blocks.map((block) => getComputedStyle(block).backgroundColor));
      for (const [i, color] of colors.entries()) {
        await until(async () => (await pixelsOf(page, color)) >= 30, { what: `the passes of ${devices[i]}` });
      }
      const moved = await changes(page, 1000);
      assert.ok(moved >= 4, `it moved ${moved} times in a second`);
      await sleep(Math.max(0, 2000 - (Date.now() - begin)));  // shares are those of 3 seconds
      const truth = await measure(server, 1000);
      const seen = await shares(page);
      assert.equal(seen.length, 3);
      for (const [i, [busy, bubbles]] of seen.entries()) {
        assert.ok(busy > 0 && Math.abs(busy - truth[i]) <= 25, `${devices[i]}: ${busy} % shown, ${truth[i]} % counted`);
        assert.ok(bubbles > 0 && busy + bubbles <= 101, `${devices[i]}: ${busy} + ${bubbles} %`);
      }
      assert.ok(Number(await number(page, "speed")) > 1, "tokens a second");
      assert.notEqual(await page.locator(".sparkline polyline").last().getAttribute("points"), flat);
      assert.match(await number(page, "kv"), /^[1-9]\d* %/);
      await page.locator("#span").selectOption("0.25");  // wide enough to point at
      await page.getByRole("button", { name: "Pause" }).click();
      assert.equal(await changes(page, 300), 0);
      const canvas = await page.locator("#timeline").boundingBox();
      await until(async () => {
        await page.mouse.move(canvas.x + 100 + Math.random() * (canvas.width - 110), canvas.y + 13);
        return /^cpu, (pass|copy): [\d.]+ ms, 1 tokens? of 1 sequences?$/.test(await page.locator("#timeline-text").textContent());
      }, { what: "a pass under the pointer" });
      await page.getByRole("button", { name: "Go on" }).click();
      await page.locator("#span").selectOption("1");
      await shared.browser.keepPicture(page, "server-machine");
      await box(page).press("Escape");
      await answered(page);
      await until(async () => (await number(page, "running")) === "0 / 1", { what: "an end" });
      await until(async () => (await changes(page, 300)) === 0, { what: "a still picture" });
    });

  check("server: a queue is seen, waited in, left, and full",
    { server: "slow", settings: { temperature: 0, max_tokens: 16 }, expected: /Failed to load resource.*429/ },
    async (page, context, server) => {
      await page.locator("#model:not(:empty)").waitFor();
      const [first, second] = [new AbortController(), new AbortController()];
      const other = ({ signal }) => server.ask("/v1/completions", { prompt: "Once", max_tokens: 900, stream: true }, { signal });
      try {
        const running = await other(first);
        await say(page, "Am I next?");
        await until(async () => (await number(page, "queued")) === "1", { what: "a queue" });
        assert.equal(await number(page, "running"), "1 / 1");
        await page.getByRole("button", { name: "Stop" }).click();
        await answered(page);
        await until(async () => (await number(page, "queued")) === "0", { what: "nobody who waits" });
        // One more waits, and the queue is full.
        const waits = other(second).catch(() => {});
        await until(async () => (await server.json("/v1/status")).requests.queued === 1, { what: "a full queue" });
        await page.getByRole("button", { name: "Regenerate" }).click();
        await page.locator(".failure-text").waitFor();
        assert.match(await page.locator(".assistant .failure").textContent(), /The server asks for .* of patience.*429/);
        second.abort();
        await waits;
        await until(async () => (await server.json("/v1/status")).requests.queued === 0, { what: "room in the queue" });
        await page.getByRole("button", { name: "Retry" }).click();
        await until(async () => (await number(page, "queued")) === "1", { what: "the page in the queue" });
        first.abort();
        await running.text().catch(() => {});
        await page.locator(".assistant .note").getByText("16 tokens").waitFor();
        assert.equal(await page.locator(".failure-text").count(), 0);
      } finally {
        first.abort();
        second.abort();
      }
    });
};
