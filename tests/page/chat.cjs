// Conversations.
"use strict";
const assert = require("node:assert/strict");
const { answers, answered, box, say } = require("./browser.cjs");
const { sleep } = require("./mock_server.cjs");

const hostile = [
  "<img src=x onerror=window.hacked=1>", "<script>window.hacked=1</script>",
  "**<b onclick=window.hacked=1>bold</b>**", "`<i>code</i>`", "[link](javascript:window.hacked=1)",
  "[data](data:text/html,<script>window.hacked=1</script>)", "![x](http://elsewhere.test/x.png)",
  "- <svg onload=window.hacked=1>", "```html\n<script>window.hacked=1</script>\n```",
  "<iframe src=http://elsewhere.test></iframe>",
].join("\n\n");

module.exports = (shared) => {
  const { check, mock } = shared;

  check("an answer streams in", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: Array.from({ length: 40 }, (_, i) => `w${i} `), delayMs: 50 });
    await say(page, "Hello");
    await answers(page).getByText("w3").waitFor();
    const early = await answers(page).textContent();
    assert.ok(!early.includes("w39"), "it came all at once");
    await answered(page);
    assert.match(await answers(page).textContent(), /^w0 w1 .*w39 ?$/);
    assert.deepEqual(mock.asked[0].body.messages, [{ role: "user", content: "Hello" }]);
    assert.equal(mock.asked[0].body.stream, true);
    assert.match(await page.locator(".assistant .note").textContent(), /^40 tokens · [\d.]+ tokens\/s · .*16 from the cache/);
  });

  check("of a burst no speed is told", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: Array.from({ length: 15 }, (_, i) => `w${i} `) });
    await say(page, "Hello");
    await answered(page);
    const note = page.locator(".assistant .note");
    assert.match(await note.textContent(), /^15 tokens · first after [\d.]+ s · /);
  });

  check("an answer comes, from any server", {}, async (page) => {
    await page.locator("#model:not(:empty)").waitFor();
    await say(page, "Once upon a time");
    await answers(page).filter({ hasText: /\w/ }).waitFor({ timeout: 60_000 });
    await page.keyboard.press("Escape");
    await answered(page);
    assert.equal(await page.locator(".failure-text").count(), 0);
  });

  check("stop leaves what there is, and the server", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: Array(1000).fill("on and "), delayMs: 20 });
    await say(page, "Talk");
    await answers(page).getByText("on and on").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await answered(page);
    await page.getByText("Stopped.", { exact: true }).first().waitFor();
    await sleep(200);
    assert.ok(mock.asked[0].left, "the request goes on");
    const length = (await answers(page).textContent()).length;
    await sleep(200);
    assert.equal((await answers(page).textContent()).length, length);
    await say(page, "And now?");
    await answered(page);
    assert.equal(mock.asked[1].body.messages.length, 3, "what was said before Stop is part of it");
  });

  check("regenerate and edit replace what they are about", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: ["one"] }, { pieces: ["two"] }, { pieces: ["three"] }, { pieces: ["four"] });
    await say(page, "First");
    await answered(page);
    await page.getByRole("button", { name: "Regenerate answer" }).click();
    await answers(page).getByText("two").waitFor();
    await answered(page);
    assert.equal(await answers(page).count(), 1);
    assert.equal(mock.asked[1].body.messages.length, 1);
    await say(page, "Second");
    await answered(page);
    await page.getByRole("button", { name: "Edit message" }).click();
    assert.equal(await box(page).inputValue(), "Second");
    await say(page, "Second, but better");
    await answers(page).getByText("four").waitFor();
    await answered(page);
    assert.deepEqual(mock.asked[3].body.messages.map((one) => one.content), ["First", "two", "Second, but better"]);
    assert.deepEqual(await answers(page).allTextContents(), ["two", "four"]);
  });

  check("an edit can be called off", { mocked: true }, async (page) => {
    await say(page, "First");
    await answered(page);
    await box(page).press("ArrowUp");
    assert.equal(await box(page).inputValue(), "First");
    await box(page).press("Escape");
    assert.equal(await box(page).inputValue(), "");
    await say(page, "Next");
    await answered(page);
    assert.equal(mock.asked[1].body.messages.length, 3);
  });

  check("the conversation outlives a reload, and ends with New chat", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: ["Kept ", "words."] });
    await say(page, "Remember this");
    await answered(page);
    await page.reload();
    await page.getByText("Remember this").waitFor();
    assert.equal(await answers(page).textContent(), "Kept words.");
    await page.getByRole("button", { name: "New chat" }).click();
    assert.equal(await answers(page).count(), 0);
    await page.reload();
    await page.getByText("Say something.").waitFor();
    assert.equal(await answers(page).count(), 0);
  });

  check("markdown is laid out", { mocked: true }, async (page) => {
    const text = "# Title\n\nSome **bold**, *soft* and `x < y`.\n\n1. one\n2. two\n   - inner\n\n```js\nlet a = 1;\n\nb();\n```\n> said";
    mock.plans.push({ pieces: text.match(/.{1,3}/gs) });
    await say(page, "Show");
    await answered(page);
    await shared.browser.keepPicture(page, "markdown");
    const body = answers(page);
    for (const [selector, expected] of [
      ["h3", "Title"], ["strong", "bold"], ["em", "soft"], ["p code", "x < y"], ["ol > li >> nth=0", "one"],
      ["ol ul > li", "inner"], ["pre code", "let a = 1;\n\nb();"], ["blockquote", "said"]]) {
      assert.equal(await body.locator(selector).textContent(), expected, selector);
    }
  });

  check("an answer can't bring HTML with it", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: hostile.match(/.{1,5}/gs) });
    await say(page, "<img src=x onerror=window.hacked=1>");
    await answered(page);
    await page.reload();  // and from where it is kept
    await answers(page).first().waitFor();
    const found = await page.evaluate(() => ({
      hacked: window.hacked, markup: document.querySelectorAll(
        ".message :is(img, script, iframe, svg, b, i, object, embed, style, link)").length,
      links: [...document.querySelectorAll(".message a")].map((a) => a.protocol),
      text: document.querySelector(".message.assistant").innerText,
    }));
    assert.equal(found.hacked, undefined);
    assert.equal(found.markup, 0);
    assert.ok(found.links.every((protocol) => /^https?:$/.test(protocol)), String(found.links));
    for (const part of ["<img src=x", "<svg onload", "<iframe", "(javascript:"]) {
      assert.ok(found.text.includes(part), `${part} is not shown as the text it is`);
    }
  });

  check("copying, with and without the clipboard's object", { mocked: true, permissions: ["clipboard-read", "clipboard-write"] },
    async (page) => {
      mock.plans.push({ pieces: ["A **bold** answer\n\n```\nsome code\n```"] });
      await say(page, "Hello");
      await answered(page);
      await page.getByRole("button", { name: "Copy answer" }).click();
      await page.getByRole("button", { name: "Copy answer" }).getByText("Copied").waitFor();
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "A **bold** answer\n\n```\nsome code\n```");
      // As where the page comes over plain HTTP.
      await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
      await page.getByRole("button", { name: "Copy code" }).click();
      await page.getByText("Copied").first().waitFor();
      await box(page).focus();
      await page.keyboard.press("Control+V");
      assert.equal(await box(page).inputValue(), "some code");
    });

  check("a model without a template continues text", { mocked: true, prepare: (m) => (m.chat = false) },
    async (page) => {
      mock.plans.push({ pieces: [" there", " was"], finish: "length" }, { pieces: [" a", " king."] }, { pieces: [" So."] },
        { pieces: [" And he went to the window, and there stood the old woman, ", "who had been waiting all night in the rain."] });
      await page.getByText("continues what you write").waitFor();
      await page.getByRole("button", { name: "“Once upon a time”" }).click();
      await answered(page);
      assert.equal(mock.asked[0].url, "/v1/completions");
      assert.equal(mock.asked[0].body.prompt, "Once upon a time");
      await page.getByText("cut off at the token limit").waitFor();
      await page.getByRole("button", { name: "Continue" }).click();
      await answered(page);
      assert.equal(mock.asked[1].body.prompt, "Once upon a time there was");
      await say(page, "He slept.");
      await answered(page);
      assert.equal(mock.asked[2].body.prompt, "Once upon a time there was a king. He slept.");
      assert.equal(await page.locator("#messages").evaluate((node) =>
        [...node.querySelectorAll(".body")].every((body) => getComputedStyle(body).display === "inline")), true);
      assert.equal(await page.getByRole("button", { name: "Copy text" }).count(), 1, "one text, one button");
      await page.getByRole("button", { name: "Edit message" }).click();
      await say(page, "He woke up.");
      await answered(page);
      assert.equal(mock.asked[3].body.prompt, "Once upon a time there was a king. He woke up.");
      await shared.browser.keepPicture(page, "text");
    });

  check("a reader who has gone up stays there", { mocked: true }, async (page) => {
    mock.plans.push({ pieces: Array(60).fill("line\n\n") }, { pieces: Array(80).fill("more\n\n"), delayMs: 15 });
    await say(page, "Much");
    await answered(page);
    await say(page, "More");
    await answers(page).last().getByText("more").first().waitFor();
    await page.locator("#log").evaluate((log) => (log.scrollTop = 0));
    await answered(page);
    assert.equal(await page.locator("#log").evaluate((log) => log.scrollTop), 0);
  });
};
