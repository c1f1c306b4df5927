// A device is lost in the middle of an answer, and comes back; or all of them are lost.
"use strict";
const assert = require("node:assert/strict");
const { sleep, until } = require("../clients/trine_server.cjs");
const { nonsense, pale, sideways } = require("./accessible.cjs");
const { answers, say } = require("./browser.cjs");
const { pixelsOf } = require("./picture.cjs");

module.exports = (shared) => {
  const { check, startSlow } = shared;
  const faults = ";several1:lost@token=12,back=0";

  check("server: a lost device is shown, and that it is back",
    { server: () => startSlow({ faults }), settings: { temperature: 0, max_tokens: 36 } }, async (page, context, server) => {
      await page.locator("#model:not(:empty)").waitFor();
      assert.equal(await page.locator("#state").textContent(), "ok");
      await say(page, "Tell me about a fox.");
      await page.locator("#state").getByText("degraded").waitFor();
      const begin = Date.now();
      const lost = page.locator('.tier[data-state="lost"]');
      await lost.locator(".device").getByText("several1").waitFor();
      assert.match(await lost.locator(".tier-state").textContent(), /^lost: \S/);
      assert.match(await page.locator("#machine-line").textContent(), /^Without several1; the rest goes on\. /);
      assert.match(await page.locator("#faults li").textContent(), /^several1, (just now|[\d.]+ s ago): \S/);
      assert.match(await page.locator("#layers").getAttribute("aria-label"), /^cpu: layers 0–\d+.*several0/);
      const bad = await lost.locator(".tier-state").evaluate((node) => getComputedStyle(node).color);
      await until(async () => (await pixelsOf(page, bad)) > 200, { within: 4000, what: "a mark on the timeline, and a name" });
      await page.getByText("The same as a table").click();
      await shared.browser.keepPicture(page, "server-lost");
      assert.deepEqual(await nonsense(page), []);
      assert.deepEqual(await pale(page), []);
      assert.deepEqual(await sideways(page), []);
      // The answer has lost nothing.
      await page.locator(".assistant .note").getByText("36 tokens").waitFor();
      const { choices } = await shared.quick.json("/v1/chat/completions", {
        messages: [{ role: "user", content: "Tell me about a fox." }], temperature: 0, max_tokens: 36,
        logit_bias: shared.endless });
      const plain = (text) => text.replace(/\s+/g, " ").trim();
      assert.equal(plain(await answers(page).textContent()), plain(choices[0].message.content));

      // A server that hangs is told from one that is gone.
      server.signal("SIGSTOP");
      await page.locator("#state").getByText("no answer").waitFor();
      assert.equal(await page.locator("#machine-line").textContent(), "The server does not answer.");
      server.signal("SIGCONT");
      await page.locator("#state").getByText("degraded").waitFor();
      await sleep(Math.max(0, 5500 - (Date.now() - begin)));  // not taken in before
      await say(page, "Go on.");
      await page.locator("#state").getByText("ok", { exact: true }).waitFor();
      await page.locator('.tier[data-state="ok"]').nth(2).waitFor();
      assert.equal(await page.locator('.tier[data-state="lost"]').count(), 0);
      assert.ok(await page.locator("#faults-section").isHidden());
      for (const [busy] of (await page.locator(".shares").allTextContents()).map((text) => text.match(/\d+/g))) {
        assert.ok(Number(busy) <= 100);
      }
      await until(async () => (await answers(page).last().textContent()).length > 5, { what: "an answer of all three" });
      await shared.browser.keepPicture(page, "server-back");
    });

  check("server: all devices are lost",
    { server: () => startSlow({ faults: ";*:lost@token=8" }), settings: { temperature: 0, max_tokens: 36 } },
    async (page) => {
      await page.locator("#model:not(:empty)").waitFor();
      await say(page, "Tell me about a fox.");
      await page.locator(".failure-text").waitFor();
      assert.ok((await answers(page).textContent()).length > 3, "what came is kept");
      await page.locator("#state").getByText("lost", { exact: true }).waitFor();
      await page.locator("#machine-line").getByText(/^No device is left/).waitFor();
      assert.equal(await page.locator('.tier[data-state="lost"]').count(), 3);
      assert.ok((await page.locator("#faults li").count()) >= 3);
      const bad = await page.locator(".tier-state").first().evaluate((node) => getComputedStyle(node).color);
      await until(async () => (await pixelsOf(page, bad)) > 500, { within: 4000, what: "a mark beside three names" });
      assert.equal(await page.locator("#state").evaluate((pill) => getComputedStyle(pill).color),
                   await page.locator(".tier-state").first().evaluate((text) => getComputedStyle(text).color));
      assert.match(await page.locator(".assistant .failure").textContent(), /no device is left: .*unavailableRetry$/);
      await page.getByText("The same as a table").click();
      assert.deepEqual(await nonsense(page), []);
      assert.deepEqual(await pale(page), []);
      await shared.browser.keepPicture(page, "server-none");
    });
};
