// With a keyboard alone, on a phone, for a screen reader: with what a real server says.
"use strict";
const assert = require("node:assert/strict");
const { until } = require("../clients/trine_server.cjs");
const { badIds, focused, nameless, overlapping, pale, sideways, unsound } = require("./accessible.cjs");
const { answers, answered, box } = require("./browser.cjs");

// Tab, or Shift+Tab, until that has the focus.
async function tabTo(page, id, key = "Tab") {
  for (let i = 0; i < 40; i += 1) {
    if ((await focused(page)) === id) return;
    await page.keyboard.press(key);
  }
  assert.fail(`${key} does not lead to ${id}`);
}

module.exports = (shared) => {
  const { check } = shared;

  check("server: all of it with a keyboard", { server: "slow", settings: { temperature: 0 } }, async (page, context, server) => {
    await page.locator("#model:not(:empty)").waitFor();
    const { keyboard } = page;
    assert.equal(await focused(page), "prompt");
    await keyboard.type("Tell me");
    await keyboard.press("Shift+Enter");
    await keyboard.type("about a fox.");
    await keyboard.press("Enter");
    await answers(page).filter({ hasText: /\w/ }).waitFor();
    assert.equal(await page.locator(".user .body").textContent(), "Tell me\nabout a fox.");
    await keyboard.press("Tab");
    assert.equal(await focused(page), "stop");
    await keyboard.press("Space");
    await answered(page);
    await server.idle();
    assert.equal(await focused(page), "prompt", "focus is not lost with the button");

    await tabTo(page, "open-settings", "Shift+Tab");
    await keyboard.press("Enter");
    await page.locator("#settings").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.name), "temperature");
    for (let i = 0; i < 4; i += 1) await keyboard.press("Tab");
    await keyboard.type("6");
    await keyboard.press("Enter");
    await page.locator("#settings").waitFor({ state: "hidden" });
    assert.equal(await focused(page), "open-settings");

    await tabTo(page, "prompt");
    await keyboard.press("ArrowUp");
    assert.equal(await box(page).inputValue(), "Tell me\nabout a fox.", "the last message, to be mended");
    await keyboard.type(" Or two.");
    await keyboard.press("Enter");
    await page.locator(".assistant .note").getByText("6 tokens").waitFor();
    assert.equal(await answers(page).count(), 1);

    await tabTo(page, "span");
    await keyboard.press("ArrowDown");
    assert.equal(await page.locator("#span").inputValue(), "1");
    await tabTo(page, "pause");
    await keyboard.press("Space");
    assert.equal(await page.locator("#pause").textContent(), "Go on");
    await keyboard.press("Space");
    await tabTo(page, "The same as a table");
    await keyboard.press("Enter");
    await page.getByRole("row", { name: /^several0/ }).getByRole("cell", { name: "layers 12–21" }).waitFor();
    await tabTo(page, "new-chat", "Shift+Tab");
    await keyboard.press("Enter");
    assert.equal(await answers(page).count(), 0);
    assert.equal(await focused(page), "prompt");

    // As narrow as a page enlarged four times, with the chat out of sight.
    await page.setViewportSize({ width: 320, height: 640 });
    for (const way of ["view-machine", "new-chat", "view-machine", "skip"]) {
      await tabTo(page, way, "Shift+Tab");
      await keyboard.press("Enter");
      assert.equal(await page.locator("#machine").isVisible(), way === "view-machine");
      if (way !== "view-machine") assert.equal(await focused(page), "prompt", way);
    }
    assert.deepEqual(await sideways(page), []);
  });

  check("server: names, headings, labels, and what is read out",
    { server: "slow", settings: { temperature: 0, max_tokens: 12 }, permissions: ["clipboard-read", "clipboard-write"] },
    async (page, context) => {
      await page.locator("#model:not(:empty)").waitFor();
      await page.locator(".tier").nth(2).waitFor();
      const status = page.getByRole("status");
      assert.equal(await status.getAttribute("aria-live"), "polite");
      await box(page).fill("Tell me about a fox.");
      await box(page).press("Enter");
      await status.getByText("The model answers.").waitFor();
      await page.locator(".assistant .note:not(:empty)").waitFor();
      assert.equal((await status.locator("p").last().textContent()).trim(), (await answers(page).textContent()).trim());
      assert.equal(await page.locator(".assistant").getAttribute("aria-busy"), null);
      assert.deepEqual(await page.getByRole("article").evaluateAll((all) => all.map((one) => one.ariaLabel)), ["You", "Model"]);
      await page.getByRole("button", { name: "Copy answer" }).click();
      await status.getByText("Copied").waitFor();
      for (const role of ["banner", "main", "complementary"]) assert.equal(await page.getByRole(role).count(), 1, role);
      await page.getByText("The same as a table").click();
      const sound = async () => {
        assert.deepEqual(await nameless(page, context), []);
        assert.deepEqual(await badIds(page), []);
        assert.deepEqual(await unsound(page), []);
        assert.deepEqual(await pale(page), []);
      };
      await sound();
      // A button says by its name or by being pressed what it does, not by both.
      const pause = page.locator("#pause");
      const states = [];
      for (let i = 0; i < 2; i += 1) {
        states.push({ name: await pause.textContent(), pressed: await pause.getAttribute("aria-pressed") });
        await pause.click();
      }
      assert.ok(states[0].name === states[1].name || states[0].pressed === states[1].pressed, JSON.stringify(states));
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("dialog", { name: "Settings" }).waitFor();
      await sound();
    });

  check("server: a phone", { server: "slow", phone: true, settings: { temperature: 0, max_tokens: 400 } },
    async (page, context, server) => {
      await page.locator("#model:not(:empty)").waitFor();
      assert.deepEqual(await sideways(page), []);
      await box(page).fill(`Tell me ${"about it ".repeat(20)}${"z".repeat(80)}`);
      await page.getByRole("button", { name: "Send" }).tap();
      await until(async () => (await answers(page).textContent()).length > 30, { what: "an answer" });
      assert.deepEqual(await sideways(page), []);
      await shared.browser.keepPicture(page, "server-phone-chat");
      await page.getByRole("button", { name: "Machine" }).tap();
      await page.locator("#timeline").waitFor();
      await page.getByText("The same as a table").tap();
      for (const width of [360, 320]) {
        await page.setViewportSize({ width, height: 640 });
        assert.deepEqual(await sideways(page), []);
        await page.locator("#machine").evaluate((node) => (node.scrollTop = 0));
        assert.deepEqual(await overlapping(page), [], `at ${width}`);
      }
      const seen = await page.locator("#timeline").boundingBox();
      assert.ok(seen.width > 250, `the timeline is ${seen.width} wide`);
      await shared.browser.keepPicture(page, "server-phone-machine");
      await page.getByRole("button", { name: "Settings" }).tap();
      assert.deepEqual(await sideways(page), []);
      await page.getByRole("button", { name: "Done" }).tap();
      await page.getByRole("button", { name: "Chat", exact: true }).tap();
      await page.getByRole("button", { name: "Stop" }).tap();
      await answered(page);
      await server.idle();
    });
};
