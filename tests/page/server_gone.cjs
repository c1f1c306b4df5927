// A server goes away in the middle of an answer, comes back, and is told to stop.
"use strict";
const assert = require("node:assert/strict");
const { until } = require("../clients/trine_server.cjs");
const { pale } = require("./accessible.cjs");
const { answers, answered, say } = require("./browser.cjs");
const { changes } = require("./picture.cjs");

module.exports = (shared) => {
  const { check, startSlow } = shared;

  check("server: it goes away and comes back",
    { server: startSlow, settings: { temperature: 0, max_tokens: 60 },
      expected: /Failed to load resource|net::ERR|ERR_INCOMPLETE/ }, async (page, context, server) => {
      const state = (name) => page.locator("#state").getByText(name, { exact: true }).waitFor();
      const line = page.locator("#machine-line");
      await page.locator("#model:not(:empty)").waitFor();
      await state("ok");

      await say(page, "Tell me about a fox.");
      await until(async () => (await answers(page).textContent()).length > 10, { what: "some of an answer" });
      server.signal("SIGKILL");
      await server.ended();
      await page.locator(".failure-text").getByText("The connection broke off.").waitFor();
      assert.ok((await answers(page).textContent()).length > 10, "what came is kept");
      await state("no answer");
      assert.equal(await line.textContent(), "The server can't be reached.");
      // The answer's end and the server's state are told in the order in which the page learns of them.
      const said = await page.getByRole("status").locator("p").allTextContents();
      for (const expected of [/^Server: no answer\./, /^Error: The connection broke off\./]) {
        assert.equal(said.filter((text) => expected.test(text)).length, 1, `${expected} in ${said}`);
      }
      assert.deepEqual(await pale(page), [], "old figures are read as well");
      await until(async () => (await changes(page, 300)) === 0, { what: "a still picture" });
      await page.getByRole("button", { name: "Retry" }).click();
      await page.locator(".failure-text").getByText("The server can't be reached.").waitFor();
      await shared.browser.keepPicture(page, "server-gone");

      const again = await startSlow({ port: server.port, loaded: false, args: ["--alias", "another"] });
      try {
        await state("ok");
        assert.equal(await page.locator("#machine.stale").count(), 0);
        await page.locator("#model").getByText("another").waitFor();
        await page.getByRole("button", { name: "Retry" }).click();
        await page.locator(".assistant .note").getByText("60 tokens").waitFor();
        assert.equal(await page.locator(".failure-text").count(), 0);

        // Told to stop, it ends what it has begun, takes no more, and says so until then.
        await say(page, "And of a king?");
        await answers(page).last().filter({ hasText: /\w/ }).waitFor();
        again.signal("SIGTERM");
        await state("stopping");
        assert.equal(await line.textContent(), "The server is stopping.");
        await page.locator(".assistant .note").last().getByText("60 tokens").waitFor();
        await answered(page);
        await state("no answer");
        await until(() => again.exit, { what: "its end" });
        assert.equal(again.exit.code, 0, again.log);
      } finally {
        again.signal("SIGKILL");
      }
    });
};
