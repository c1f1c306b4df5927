// 64 streams at once for 12 seconds (300 with TRINE_LONG): each is what it is alone, some clients
// leave, err or read slowly, and the server's memory does not grow.
//
//   load_test.cjs PROGRAM MODEL
//
// TRINE_LOAD_SECONDS: for how long instead.
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { expectations, load, makeRequests } = require("./load.cjs");
const { TrineServer } = require("./trine_server.cjs");

const seconds = Number(process.env.TRINE_LOAD_SECONDS ?? (process.env.TRINE_LONG ? 300 : 12));
const mib = (bytes) => `${(bytes / (1 << 20)).toFixed(1)} MiB`;
const quantile = (values, q) => [...values].sort((a, b) => a - b)[Math.floor(values.length * q)];
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

test("load: 64 clients", { timeout: (seconds * 2 + 240) * 1000 }, async () => {
  // A small cache: all of its memory is in use soon.
  const server = await TrineServer.start({
    args: ["-np", "32", "-c", "256", "--log-level", "warning"] });
  const requests = makeRequests();
  const expected = await expectations(server, requests);
  const memory = [];
  const watch = setInterval(() => memory.push(server.memory()), 250);
  const begin = performance.now();
  const totals = await load(server, 64, seconds, requests, expected);
  const took = (performance.now() - begin) / 1000;
  clearInterval(watch);
  const idle = await server.idle();
  console.log(`${totals.complete} streams, ${totals.left} left, ${totals.refused} refused in ` +
              `${took.toFixed(1)} s: ${(totals.tokens / took).toFixed(0)} tokens/s; first text after ` +
              `${quantile(totals.first_ms, 0.5).toFixed(0)} ms (p95: ` +
              `${quantile(totals.first_ms, 0.95).toFixed(0)}); idle after ${idle.toFixed(0)} ms`);
  assert.ok(totals.complete >= 64, "every client had its turn");
  assert.ok(totals.left > 0 && totals.refused > 0);

  // As the server counts them: nothing failed but what was wrong, nobody left but who did.
  const text = await (await server.ask("/metrics")).text();
  const byStatus = {};
  const line = /^trine_requests_total\{endpoint="\/v1\/.*status="(\d+)"\} (\d+)$/gm;
  for (const [, status, n] of text.matchAll(line)) {
    byStatus[status] = (byStatus[status] ?? 0) + Number(n);
  }
  assert.deepEqual(Object.keys(byStatus).filter((s) => !["200", "400", "499"].includes(s)), []);
  assert.equal(byStatus[400], totals.refused);
  assert.ok((byStatus[499] ?? 0) <= totals.left);
  assert.equal(await server.metric("trine_http_timeouts_total"), 0);

  const third = Math.floor(memory.length / 3), slice = Math.max(1, Math.floor(memory.length / 10));
  const early = mean(memory.slice(third, third + slice)), late = mean(memory.slice(-slice));
  console.log(`memory at first ${mib(memory[0])}, after a third ${mib(early)}, at the end ${mib(late)}`);
  assert.ok(late < early * 1.05 + (8 << 20), `memory grew from ${mib(early)} to ${mib(late)}`);
  await server.stop();
});
