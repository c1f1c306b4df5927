// Settings are sent, kept, and left out where they are empty.
"use strict";
const assert = require("node:assert/strict");
const { answered, say } = require("./browser.cjs");

module.exports = ({ check, mock }) => {
  check("settings are sent", { mocked: true }, async (page) => {
    await say(page, "Plain");
    await answered(page);
    assert.deepEqual(Object.keys(mock.asked[0].body).sort(), ["messages", "model", "stream", "stream_options"]);
    await page.getByRole("button", { name: "Settings" }).click();
    const values = { Temperature: "0.7", "Top p": "0.9", "Top k": "40", "Min p": "0.05", "Max tokens": "99",
                     Seed: "42", "System prompt": "Be brief.", "Stop at": "END\nSTOP" };
    for (const [label, value] of Object.entries(values)) await page.getByLabel(label).fill(value);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "New chat" }).click();
    await page.reload();  // they are kept
    await say(page, "Set");
    await answered(page);
    const { stream_options: options, model, stream, ...sent } = mock.asked[1].body;
    assert.deepEqual(sent, {
      temperature: 0.7, top_p: 0.9, top_k: 40, min_p: 0.05, max_tokens: 99, seed: 42, stop: ["END", "STOP"],
      messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Set" }] });
    assert.deepEqual([options, model, stream], [{ include_usage: true }, "mock-1b", true]);
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("button", { name: "Reset" }).click();
    await page.getByRole("button", { name: "Done" }).click();
    await say(page, "Reset");
    await answered(page);
    assert.equal(mock.asked[2].body.temperature, undefined);
  });

  check("zero is a value, and what is no number is not sent", { mocked: true }, async (page) => {
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByLabel("Temperature").fill("0");
    await page.getByLabel("Top p").fill("7");
    await page.getByRole("button", { name: "Done" }).click();
    assert.ok(await page.locator("#settings").evaluate((dialog) => dialog.open), "7 was accepted");
    await page.keyboard.press("Escape");
    await say(page, "Hello");
    await answered(page);
    assert.equal(mock.asked[0].body.temperature, 0);
    assert.equal(mock.asked[0].body.top_p, undefined);
  });
};
