// Requests that are almost right, the same for the same seed.
"use strict";
const { endpoints, sessionEndpoints, validRequest } = require("./valid_requests.cjs");

class Random {
  constructor(seed) {
    this.state = seed;
  }
  // From 0 to n - 1.
  below(n) {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % n;
  }
  pick(list) {
    return list[this.below(list.length)];
  }
}

const values = [null, true, false, 0, -1, 1, 2.5, 1e308, -1e-300, 2 ** 53, 4294967296, "", "x",
                "\u0000", "\ud83d", "👋", "x".repeat(5000), [], {}, [[]], [null], [1, 2], { a: {} },
                { type: "json_schema", json_schema: { schema: { type: "array" } } },
                { type: "function", function: { name: "f" } },
                [{ role: "assistant", tool_calls: [{}] }], { $ref: "#" }, { pattern: "(a*)*b" }];
const scraps = ["{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "\\ud800", "null", "1e9999", "-",
                "0x1", "\u0000", "\xff\xfe", "/*", "NaN", "\r\n\r\n", "\"a\":1,", "\"n\":2,"];

// A member somewhere in it, as [what holds it, its name].
function somewhere(random, value) {
  let place = null;
  while (value !== null && typeof value === "object" && Object.keys(value).length > 0) {
    const name = random.pick(Object.keys(value));
    place = [value, name];
    value = value[name];
    if (random.below(3) === 0) break;
  }
  return place;
}

function mutateJson(random, request) {
  for (let n = 1 + random.below(3); n > 0; --n) {
    const place = somewhere(random, request);
    if (!place) return;
    const [holder, name] = place;
    if (random.below(4) === 0) delete holder[name];
    else holder[name] = structuredClone(random.pick(values));
  }
}

function mutateBytes(random, bytes) {
  for (let n = 1 + random.below(4); n > 0; --n) {
    const at = random.below(bytes.length + 1), length = random.below(12);
    const rest = bytes.subarray(Math.min(bytes.length, at + length));
    const what = random.below(4);
    if (what === 0) bytes = Buffer.concat([bytes.subarray(0, at), rest]);
    else if (what === 1) {
      const scrap = Buffer.from(random.pick(scraps), "latin1");
      bytes = Buffer.concat([bytes.subarray(0, at), scrap, bytes.subarray(at)]);
    } else if (what === 2) {
      bytes = Buffer.concat([bytes.subarray(0, at + length), bytes.subarray(at)]);
    } else if (bytes.length > 0) {
      bytes = Buffer.from(bytes);
      bytes[Math.min(at, bytes.length - 1)] ^= 1 << random.below(8);
    }
  }
  return bytes;
}

// What has no body.
const looks = [["GET", "/v1/sessions"], ["GET", "/v1/sessions/{id}"], ["GET", "/v1/sessions/{id}?text=true"],
               ["GET", "/v1/sessions/{id}?text=x"], ["DELETE", "/v1/sessions/{id}"],
               ["DELETE", "/v1/sessions/{id}/checkpoints/0"], ["DELETE", "/v1/sessions/{id}/checkpoints/x"],
               ["DELETE", "/v1/sessions/{id}/checkpoints/99999999999999999999"]];
const names = ["sess-none", "%00", "{id}", "a%2Fb", "x".repeat(3000), "sess-", "%F0%9F%91%8B"];

// With the name of a session in it, if it wants one; sometimes not the one that was meant.
function named(random, path, id) {
  return path.replace("{id}", id === undefined || random.below(12) === 0 ? random.pick(names) : id);
}

// The `number`th request of a seed: {method, path, body}, with some of the fields there are. Every
// other one is about sessions; {id} in its path stands for one that is open.
function fuzzed(seed, number) {
  const random = new Random(seed * 1000003 + number);
  const ofSessions = random.below(2) === 0;
  if (ofSessions && random.below(4) === 0) {
    const [method, path] = random.pick(looks);
    return { method, path, random };
  }
  const path = random.pick(Object.keys(ofSessions ? sessionEndpoints : endpoints));
  const request = structuredClone(validRequest(path));
  for (const name of Object.keys(request)) {
    const needed = ["messages", "prompt", "input", "content", "tokens", "t"].includes(name);
    // Those that say how long an answer may be stay more often: it is not what is tried here.
    if (!needed && random.below(name.startsWith("max") ? 8 : 2) === 0) delete request[name];
  }
  const answers = !ofSessions || path.endsWith("/generate");
  if (random.below(2) === 0 && answers) request.stream = true;
  // What a session goes through is made of requests that are right.
  if (random.below(ofSessions ? 2 : 4) !== 0) mutateJson(random, request);
  let body = Buffer.from(JSON.stringify(request));
  if (random.below(ofSessions ? 4 : 2) === 0) body = mutateBytes(random, body);
  return { method: "POST", path, body, random };
}

module.exports = { fuzzed, mutateBytes, named };
