// Tests requests that need many places or much memory. A request with more choices than places does
// not delay other requests. The server gives the memory of large bodies back to the system.
//
//   crowd_test.cjs PROGRAM MODEL
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { TrineServer, until } = require("./trine_server.cjs");

const mib = 1 << 20;
const places = 4;

test("a request with more choices than places does not delay other requests", { timeout: 300_000 }, async () => {
  const server = await TrineServer.start({ args: ["-np", String(places), "-c", "1024"] });
  const many = { prompt: "The old king", n: 2 * places + 1, max_tokens: 24, temperature: 0.8, seed: 7 };
  const alone = await server.json("/v1/completions", many);
  assert.equal(alone.choices.length, many.n);
  const texts = (answer) => answer.choices.map((choice) => choice.text);
  assert.equal(new Set(texts(alone)).size, many.n, "each choice has a seed of its own");

  // One place is taken for long.
  let ended = false;
  const long = server.json("/v1/completions", {
    prompt: "Once upon a time", max_tokens: 900, ignore_eos: true, temperature: 0 });
  long.then(() => (ended = true));
  await until(async () => (await server.metric("trine_places_taken")) === 1, { what: "the long one" });
  // The large request begins with the places that are free, and ends without the one that is not.
  const crowd = server.json("/v1/completions", many);
  await until(async () => (await server.metric("trine_places_taken")) === places,
              { what: "choices in all places" });
  // A small request takes the place of a choice that has ended.
  const small = server.json("/v1/completions", { prompt: "In the forest", max_tokens: 1 });
  await small;
  assert.ok(!ended, "the small request had to wait for the long one");
  const beside = await crowd;
  assert.ok(!ended, "the large request had to wait for the long one");
  assert.deepEqual(texts(beside), texts(alone));
  assert.deepEqual(beside.usage, alone.usage);
  await long;
  await server.idle();
  await server.stop();
});

test("many prompts with many choices each are answered in order", { timeout: 300_000 }, async () => {
  const server = await TrineServer.start({ args: ["-np", String(places), "-c", "512"] });
  const ask = { prompt: ["The fox", "The wolf", "A miller"], n: 3, max_tokens: 12, temperature: 0.8,
                seed: 3, echo: true, logprobs: 1 };
  const answer = await server.json("/v1/completions", ask);
  assert.deepEqual(answer.choices.map((choice) => choice.index), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  for (const choice of answer.choices) {
    const prompt = ask.prompt[Math.floor(choice.index / ask.n)];
    assert.ok(choice.text.startsWith(prompt), choice.text);
    const one = await server.json("/v1/completions", {
      ...ask, prompt, n: 1, seed: ask.seed + (choice.index % ask.n) });
    assert.equal(choice.text, one.choices[0].text);
    assert.deepEqual(choice.logprobs, one.choices[0].logprobs);
  }
  await server.stop();
});

test("the memory of large bodies is given back", { timeout: 300_000 }, async () => {
  const server = await TrineServer.start({ args: ["-np", "2", "-c", "256", "--log-level", "error"] });
  const body = `{"prompt":[${"1,".repeat(3.9 * mib)}1],"max_tokens":1}`;
  const before = server.memory();
  let most = 0;
  for (let round = 0; round < 2; ++round) {
    const answers = Array.from({ length: 12 }, () => server.ask("/v1/completions", body));
    const watch = setInterval(() => (most = Math.max(most, server.memory())), 20);
    for (const answer of await Promise.all(answers)) await answer.text();
    clearInterval(watch);
  }
  assert.ok(most > before + 64 * mib, `the bodies took memory: ${most}, ${before} before`);
  await until(() => server.memory() < before + 48 * mib,
              { within: 60_000, what: `${before} bytes of memory, and not ${server.memory()},` });
  await server.stop();
});
