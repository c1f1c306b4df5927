// Modules of the page that need no browser.
import assert from "node:assert/strict";
import { test } from "node:test";

const web = new URL("../../tools/server/page/web/", import.meta.url);
const { requestBody } = await import(new URL("answer.js", web));
const { bytes, holds, seconds, speed } = await import(new URL("format.js", web));
const { parseMarkdown, parseSpans } = await import(new URL("markdown.js", web));
const { Rates } = await import(new URL("rates.js", web));
const { eventData } = await import(new URL("sse.js", web));
const { TimelineStore } = await import(new URL("timeline_store.js", web));

async function eventsOf(chunks) {
  const encoder = new TextEncoder();
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
      controller.close();
    },
  });
  const found = [];
  for await (const data of eventData(stream)) found.push(data);
  return found;
}

test("events come out the same wherever the stream is cut", async () => {
  const text = ": hello\r\n\r\ndata: {\"a\":\"é€😀\"}\r\n\r\nevent: x\ndata:two\ndata: lines\n\nid: 1\n\ndata: [DONE]\r\rdata: broken off";
  const whole = new TextEncoder().encode(text);
  const expected = ['{"a":"é€😀"}', "two\nlines", "[DONE]"];
  for (let size = 1; size <= whole.length; size += 1) {
    const chunks = [];
    for (let at = 0; at < whole.length; at += size) chunks.push(whole.slice(at, at + size));
    assert.deepEqual(await eventsOf(chunks), expected, `in chunks of ${size}`);
  }
});

test("blocks of Markdown", () => {
  const kinds = (text) => parseMarkdown(text).map((block) => block.kind);
  assert.deepEqual(kinds("# a\ntext\nmore\n\n---\n- x\n- y\n\n1. z\n> q\n```\ncode"),
                   ["heading", "paragraph", "rule", "list", "list", "quote", "code"]);
  const [code] = parseMarkdown("````c++\n```\nx\n````");
  assert.deepEqual([code.language, code.text], ["c++", "```\nx"]);
  const [list] = parseMarkdown("3) a\n\n   more\n4) b\n   - c\n     - d");
  assert.equal(list.start, 3);
  assert.equal(list.items.length, 2);
  assert.equal(list.items[0].blocks[0].kind, "paragraph");
  assert.equal(list.items[1].blocks[0].items[0].blocks[0].kind, "list");
  assert.equal(parseMarkdown("a\n\nb")[1].source, "b");
  assert.deepEqual(parseMarkdown("\n \n"), []);
});

test("spans of Markdown", () => {
  const flat = (text) => parseSpans(text).map((span) => `${span.kind}:${span.text ?? flat(span.spans.map((s) => s.text).join(""))}`).join("|");
  assert.equal(flat("2 * 3 * 4 and snake_case_name"), "text:2 * 3 * 4 and snake_case_name");
  assert.equal(flat("`` a`b `` **x"), "code: a`b |text: **x");
  assert.equal(flat("\\*no\\*"), "text:*|text:no|text:*");
  assert.equal(parseSpans("**a *b* c**")[0].spans[1].kind, "em");
  assert.equal(parseSpans("[a](https://b.c/d)")[0].href, "https://b.c/d");
  for (const href of ["javascript:x", "JaVaScRiPt:x", "data:text/html,x", "//evil.test", "vbscript:x", "file:///etc"]) {
    assert.equal(flat(`[a](${href})`), `text:[a](${href})`, href);
  }
});

test("no text of Markdown takes long", () => {
  const parts = ["`", "*", "**a ", "_a", "[", "[a](", "> ", "- ", "```\n", "  - a\n", "#", "\\", "1. ", "**a*b_c`d "];
  for (const part of parts) {
    const text = part.repeat(Math.ceil(8000 / part.length));
    for (const one of [text, `x ${text}`, `${text}x`]) {
      const begin = performance.now();
      parseMarkdown(one);
      const ms = performance.now() - begin;
      assert.ok(ms < 1500, `${JSON.stringify(part)} again and again: ${ms.toFixed(0)} ms`);
    }
  }
});

test("requests hold what was said, in turns", () => {
  const turns = [{ role: "user", content: "a" }, { role: "assistant", content: "" }, { role: "user", content: "b" }];
  const settings = { temperature: 0, seed: NaN, system: "s", stop: [] };
  const body = requestBody({ chat: true, model: "m", turns, settings });
  assert.deepEqual(body.messages, [{ role: "system", content: "s" }, { role: "user", content: "a\n\nb" }]);
  assert.equal(body.temperature, 0);
  assert.ok(!("seed" in body) && !("stop" in body));
  assert.equal(requestBody({ chat: false, model: "m", turns, settings }).prompt, "ab");
});

const tier = (busy, passes, first = 0) => ({
  device: "cpu", first_layer: first, end_layer: first + 4, busy_ms: busy, waiting_ms: busy / 2, blocked_ms: busy / 4, passes });
const status = (at, generated, ...tiers) => ({
  timeline: { now_us: at * 1e6 }, tokens: { generated, prompt: generated * 2 }, tiers });

test("rates forget what is older than their window, and another server", () => {
  const rates = new Rates();
  for (let i = 0; i <= 20; i += 1) rates.add(status(i / 2, i < 10 ? 0 : (i - 10) * 10, tier(i < 10 ? 0 : (i - 10) * 100, i)));
  assert.equal(rates.spanS, 3);
  assert.equal(rates.tokens().generated, 20);
  assert.equal(rates.tokens().prompt, 40);
  assert.deepEqual(rates.tier(tier(1000, 20)), { busy: 0.2, bubbles: 0.15 });
  rates.add(status(10.5, 110, tier(5, 1, 2)));  // placed anew: nothing to compare with
  assert.deepEqual(rates.tier(tier(5, 1, 2)), { busy: 0, bubbles: 0 });
  // There again, with as many passes as before it went.
  rates.add(status(11, 120, tier(10, 1)));
  rates.add(status(11.5, 130, tier(110, 21)));
  assert.deepEqual(rates.tier(tier(110, 21)), { busy: 0.2, bubbles: 0.15 });
  rates.add(status(1, 0, tier(0, 0)));
  assert.equal(rates.spanS, 0);
});

test("the timeline never runs ahead of what is known, nor backwards", () => {
  const store = new TimelineStore();
  const event = { tier: 0, kind: "pass", begin_us: 900e3, end_us: 950e3 };
  store.add({ now_us: 1e6, events: [event] }, 1, 5000);
  store.add({ now_us: 1.5e6, events: [{ ...event, end_us: 990e3 }] }, 1, 5600);  // 100 ms late
  assert.equal(store.between(0, 0, 2e6).length, 1, "one that comes again is one");
  assert.equal(store.between(0, 0, 2e6)[0].end_us, 990e3);
  assert.equal(store.between(0, 991e3, 2e6).length, 0);
  let last = 0;
  for (let ms = 5600; ms < 9000; ms += 10) {
    const head = store.headUs(ms, 300e3);
    assert.ok(head >= last && head <= 1.5e6);
    last = head;
  }
  assert.equal(last, 1.5e6);
  store.add({ now_us: 20e6, events: [] }, 1, 24_100);
  assert.equal(store.between(0, 0, 20e6).length, 0, "what is old is dropped");
  store.add({ now_us: 1e3, events: [] }, 1, 25_000);
  assert.ok(store.headUs(25_000, 0) <= 1e3, "another server");
});

test("numbers as people read them", () => {
  assert.deepEqual([bytes(0), bytes(1536), bytes(31 * 2 ** 30)], ["0 B", "1.5 KiB", "31 GiB"]);
  assert.deepEqual([speed(14, 0.3), speed(200, 49), speed(0, 900), speed(20, 400), speed(999, 1000)],
                   ["", "", "", "50.0 tokens/s", "999 tokens/s"]);
  assert.deepEqual([seconds(0.123), seconds(3.21), seconds(90), seconds(3600)], ["0.12 s", "3.2 s", "90 s", "60 min"]);
  assert.equal(holds({ first_layer: 0, end_layer: 1, embedding: true, head: false }), "layer 0, embedding");
  assert.equal(holds({ first_layer: 3, end_layer: 3, head: true }), "no layers, head");
});
