// Requests of many kinds, the answers they have when nobody else asks, and clients that ask for
// them again and again.
"use strict";
const assert = require("node:assert/strict");
const { slowly, streamed } = require("./stream_client.cjs");

const openings = ["Once upon a time", "The old king", "In the dark forest", "My dear child,",
                  "There was a miller", "She said to the wolf:"];

function makeRequests() {
  const requests = [];
  for (let i = 0; i < 24; ++i) {
    const sampled = i % 3 === 2;
    const common = { temperature: sampled ? 0.9 : 0, ...(sampled ? { seed: 100 + i } : {}) };
    const prompt = `${openings[i % 6]} ${"and so it went on, ".repeat((i * 5) % 7)}`;
    const tokens = 12 + ((i * 7) % 29);
    if (i % 4 === 1) {
      requests.push(["/v1/chat/completions", {
        ...common, max_tokens: tokens, messages: [{ role: "user", content: prompt }],
        stream_options: { include_usage: true } }]);
    } else if (i % 4 === 3) {
      requests.push(["/v1/responses", { ...common, max_output_tokens: tokens, input: prompt }]);
    } else {
      requests.push(["/v1/completions", {
        ...common, max_tokens: tokens, prompt, stream_options: { include_usage: true } }]);
    }
  }
  return requests;
}

// Each alone.
async function expectations(server, requests) {
  const expected = [];
  for (const [path, body] of requests) {
    const answer = await streamed(server, path, body);
    assert.equal(answer.status, 200);
    assert.ok(answer.done && answer.text.length > 0, path);
    expected.push(answer);
  }
  return expected;
}

function assertSame(answer, expected) {
  assert.equal(answer.status, 200, JSON.stringify(answer.error));
  assert.equal(answer.error, undefined, JSON.stringify(answer.error));
  assert.equal(answer.text, expected.text);
  assert.equal(answer.frames, expected.frames);
  assert.equal(answer.finish, expected.finish);
  assert.ok(answer.done);
  const count = (usage) => [usage.completion_tokens ?? usage.output_tokens,
                            usage.prompt_tokens ?? usage.input_tokens];
  assert.deepEqual(count(answer.usage), count(expected.usage));
}

const bad = [
  ["/v1/completions", { prompt: "x", temperature: "hot" }],
  ["/v1/chat/completions", { messages: [{ role: "nobody", content: "x" }] }],
  ["/v1/responses", { input: 7 }],
  ["/v1/completions", { prompt: "word ".repeat(3000) }],
];

// One client, until `until`. Of every sixteen: one sends what is wrong, one leaves, two read slowly.
async function client(server, number, { requests, expected, until, totals }) {
  for (let round = 0; performance.now() < until; ++round) {
    const which = (number * 7 + round * 5) % requests.length;
    const [path, body] = requests[which];
    const kind = number % 16;
    if (kind === 0) {
      const [path, body] = bad[round % bad.length];
      const answer = await streamed(server, path, body);
      assert.equal(answer.status, 400, path);
      assert.equal(answer.error.type, "invalid_request_error");
      ++totals.refused;
    } else if (kind === 1) {
      const last = 1 + ((number + round) % 8);
      const answer = await streamed(server, path, body, { read: (n) => (n === last ? "leave" : "") });
      assert.ok(expected[which].text.startsWith(answer.text), answer.text);
      ++totals.left;
    } else {
      const wait = kind < 4 ? slowly(20) : () => {};
      let begun = 0;
      const read = (n) => {
        if (n === 2) totals.streaming += begun = 1;
        return wait();
      };
      const answer = await streamed(server, path, body, { read });
      totals.streaming -= begun;
      assertSame(answer, expected[which]);
      ++totals.complete;
      totals.tokens += answer.usage.completion_tokens ?? answer.usage.output_tokens;
      if (kind >= 4) totals.first_ms.push(answer.first_ms);
    }
  }
}

// `n` clients for so many seconds; what they did. `totals` shows it meanwhile.
async function load(server, n, seconds, requests, expected, totals = {}) {
  Object.assign(totals, { complete: 0, refused: 0, left: 0, streaming: 0, tokens: 0, first_ms: [] });
  const until = performance.now() + seconds * 1000;
  const clients = [];
  for (let i = 0; i < n; ++i) clients.push(client(server, i, { requests, expected, until, totals }));
  await Promise.all(clients);
  return totals;
}

module.exports = { expectations, load, makeRequests };
