// Clients that mean harm, or are broken: they get the status that is right, others their answers,
// and the server ends as it should.
//
//   hostile_test.cjs PROGRAM MODEL
//
// TRINE_FUZZ_SEED: another seed. A server built with a sanitizer shows what it finds when it ends.
"use strict";
const assert = require("node:assert/strict");
const { after, before, test } = require("node:test");
const { fuzzed, mutateBytes, named } = require("./fuzz.cjs");
const { Raw, exchange, wire } = require("./raw.cjs");
const { TrineServer, sleep, until } = require("./trine_server.cjs");
const { endpoints, sessionEndpoints, validRequest } = require("./valid_requests.cjs");

const count = process.env.TRINE_LONG ? 10_000 : 500;
const seed = Number(process.env.TRINE_FUZZ_SEED ?? 2026);
const question = { messages: [{ role: "user", content: "What is the capital of France?" }],
                   temperature: 0 };
let server;

before(async () => {
  server = await TrineServer.start({
    args: ["-np", "16", "-c", "128", "--sessions", "8", "--session-timeout", "2", "--max-body", "1", "--max-connections", "120",
           "--read-timeout", "2", "--log-level", "error"] });
}, { timeout: 300_000 });

after(async () => {
  await server.idle(120_000);
  await server.stop();
  assert.doesNotMatch(server.log, /Sanitizer|runtime error|Assertion|terminate called/);
}, { timeout: 300_000 });

const check = (name, use, timeout = 300_000) => test(name, { timeout }, async () => {
  await use();
  // It has taken no harm.
  const answer = await server.json("/v1/chat/completions", question);
  assert.equal(answer.choices[0].message.content, "The capital of France is Paris.");
});

// A refusal in the API's own form.
async function expectRefused(path, body, status, what) {
  const answer = await server.ask(path, body);
  const text = await answer.text();
  assert.equal(answer.status, status, `${what}: ${text.slice(0, 400)}`);
  const { error } = JSON.parse(text);
  assert.ok(error.message.length > 0, what);
  for (const name of ["type", "param", "code"]) assert.ok(name in error, what);
  return error;
}

check("hostile: what is no JSON", async () => {
  const texts = ["", " ", "{", "}", "[]", "null", "7", "\"x\"", "{\"a\":1,}", "{'a':1}", "{\"a\":NaN}",
                 "{\"a\":1}{}", "{\"a\":01}", "{\"a\":\"\\x\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\t\"}",
                 "{\"a\":1e99999}", "{\"prompt\":\"x\",\"prompt\":\"y\"}", "\ufeff{", "{\"a\":/**/1}",
                 "data: {}", "<xml/>", "a=b&c=d"];
  for (const path of Object.keys(endpoints)) {
    for (const text of texts) await expectRefused(path, text, 400, `${path} ${text}`);
    const bytes = wire(server, path, Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]));
    assert.equal(await exchange(server, bytes), 400);
  }
});

check("hostile: deep nesting", async () => {
  for (const [open, close] of [["[", "]"], ["{\"a\":", "}"]]) {
    for (const depth of [200, 10_000, 150_000]) {
      const value = open.repeat(depth) + (depth === 200 ? "1" + close.repeat(depth) : "");
      for (const path of Object.keys(endpoints)) {
        await expectRefused(path, `{"prompt":"x","input":"x","stop":${value}}`, 400, `${depth} ${open}`);
      }
    }
  }
  // Nested schemas are a language of their own.
  let schema = { type: "integer" };
  for (let i = 0; i < 60; ++i) schema = { type: "object", properties: { a: schema } };
  const answer = await server.ask("/v1/chat/completions", {
    ...question, max_tokens: 4, response_format: { type: "json_schema", json_schema: { schema } } });
  assert.ok(answer.status === 200 || answer.status === 400, `${answer.status}`);
  await answer.text();
  await expectRefused("/v1/chat/completions", {
    ...question, grammar: "root ::= " + "(".repeat(50_000) }, 400, "a grammar of parentheses");
  await expectRefused("/v1/chat/completions", { ...question, grammar: "root ::= root" }, 400,
                      "a grammar without an end");
});

check("hostile: huge bodies", async () => {
  const huge = JSON.stringify({ prompt: "x".repeat(1 << 21) });
  await expectRefused("/v1/completions", huge, 413, "2 MiB");
  // Said, and not sent.
  assert.equal(await exchange(server, wire(server, "/v1/completions", "", {
    "Content-Length": "99999999999999" })), 413);
  assert.equal(await exchange(server, wire(server, "/v1/completions", "", {
    "Content-Length": "99999999999999999999999" })), 400);
  // In chunks, without an end.
  const raw = await Raw.connect(server);
  await raw.send(wire(server, "/v1/completions", "", {
    "Content-Length": null, "Transfer-Encoding": "chunked" }));
  const chunk = Buffer.from(`10000\r\n${"x".repeat(65536)}\r\n`);
  for (let i = 0; i < 40 && !raw.text; ++i) raw.socket.write(chunk);
  assert.equal(await raw.status(), 413);
  raw.close();
  const header = `GET /health HTTP/1.1\r\nHost: localhost\r\nX: ${"y".repeat(1 << 20)}\r\n\r\n`;
  assert.ok([400, 431].includes(await exchange(server, header)));
  // As large as it may be, and far too long for the model.
  const long = JSON.stringify({ prompt: "word ".repeat(200_000) });
  const error = await expectRefused("/v1/completions", long, 400, "200,000 words");
  assert.equal(error.code, "context_length_exceeded");
});

check("hostile: wrong types in every field", async () => {
  const wrong = { null: null, boolean: true, number: 1.5, string: "?", array: [{ a: 1 }], object: { a: [] } };
  let refused = 0;
  for (const [path, fields] of Object.entries(endpoints)) {
    assert.equal((await server.ask(path, validRequest(path))).status, 200, path);
    for (const [name, [, ...kinds]] of Object.entries(fields)) {
      for (const [kind, value] of Object.entries(wrong)) {
        const request = { ...validRequest(path), stream: false, [name]: value };
        const answer = await server.ask(path, request);
        const text = await answer.text(), what = `${path} ${name}: ${kind}: ${text.slice(0, 300)}`;
        assert.ok(answer.status === 200 || answer.status === 400, what);
        if (kind === "null" || kinds.includes(kind)) continue;
        assert.equal(answer.status, 400, what);
        const { param } = JSON.parse(text).error;
        assert.ok(param === name || param?.startsWith(`${name}.`) || param?.startsWith(`${name}[`), what);
        ++refused;
      }
    }
  }
  console.log(`${refused} wrong types refused`);
});

check("hostile: slowloris", async () => {
  const bytes = wire(server, "/v1/chat/completions", JSON.stringify(question));
  const head = bytes.indexOf("\r\n\r\n") + 4;
  const slow = [];
  for (let i = 0; i < 60; ++i) {
    const raw = await Raw.connect(server);
    // A third sends nothing, a third its head, a third its body, a byte at a time.
    if (i % 3 === 2) await raw.send(bytes.subarray(0, head));
    slow.push(raw);
  }
  const begin = performance.now();
  let open = slow.length;
  for (const raw of slow) raw.closed.then(() => --open);
  for (let sent = 0; open > 0 && performance.now() - begin < 60_000; ++sent) {
    slow.forEach((raw, i) => {
      if (i % 3 !== 0 && !raw.socket.destroyed) {
        raw.socket.write(bytes.subarray(i % 3 === 2 ? head + sent : sent).subarray(0, 1));
      }
    });
    if (sent % 4 === 0) {
      const answer = await server.json("/v1/chat/completions", { ...question, max_tokens: 2 });
      assert.ok(answer.choices[0].message.content.length > 0);
    }
    await sleep(200);
  }
  const ms = performance.now() - begin;
  console.log(`60 slow connections were closed within ${ms.toFixed(0)} ms`);
  assert.equal(open, 0);
  slow.forEach((raw, i) => {
    if (i % 3 !== 0) assert.match(raw.text, /^HTTP\/1\.1 408 /, `${i}: ${raw.text}`);
  });
});

check("hostile: half-closed, reset and abandoned connections", async () => {
  const bytes = wire(server, "/v1/completions", JSON.stringify({
    prompt: "Once", max_tokens: 100, ignore_eos: true, stream: true }));
  const broken = [], left = [];
  for (let i = 0; i < 90; ++i) {
    const raw = await Raw.connect(server);
    const part = bytes.subarray(0, i % 2 === 0 ? bytes.length : (i * 37) % bytes.length);
    await raw.send(part);
    if (i % 6 >= 4) await sleep(10);
    if (i % 3 === 0) raw.halfClose();
    if (i % 3 === 1) raw.reset();
    if (i % 3 === 2) raw.close();
    if (i % 6 === 3 && part.length > 0) broken.push(raw.status());
    if (i % 6 === 0) left.push(raw.status());
  }
  // A request that ends in the middle is no request; who ends after it is taken for gone.
  for (const status of await Promise.all(broken)) assert.equal(status, 400);
  for (const status of await Promise.all(left)) assert.ok([200, 499].includes(status), `${status}`);
  await server.idle();
});

check("hostile: more connections than there may be", async () => {
  const all = [];
  for (let i = 0; i < 160; ++i) all.push(await Raw.connect(server));
  const refused = await until(() => all.filter((raw) => raw.text.startsWith("HTTP/1.1 503")).length >= 20,
                              { what: "refusals" });
  assert.ok(refused);
  all.forEach((raw) => raw.close());
  await until(async () => (await server.metric("trine_connections")) < 20, { what: "their end" });
}, 120_000);

async function inLanes(n, lanes, use) {
  let next = 0;
  const lane = async () => {
    while (next < n) await use(next++);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

// Sessions that fuzzed requests have opened and may use.
class OpenSessions {
  ids = [];
  // One of them, or undefined.
  pick(random) {
    return this.ids.length === 0 ? undefined : random.pick(this.ids);
  }
  learn(id, status, text) {
    const json = () => JSON.parse(text);
    if (status === 404 && json().error.code === "session_not_found") {
      this.ids = this.ids.filter((one) => one !== id);
    }
    if (status !== 200 || !text.startsWith("{")) return;  // or a stream
    const { object, data, id: name } = json();
    if (object === "session") this.add(name);
    if (object === "list" && data?.[0]?.object === "session") data.forEach((one) => this.add(one.id));
  }
  add(id) {
    if (!this.ids.includes(id)) this.ids.push(id);
  }
}

// What a path may say beside 200 and 400: sessions are shared by all lanes, and take room.
function mayAlsoSay(path, status, error) {
  if (status === 503) return error.code === "unavailable" && /cache|blocks/.test(error.message);
  if (!path.startsWith("/v1/sessions")) return false;
  const codes = { 404: ["session_not_found", "checkpoint_not_found", null], 429: ["too_many_sessions"],
                  409: ["session_busy", "session_closed"] };
  return codes[status]?.includes(error.code) ?? false;
}

check(`hostile: ${count} fuzzed requests`, async () => {
  const seen = {}, right = {}, open = new OpenSessions();
  const opened = await server.metric("trine_sessions_opened_total");
  await inLanes(count, 8, async (i) => {
    const { method, path: pattern, body, random } = fuzzed(seed, i);
    if (open.ids.length === 0 && pattern.includes("{id}")) {
      const made = await server.ask("/v1/sessions", { prompt: "Hi" });
      open.learn(undefined, made.status, await made.text());
    }
    const id = open.pick(random), path = named(random, pattern, id);
    const answer = await server.ask(path, body, { method, signal: AbortSignal.timeout(120_000) });
    const text = await answer.text(), { status } = answer;
    seen[status] = (seen[status] ?? 0) + 1;
    const what = () => `${seed}/${i}: ${method} ${path} ${body?.toString("latin1").slice(0, 2000)}: ` +
                       `${status} ${text.slice(0, 500)}`;
    if (status === 200) {
      right[`${method} ${pattern}`] = (right[`${method} ${pattern}`] ?? 0) + 1;
      // Nothing goes wrong in the middle of what has begun, but for sessions that others close.
      const broken = /"error":\{/.test(text);
      assert.ok(!broken || (pattern.startsWith("/v1/sessions") && /session_closed/.test(text)), what());
    } else {
      const { error } = JSON.parse(text);
      assert.ok(error.message, what());
      assert.ok(status === 400 || mayAlsoSay(pattern, status, error), what());
    }
    open.learn(id, status, text);
    // Or there would soon be room for none.
    if (status === 429 && id) await server.ask(`/v1/sessions/${id}`, undefined, { method: "DELETE" });
    if (i % 50 === 0) assert.ok((await server.metric("trine_sessions")) <= 8);
  });
  console.log(`seed ${seed}: ${JSON.stringify(seen)}\n${JSON.stringify(right, null, 1)}`);
  assert.ok(seen[200] > count / 20 && seen[400] > count / 20, "they are almost right");
  assert.ok((seen[503] ?? 0) < count / 50, "there is room, as a rule");
  for (const path of [...Object.keys(endpoints), ...Object.keys(sessionEndpoints)]) {
    assert.ok(right[`POST ${path}`] > 0, `${path} was never right`);
  }
  // Nobody closes what is left, and it goes all the same.
  assert.ok((await server.metric("trine_sessions_opened_total")) > opened);
  await until(async () => (await server.metric("trine_sessions")) === 0, { what: "the end of all sessions" });
}, 3_600_000);

check(`hostile: ${count} fuzzed connections`, async () => {
  const seen = {}, open = new OpenSessions();
  for (let i = 0; i < 4; ++i) open.add((await server.json("/v1/sessions", { prompt: "Hi" })).id);
  await inLanes(count, 8, async (i) => {
    const { method, path: pattern, body, random } = fuzzed(seed + 1, i);
    const path = named(random, pattern, open.pick(random));
    const plain = wire(server, path, body ?? "").toString("latin1").replace(/^POST/, method);
    const bytes = mutateBytes(random, Buffer.from(plain, "latin1"));
    const raw = await Raw.connect(server);
    await raw.send(bytes);
    raw.halfClose();  // or it would wait for more
    const status = await raw.status(120_000);
    raw.close();
    seen[status] = (seen[status] ?? 0) + 1;
    if (status === 404 || status === 429) {  // those there were may have gone
      const { data } = await server.json("/v1/sessions");
      open.ids = data.map((one) => one.id);
    }
    assert.ok(status < 500 || status === 501 || status === 505 ||
              (status === 503 && /unavailable/.test(raw.text)),
              `${seed + 1}/${i}: ${status} for ${bytes.toString("latin1").slice(0, 2000)}`);
  });
  console.log(`seed ${seed + 1}: ${JSON.stringify(seen)}`);
}, 3_600_000);
