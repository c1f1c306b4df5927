// A device is lost under load: every stream ends complete, with the text of an undisturbed run, and
// /health tells.
//
//   fault_test.cjs PROGRAM MODEL PLUGIN    the plugin whose devices are several0, several1...
"use strict";
const assert = require("node:assert/strict");
const { test } = require("node:test");
const { expectations, load, makeRequests } = require("./load.cjs");
const { TrineServer, until } = require("./trine_server.cjs");

const plugin = process.argv[4];
const requests = makeRequests();
// What is promised is one second; machines that run tests are busy.
const allowed_ms = 3000;

let expected;
test("faults: undisturbed", { timeout: 180_000 }, async () => {
  const server = await TrineServer.start({ args: ["-np", "16", "-c", "512"] });
  expected = await expectations(server, requests);
  await server.stop();
});

async function serveWithFault(fault, more, use) {
  const server = await TrineServer.start({
    device: "", env: { TRINE_FAULT: fault },
    args: ["-np", "16", "-c", "512", "--plugin", plugin, "-ts", "cpu:12,several0:10,several1:10", ...more] });
  const health = async () => {
    const answer = await fetch(`${server.origin}/health`);
    return { code: answer.status, ...(await answer.json()) };
  };
  assert.equal((await health()).status, "ok");
  // When the fault happened, as far as its warning shows it.
  let happened, streams;
  const totals = {};
  server.child.stderr.on("data", () => {
    if (happened || !/TRINE_FAULT|is lost/.test(server.log)) return;
    happened = performance.now();
    streams = totals.streaming;
  });
  const working = load(server, 32, 8, requests, expected, totals);
  const degraded = until(async () => (await health()).status === "degraded",
                         { within: 60_000, what: "a degraded server" }).then(() => performance.now());
  const [, seen] = await Promise.all([working, degraded]);
  assert.ok(happened, server.log);
  const late = Math.max(0, seen - happened);
  console.log(`${fault}: with ${streams} streams under way; ${totals.complete} complete; degraded ` +
              `${late.toFixed(0)} ms after the fault`);
  assert.ok(streams > 0, "it was lost under load");
  assert.ok(late < allowed_ms);
  assert.ok(totals.complete >= 16);
  const after = await health();
  assert.equal(after.code, 200);
  await use(server, after);
  await server.idle();
  await server.stop();
}

test("faults: a device is lost", { timeout: 300_000 }, () =>
  serveWithFault("several1:lost@token=40", [], async (server, after) => {
    assert.equal(after.status, "degraded");
    const lost = after.tiers.find((tier) => tier.device === "several1");
    assert.equal(lost.state, "lost");
    assert.ok(lost.reason.length > 0);
    const layers = after.tiers.reduce((sum, tier) => sum + (tier.layers ?? 0), 0);
    assert.equal(layers, 32);
    assert.equal(await server.metric("trine_devices_lost"), 1);
    assert.match(server.log, /several1 is lost/);
    const status = await server.json("/v1/status");
    assert.equal(status.state, "degraded");
    assert.equal(status.faults[0].device, "several1");
  }));

test("faults: two devices, one that hangs", { timeout: 300_000 }, () =>
  serveWithFault("several0:lost@token=30;several1:hang@token=60", ["--device-timeout", "5"],
                 async (server, after) => {
    assert.equal(after.status, "degraded");
    await until(async () => (await server.metric("trine_devices_lost")) === 2,
                { what: "the loss of both" });
  }));
