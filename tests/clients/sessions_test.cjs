// /v1/sessions with nothing but fetch: branches are the answers they should be, whoever asks, leaves
// or sends nonsense meanwhile.
//
//   sessions_test.cjs PROGRAM MODEL
"use strict";
const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { Raw, wire } = require("./raw.cjs");
const { TrineServer, sleep, until } = require("./trine_server.cjs");

const other = "another key of these tests";
let server;

before(async () => {
  server = await TrineServer.start({
    args: ["-np", "8", "-c", "512", "--api-key", other, "--sessions", "24"] });
}, { timeout: 300_000 });

after(async () => {
  await server.idle(120_000);
  await server.stop();
  assert.doesNotMatch(server.log, /Sanitizer|runtime error|Assertion|terminate called/);
}, { timeout: 300_000 });

const check = (name, use) => test(name, { timeout: 300_000 }, use);

const open = async (request) => (await server.json("/v1/sessions", request)).id;
const use = (id, what, request = {}) => server.json(`/v1/sessions/${id}/${what}`, request);
const generate = async (id, max_tokens) =>
  (await use(id, "generate", { max_tokens })).choices[0].text;
const look = async (id, query = "") => (await server.ask(`/v1/sessions/${id}${query}`)).json();
const close = (id) => server.ask(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
const complete = async (request) =>
  (await server.json("/v1/completions", request)).choices[0].text;
const fork = async (id, request) => (await use(id, "fork", request)).data.map((one) => one.id);

// A refusal in the API's own form.
async function expectError(answer, status, { param = null, code } = {}) {
  const text = await answer.text();
  assert.equal(answer.status, status, text);
  const { error } = JSON.parse(text);
  assert.ok(error.message.length > 0, text);
  assert.equal(error.param, param, text);
  if (code) assert.equal(error.code, code, text);
}

check("sessions: a text that goes on", async () => {
  const prompt = "Once upon a time there was a fox";
  const id = await open({ prompt, temperature: 0, ignore_eos: true });
  assert.match(id, /^sess-\w+$/);
  const whole = await complete({ prompt, temperature: 0, ignore_eos: true, max_tokens: 40 });
  assert.equal(await generate(id, 15) + await generate(id, 25), whole);
  await use(id, "append", { prompt: " And then" });
  const { token_ids, text, tokens } = await look(id, "?text=true");
  assert.equal(token_ids.length, tokens);
  assert.ok(text.endsWith(" And then"), text);
  assert.equal(await generate(id, 20),
               await complete({ prompt: token_ids, temperature: 0, ignore_eos: true, max_tokens: 20 }));
  const list = await server.json("/v1/sessions");
  assert.ok(list.data.some((one) => one.id === id));
  assert.equal((await close(id)).status, 200);
  await expectError(await close(id), 404, { code: "session_not_found" });
});

check("sessions: a chat", async () => {
  const messages = [{ role: "user", content: "What is the capital of France?" }];
  const id = await open({ messages, temperature: 0 });
  assert.equal(await generate(id, 50), "The capital of France is Paris.");
  await close(id);
});

check("sessions: back to where it was", async () => {
  for (const temperature of [0, 1.2]) {
    const id = await open({ prompt: "A tale: ", temperature, seed: 5, ignore_eos: true });
    const { t } = await use(id, "checkpoint");
    const one = await generate(id, 24);
    for (let i = 0; i < 3; ++i) {
      await use(id, "regress", { t });
      assert.equal(await generate(id, 24), one);
    }
    assert.equal(one, await complete({
      prompt: "A tale: ", temperature, seed: 5, ignore_eos: true, max_tokens: 24 }));
    await close(id);
  }
});

check("sessions: forks by seed", async () => {
  const request = { prompt: "The old king", temperature: 1.2, seed: 1, ignore_eos: true };
  const id = await open(request);
  const texts = [];
  for (const branch of await fork(id, { n: 4, seed: 50 })) {
    texts.push(await generate(branch, 16));
    await close(branch);
  }
  assert.equal(new Set(texts).size, 4);
  assert.equal(texts[3], await complete({ ...request, seed: 53, max_tokens: 16 }));
  const [same] = await fork(id);
  assert.equal(await generate(same, 16), await generate(id, 16));
  await Promise.all([close(id), close(same)]);
});

check("sessions: eight forks at once", async () => {
  const id = await open({ prompt: "The fox met a hare. ".repeat(8), temperature: 0, ignore_eos: true });
  const branches = await fork(id, { n: 8 });
  const direct = [];
  for (const [i, branch] of branches.entries()) {
    await use(branch, "append", { prompt: ` Number ${i} said` });
    const { token_ids } = await look(branch, "?text=true");
    direct.push(await complete({ prompt: token_ids, temperature: 0, ignore_eos: true, max_tokens: 40 }));
  }
  const passes = await server.metric("trine_tier_passes_total");
  assert.deepEqual(await Promise.all(branches.map((branch) => generate(branch, 40))), direct);
  const taken = (await server.metric("trine_tier_passes_total")) - passes;
  console.log(`8 branches of 40 tokens in ${taken} passes`);
  assert.ok(taken < 8 * 40, "they share passes");
  await Promise.all([id, ...branches].map(close));
});

check("sessions: each key has its own", async () => {
  const id = await open({ prompt: "mine", temperature: 0 });
  const as = (key, path, body, method) => fetch(`${server.origin}/v1/sessions${path}`, {
    method, headers: { authorization: `Bearer ${key}` }, body: body && JSON.stringify(body) });
  await expectError(await as(other, `/${id}`, undefined, "GET"), 404, { code: "session_not_found" });
  await expectError(await as(other, `/${id}`, undefined, "DELETE"), 404, { code: "session_not_found" });
  for (const what of ["generate", "checkpoint", "fork"]) {
    await expectError(await as(other, `/${id}/${what}`, {}, "POST"), 404, { code: "session_not_found" });
  }
  assert.deepEqual((await (await as(other, "", undefined, "GET")).json()).data, []);
  await expectError(await as("no key", `/${id}`, undefined, "GET"), 401);
  await close(id);
});

check("sessions: who leaves in mid-stream, and who comes meanwhile", async () => {
  const id = await open({ prompt: "A very long tale", temperature: 0, ignore_eos: true });
  const abort = new AbortController();
  const answer = await server.ask(`/v1/sessions/${id}/generate`, { stream: true }, { signal: abort.signal });
  const reader = answer.body.getReader();
  for (let i = 0; i < 3; ++i) await reader.read();
  await expectError(await server.ask(`/v1/sessions/${id}/generate`, {}), 409, { code: "session_busy" });
  abort.abort();
  await until(async () => !(await look(id)).busy, { what: "the end of what was left" });
  const { token_ids } = await look(id, "?text=true");
  assert.ok(token_ids.length < 500);
  assert.equal(await generate(id, 10),
               await complete({ prompt: token_ids, temperature: 0, ignore_eos: true, max_tokens: 10 }));
  await close(id);
});

check("sessions: those that nobody uses are closed", async () => {
  const hasty = await TrineServer.start({ args: ["-np", "2", "-c", "128", "--session-timeout", "4"] });
  const { id, expires_in } = await hasty.json("/v1/sessions", { prompt: "soon forgotten" });
  assert.equal(expires_in, 4);
  for (let i = 0; i < 3; ++i) {
    await sleep(2000);
    await hasty.json(`/v1/sessions/${id}/generate`, { max_tokens: 1 });  // it is used
  }
  await until(async () => (await hasty.ask(`/v1/sessions/${id}`)).status === 404, { what: "its end" });
  assert.equal(await hasty.metric("trine_sessions_expired_total"), 1);
  await hasty.stop();
});

check("sessions: only so many, and of two keys each its share", async () => {
  for (const { id } of (await server.json("/v1/sessions")).data) await close(id);
  const id = await open({ prompt: "many" });
  await expectError(await server.ask(`/v1/sessions/${id}/fork`, { n: 12 }), 429,
                    { code: "too_many_sessions" });
  const all = await fork(id, { n: 11 });
  await expectError(await server.ask("/v1/sessions", { prompt: "x" }), 429, { code: "too_many_sessions" });
  const headers = { authorization: `Bearer ${other}` };
  const theirs = await (await server.ask("/v1/sessions", { prompt: "y" }, { headers })).json();
  assert.equal(await server.metric("trine_sessions"), 13);
  await server.ask(`/v1/sessions/${theirs.id}`, undefined, { method: "DELETE", headers });
  await Promise.all([id, ...all].map(close));
  assert.equal(await server.metric("trine_sessions"), 0);
});

check("sessions: wrong fields", async () => {
  const wrong = [null, true, 1.5, "?", [{ a: 1 }], { a: [] }];
  const kinds = ["null", "boolean", "number", "string", "array", "object"];
  const fields = {
    "": { prompt: ["string", "array"], temperature: ["number"], top_p: ["number"], seed: ["number"],
          stop: ["string", "array"], grammar: ["string"], response_format: ["object"],
          ignore_eos: ["boolean"], model: ["string"], logit_bias: ["object", "array"] },
    append: { prompt: ["string", "array"] },
    generate: { max_tokens: ["number"], stream: ["boolean"], logprobs: ["number"],
                stream_options: ["object"], model: ["string"], n: ["number"] },
    regress: { t: ["number"] },
    fork: { n: ["number"], seed: ["number"] },
  };
  const id = await open({ prompt: "patient", temperature: 0, ignore_eos: true });
  let refused = 0;
  for (const [what, names] of Object.entries(fields)) {
    const path = what === "" ? "/v1/sessions" : `/v1/sessions/${id}/${what}`;
    const needed = what === "" || what === "append" ? { prompt: "x" } : {};
    for (const [name, taken] of Object.entries(names)) {
      for (const [i, value] of wrong.entries()) {
        if (taken.includes(kinds[i])) continue;
        const required = name === "prompt" || name === "t";
        if (kinds[i] === "null" && !required) continue;
        const answer = await server.ask(path, { ...needed, [name]: value });
        await expectError(answer, 400, { param: name });
        ++refused;
      }
    }
  }
  for (const name of ["temperature", "seed", "stop", "grammar", "prompt", "messages"]) {
    await expectError(await server.ask(`/v1/sessions/${id}/generate`, { [name]: 1 }), 400, { param: name });
  }
  console.log(`${refused} wrong fields refused`);
  assert.equal((await look(id)).tokens, (await server.tokens("patient")).length);
  await close(id);
});

check("sessions: hostile bodies and paths", async () => {
  const id = await open({ prompt: "patient", temperature: 0, ignore_eos: true });
  const texts = [" ", "{", "}", "[]", "null", "7", "\"x\"", "{\"n\":1,}", "{\"n\":NaN}", "{\"n\":1}{}",
                 "{\"n\":\"\\ud800\"}", "{\"n\":1,\"n\":2}", "[".repeat(10_000),
                 `{"prompt":${"[".repeat(200)}${"]".repeat(200)}}`];
  for (const path of ["/v1/sessions", ...["append", "generate", "checkpoint", "regress", "fork"]
    .map((what) => `/v1/sessions/${id}/${what}`)]) {
    for (const text of texts) {
      const answer = await server.ask(path, text);
      assert.equal(answer.status, 400, `${path} ${text.slice(0, 40)}: ${await answer.text()}`);
    }
  }
  for (const [path, status] of [["//", 404], ["/..", 404], [`/${id}/`, 404], ["/%00", 400],
                                [`/${id}%2Ffork`, 405], [`/${"x".repeat(5000)}`, 404]]) {
    const raw = await Raw.connect(server);
    await raw.send(`GET /v1/sessions${path} HTTP/1.1\r\nHost: localhost\r\n` +
                   `Authorization: Bearer ${server.key}\r\n\r\n`);
    assert.equal(await raw.status(), status, path);
    raw.close();
  }
  // Cut off in the middle of a body, and right behind it.
  const bytes = wire(server, `/v1/sessions/${id}/append`, JSON.stringify({ prompt: "x" }));
  for (const length of [bytes.length - 3, bytes.length]) {
    const raw = await Raw.connect(server);
    await raw.send(bytes.subarray(0, length));
    raw.reset();
  }
  await until(async () => !(await look(id)).busy, { what: "a quiet session" });
  const { token_ids } = await look(id, "?text=true");
  assert.equal(await generate(id, 10),
               await complete({ prompt: token_ids, temperature: 0, ignore_eos: true, max_tokens: 10 }));
  await close(id);
});
