// SIGTERM: what is under way is finished, or cancelled when its time is over; a second signal is
// at once; the exit code is 0.
//
//   stop_test.cjs PROGRAM MODEL
"use strict";
const assert = require("node:assert/strict");
const net = require("node:net");
const { test } = require("node:test");
const { Raw, wire } = require("./raw.cjs");
const { streamed } = require("./stream_client.cjs");
const { TrineServer, sleep, until } = require("./trine_server.cjs");

const story = { prompt: "Once upon a time", temperature: 0 };
const endless = { ...story, ignore_eos: true, max_tokens: 100_000 };

const check = (name, use) => test(name, { timeout: 180_000 }, use);

// A server whose context is long, so that an endless answer takes longer than any test.
const start = (patience, places = 4) => TrineServer.start({
  args: ["-np", String(places), "-c", "2048", "--stop-timeout", String(patience)] });

async function ended(server, within) {
  const ms = await server.ended();
  assert.deepEqual(server.exit, { code: 0, signal: null }, server.log.slice(-2000));
  console.log(`ended within ${ms.toFixed(0)} ms`);
  assert.ok(ms < within, `${ms} ms`);
}

const running = (server, n) => until(
  async () => (await server.metric("trine_requests_running")) === n, { what: `${n} requests` });

check("stop: what is under way is finished", async () => {
  const server = await start(150);
  const request = { ...story, ignore_eos: true, max_tokens: 200, stream_options: { include_usage: true } };
  const expected = await streamed(server, "/v1/completions", request);
  let signalled = false;
  const answers = [];
  for (let i = 0; i < 6; ++i) {  // two of them wait for a place
    answers.push(streamed(server, "/v1/completions", request, { read: async (n) => {
      if (n === 3 && !signalled) {
        signalled = true;
        server.signal();
      }
    } }));
  }
  for (const answer of await Promise.all(answers)) {
    assert.equal(answer.text, expected.text);
    assert.ok(answer.done);
  }
  assert.ok(signalled);
  await ended(server, 10_000);
});

check("stop: nobody new is let in", async () => {
  const server = await start(150);
  const kept = await Raw.connect(server);  // idle
  const told = {};
  const answer = await streamed(server, "/v1/completions", { ...endless, max_tokens: 1500 }, {
    read: async (n) => {
      if (n !== 3) return;
      server.signal();
      const health = await until(async () => {
        const response = await fetch(`${server.origin}/health`);
        return response.status === 503 && response;
      }, { what: "a health that says so" });
      told.health = (await health.value.json()).status;
      told.retry = health.value.headers.get("retry-after");
      const refused = await server.ask("/v1/completions", story);
      told.status = refused.status;
      told.message = (await refused.json()).error.message;
      told.state = (await server.json("/v1/status")).state;
      told.up = await server.metric("trine_up");
    } });
  assert.deepEqual(told, { health: "stopping", retry: "2", status: 503, state: "stopping", up: 0,
                           message: "the server is stopping" });
  assert.ok(answer.done && answer.error === undefined);
  await kept.closed;
  await ended(server, 10_000);
  const code = await Raw.connect(server).then(() => "", (error) => error.code);
  assert.equal(code, "ECONNREFUSED");
});

check("stop: what takes too long is cancelled, and told so", async () => {
  const server = await start(1, 2);
  let frames = 0;
  const read = async (n) => { frames = Math.max(frames, n); };
  const stream = streamed(server, "/v1/completions", endless, { read });
  const response = streamed(server, "/v1/responses", {
    input: "Tell me of a king.", temperature: 0, ignore_eos: true });
  await running(server, 2);
  const whole = server.ask("/v1/completions", endless);  // waits for a place
  await until(async () => (await server.metric("trine_requests_waiting")) === 1, { what: "a queue" });
  await until(() => frames > 2, { what: "the stream" });
  server.signal();
  const cut = await stream;
  assert.equal(cut.status, 200);
  assert.match(cut.error.message, /stopping/);
  assert.equal(cut.error.code, "unavailable");
  assert.equal(cut.done, false);
  assert.equal((await response).finish, "failed");
  const refused = await whole;
  assert.equal(refused.status, 503);
  assert.match((await refused.json()).error.message, /stopping/);
  await ended(server, 10_000);
});

check("stop: an answer that is not streamed is cancelled too", async () => {
  const server = await start(0);
  const answer = server.ask("/v1/completions", endless);
  await running(server, 1);
  server.signal("SIGINT");
  const refused = await answer;
  assert.equal(refused.status, 503);
  assert.match((await refused.json()).error.message, /stopping/);
  await ended(server, 10_000);
});

check("stop: the second signal is at once", async () => {
  const server = await start(3600);
  const answer = streamed(server, "/v1/completions", endless).catch(() => "cut");
  await running(server, 1);
  server.signal();
  await sleep(500);
  assert.equal(server.exit, undefined);
  server.signal();
  await answer;
  await ended(server, 10_000);
});

check("stop: with nobody there, and with clients that do nothing", async () => {
  const server = await start(150);
  const idle = [];
  for (let i = 0; i < 20; ++i) idle.push(await Raw.connect(server));
  await idle[0].send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Le");
  await sleep(100);
  server.signal();
  await ended(server, 15_000);
  await Promise.all(idle.map((raw) => raw.closed));
});

check("stop: with a client that does not read", async () => {
  const server = await start(1);
  const deaf = net.connect(server.port, "127.0.0.1").pause().on("error", () => {});
  const request = { messages: [{ role: "user", content: "Tell me a story" }], n: 4, stream: true,
                    ignore_eos: true, logprobs: true, top_logprobs: 20, max_tokens: 1900 };
  deaf.write(wire(server, "/v1/chat/completions", JSON.stringify(request)));
  await running(server, 1);
  // Until all that stands between the two is full.
  let before = -1;
  await until(async () => {
    const now = await server.metric("trine_generated_tokens_total");
    const stands = now === before;
    before = now;
    await sleep(500);
    return stands;
  }, { within: 60_000, what: "tokens that nobody takes" });
  assert.equal(await server.metric("trine_requests_running"), 1);
  server.signal();
  await ended(server, 8_000);
  deaf.destroy();
});

check("stop: while the model is loaded", async () => {
  const server = await TrineServer.start({ loaded: false, env: { TRINE_FAULT: "cpu:slow=2s@open=1" } });
  assert.equal((await fetch(`${server.origin}/health`)).status, 503);
  server.signal();
  await ended(server, 20_000);
});
