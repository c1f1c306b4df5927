// What goes wrong is shown as what it is.
"use strict";
const assert = require("node:assert/strict");
const { answers, answered, say } = require("./browser.cjs");

const expected = /Failed to load resource|ERR_INCOMPLETE_CHUNKED|net::ERR/;

module.exports = ({ check, mock }) => {
  check("a refusal is shown, and tried again", { mocked: true, expected }, async (page) => {
    mock.plans.push({ status: 503, headers: { "Retry-After": "3" },
                      error: { message: "The queue is full.", type: "unavailable_error", code: "queue_full" } },
                    { pieces: ["At last."] });
    await say(page, "Hello");
    await page.getByText("The queue is full. The server asks for 3.0 s of patience.").waitFor();
    await page.getByText("503 unavailable_error, queue_full").waitFor();
    await page.getByRole("button", { name: "Retry" }).click();
    await answers(page).getByText("At last.").waitFor();
    await answered(page);
    assert.equal(await page.locator(".failure-text").count(), 0);
    assert.deepEqual(mock.asked[1].body.messages, [{ role: "user", content: "Hello" }]);
  });

  check("an error in mid-stream leaves what came before it", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: ["Half an "], error: { message: "Every device is lost.", type: "server_error" } });
    await say(page, "Hello");
    await page.getByText("Every device is lost.", { exact: true }).first().waitFor();
    assert.equal((await answers(page).textContent()).trim(), "Half an");
    await page.reload();
    await page.locator(".failure-text").getByText("Every device is lost.").waitFor();
  });

  check("a connection that breaks is said to", { mocked: true, expected }, async (page) => {
    mock.plans.push({ pieces: ["Half"], delayMs: 50, breakOff: true });
    await say(page, "Hello");
    await page.getByText("The connection broke off.", { exact: true }).first().waitFor();
    assert.equal(await page.getByRole("button", { name: "Retry" }).count(), 1);
  });

  check("messages after a failure are one turn", { mocked: true, expected }, async (page) => {
    mock.plans.push({ status: 500, error: { message: "No." } });
    await say(page, "One");
    await page.locator(".failure-text").waitFor();
    await say(page, "Two");
    await answered(page);
    assert.deepEqual(mock.asked[1].body.messages, [{ role: "user", content: "One\n\nTwo" }]);
  });

  check("a proxy's page is an error too", { mocked: true, expected }, async (page) => {
    await page.route("**/v1/chat/completions", (route) =>
      route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad gateway</h1>" }));
    await say(page, "Hello");
    await page.getByText("<h1>Bad gateway</h1>", { exact: true }).first().waitFor();
  });

  check("a key is asked for and kept for the tab alone",
    { mocked: true, expected, prepare: (m) => (m.key = "sesame") }, async (page) => {
      await page.getByText("The server wants an API key").first().waitFor();
      await say(page, "Hello");
      await page.getByRole("button", { name: "Give an API key" }).click();
      await page.getByLabel("API key").fill("sesame");
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Retry" }).click();
      await answers(page).getByText("Very well.").waitFor();
      assert.equal(mock.asked.at(-1).authorization, "Bearer sesame");
      await page.locator("#model").getByText("mock-1b").waitFor();
      const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }));
      assert.ok(!kept.includes("sesame"), "the key is in localStorage");
    });
};
