// Conversations with a real server: what is shown is what it said.
"use strict";
const assert = require("node:assert/strict");
const { until } = require("../clients/trine_server.cjs");
const { answers, answered, box, say } = require("./browser.cjs");

const refused = /Failed to load resource.*401/;

// What the server answers to somebody else who asks the same.
async function answerOf(server, messages, more) {
  const { choices } = await server.json("/v1/chat/completions", { messages, ...more });
  return choices[0].message.content;
}

const user = (content) => ({ role: "user", content });
const note = (page) => page.locator(".assistant .note").last().textContent();

module.exports = (shared) => {
  const { check, letters } = shared;

  check("server: a key is asked for and used", { server: "quick", key: "", expected: refused }, async (page, context, server) => {
    await page.locator("#state").getByText("locked").waitFor();
    await page.locator("#machine-line").getByText("The server wants an API key").waitFor();
    await say(page, "Hello");
    await page.locator(".failure-text").getByText("an API key is needed").waitFor();
    const give = async (key) => {
      await page.getByRole("button", { name: "Give an API key" }).click();
      assert.equal(await page.evaluate(() => document.activeElement.name), "key", "the field is at hand");
      await page.getByLabel("API key").fill(key);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "Retry" }).click();
    };
    await give("not the key");
    await page.locator(".failure-text").waitFor();
    await answered(page);
    assert.equal(await page.locator("#state").textContent(), "locked");
    for (const [i, key] of [letters, server.key].entries()) {
      await give(key);
      await page.locator(".assistant .note:not(:empty)").nth(i).waitFor();
      assert.equal(await page.locator(".failure-text").count(), 0);
      await page.locator("#state").getByText("ok", { exact: true }).waitFor();
      assert.equal(await page.locator("#model").textContent(), "tales-27m-q8_0");
      if (key === server.key) break;
      // Taken away, it is asked for again.
      await page.evaluate(() => sessionStorage.clear());
      await page.locator("#state").getByText("locked").waitFor();
      await say(page, "And now?");
      await page.locator(".failure-text").waitFor();
    }
    await page.reload();
    await page.locator("#state").getByText("ok", { exact: true }).waitFor();
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }) + document.cookie);
    assert.ok(!kept.includes(server.key) && !kept.includes(letters), "a key outlives the tab");
  });

  check("server: answers end by themselves, and are what the API says", { server: "quick", settings: { temperature: 0 } },
    async (page, context, server) => {
      await page.locator("#model:not(:empty)").waitFor();
      await say(page, "Tell me about a fox.");
      await page.locator(".assistant .note:not(:empty)").waitFor();
      const first = await answerOf(server, [user("Tell me about a fox.")], { temperature: 0 });
      assert.equal(await answers(page).textContent(), first);
      assert.match(await note(page), /^\d+ tokens · ([\d.,]+ tokens\/s · )?first after [\d.]+ s · \d+ read/);
      assert.doesNotMatch(await note(page), /cut off/);
      await say(page, "And of a king?");
      await page.locator(".assistant .note:not(:empty)").nth(1).waitFor();
      const second = await answerOf(server, [user("Tell me about a fox."), { role: "assistant", content: first },
                                             user("And of a king?")], { temperature: 0 });
      assert.equal(await answers(page).last().textContent(), second);
    });

  check("server: settings are honoured", { server: "quick" }, async (page, context, server) => {
    await page.locator("#model:not(:empty)").waitFor();
    const set = async (values) => {
      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByRole("button", { name: "Reset" }).click();
      for (const [label, value] of Object.entries(values)) await page.getByLabel(label).fill(String(value));
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "New chat" }).click();
    };
    const ask = async (more, messages = [user("A tale, please.")]) => {
      await say(page, "A tale, please.");
      await page.locator(".assistant .note:not(:empty)").waitFor();
      const shown = await answers(page).textContent();
      const said = await answerOf(server, messages, more);
      assert.equal(shown.replace(/\s+/g, " ").trim(), said.replace(/\s+/g, " ").trim());
      return shown;
    };
    await set({ Temperature: 0, "Max tokens": 5 });
    const cold = await ask({ temperature: 0, max_tokens: 5 });
    assert.match(await note(page), /^5 tokens · .*cut off at the token limit$/);
    await set({ Temperature: 2, "Top k": 0, "Min p": 0, "Top p": 1, Seed: 3, "Max tokens": 6 });
    const hot = await ask({ temperature: 2, top_k: 0, min_p: 0, top_p: 1, seed: 3, max_tokens: 6 });
    assert.match(await note(page), /^6 tokens/);
    assert.notEqual(hot, cold);
    await page.getByRole("button", { name: "Regenerate" }).click();
    await answered(page);
    assert.equal(await answers(page).textContent(), hot, "the same seed, the same answer");
    const word = cold.trim().split(/\s+/)[1];
    await set({ Temperature: 0, "Stop at": word });
    assert.ok(!(await ask({ temperature: 0, stop: [word] })).includes(word));
    await set({ Temperature: 0, "System prompt": "You are a pirate.", "Max tokens": 8 });
    await ask({ temperature: 0, max_tokens: 8 }, [{ role: "system", content: "You are a pirate." }, user("A tale, please.")]);
  });

  check("server: an answer grows, and is stopped in the middle", { server: "slow", settings: { temperature: 0, max_tokens: 25 } },
    async (page, context, server) => {
      await page.locator("#model:not(:empty)").waitFor();
      await say(page, "Tell me about a fox.");
      await page.locator(".message.busy").waitFor();
      assert.equal(await page.locator(".assistant").getAttribute("aria-busy"), "true");
      const seen = [];
      while (await page.locator("#stop").isVisible()) {
        const text = await answers(page).textContent();
        if (text !== seen.at(-1)) seen.push(text);
        await page.waitForTimeout(25);
      }
      const whole = await answers(page).textContent();
      assert.ok(seen.length >= 6, `it was seen ${seen.length} times`);
      for (const text of seen) assert.ok(whole.startsWith(text.trimEnd()), `${text} | ${whole}`);
      assert.match(await note(page), /^25 tokens .*cut off at the token limit$/);

      await page.getByRole("button", { name: "Settings" }).click();
      await page.getByLabel("Max tokens").fill("900");
      await page.getByRole("button", { name: "Done" }).click();
      const { cancelled } = (await server.json("/v1/status")).requests;
      for (const how of ["button", "key"]) {
        await say(page, "More of that.");
        await until(async () => (await answers(page).last().textContent()).length > 20, { what: "some of it" });
        if (how === "button") await page.getByRole("button", { name: "Stop" }).click();
        else await box(page).press("Escape");
        await answered(page);
        assert.ok((await server.idle()) < 3000, "the server writes on");
        assert.equal(await note(page), "Stopped.");
      }
      assert.equal((await server.json("/v1/status")).requests.cancelled, cancelled + 2);
      await page.locator("#machine-line").getByText(`${cancelled + 2} cancelled`).waitFor();
      const length = (await answers(page).last().textContent()).length;
      assert.ok(length > 20 && length < 3000);
      await page.reload();
      await page.locator("#model:not(:empty)").waitFor();
      assert.equal((await answers(page).last().textContent()).length, length, "what there was is kept");
    });
};
