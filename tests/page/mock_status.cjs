// /v1/status of a machine with three tiers at work: passes go from one to the next, and each does
// with its time what its counters say.
"use strict";

const begin = process.hrtime.bigint();
const nowUs = () => Number((process.hrtime.bigint() - begin) / 1000n) + 10_000_000;

const devices = [
  { device: "cpu", name: "Neoverse-V1", first_layer: 0, end_layer: 4, embedding: true, head: false, takesUs: 22_000 },
  { device: "igpu", name: "Radeon 780M", first_layer: 4, end_layer: 12, embedding: false, head: false, takesUs: 31_000 },
  { device: "dgpu", name: "Radeon RX 7900 XTX", first_layer: 12, end_layer: 32, embedding: false, head: true, takesUs: 40_000 },
];
const roundUs = 60_000;

// machine: {idle, lost: index, lostAtUs, progress}
function statusOf({ state, machine }) {
  const now = nowUs();
  if (machine.lost !== undefined) machine.lostAtUs ??= now;
  const works = (i) => !machine.idle && i !== machine.lost;
  const rounds = Math.floor(now / roundUs);
  const tiers = devices.map(({ takesUs, ...tier }, i) => ({
    ...tier, state: i === machine.lost ? "lost" : "ok", reason: i === machine.lost ? "device lost in pass 17" : "",
    weights_bytes: (tier.end_layer - tier.first_layer) * 30e6, kv_bytes: 64e6, scratch_bytes: 9e6,
    busy_ms: works(i) ? (rounds * takesUs) / 1000 : 0, blocked_ms: works(i) ? rounds * 2 : 0,
    waiting_ms: works(i) ? (rounds * (roundUs - takesUs)) / 1000 - rounds * 2 : 0,
    passes: works(i) ? rounds : 0, tokens: works(i) ? rounds * 4 : 0, bytes_in: rounds * 8192, bytes_out: rounds * 8192,
  }));
  const faults = machine.lost === undefined ? [] : [
    { device: devices[machine.lost].device, reason: "device lost in pass 17", seconds_ago: (now - machine.lostAtUs) / 1e6 }];
  return {
    state: faults.length > 0 && state === "ok" ? "degraded" : state, model: "mock-1b", uptime_s: now / 1e6,
    load_progress: machine.progress ?? 1, tiers: state === "loading" ? [] : tiers,
    requests: { running: machine.idle ? 0 : 3, queued: machine.idle ? 0 : 2, slots: 8, completed: 41, failed: 1, cancelled: 2 },
    tokens: { prompt: 4000, generated: machine.idle ? 9000 : rounds * 4, cached: 1000 },
    kv: { blocks: 512, free: 384, shared: 12 }, faults,
    timeline: { now_us: now, events: events(now, works) },
  };
}

function events(now, works) {
  const found = [];
  devices.forEach(({ takesUs }, i) => {
    for (let round = Math.floor((now - 3e6) / roundUs); works(i) && (round + 1) * roundUs < now; round += 1) {
      const at = round * roundUs + i * 6000;
      found.push({ tier: i, kind: "pass", begin_us: at, end_us: at + takesUs, tokens: 4, sequences: 4 });
    }
  });
  return found;
}

module.exports = { statusOf };
