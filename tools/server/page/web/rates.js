// Ratios and speeds of the last seconds, from the differences of counters.

const windowS = 3;

// Counters of a tier count from when its layers were placed there.
export function tierKey(tier) {
  return `${tier.device} ${tier.first_layer}-${tier.end_layer}`;
}

export class Rates {
  constructor() {
    this.samples = [];
  }

  add(status) {
    const time = (status.timeline?.now_us ?? status.uptime_s * 1e6) / 1e6;
    const last = this.samples.at(-1);
    if (last && (time < last.time || status.tokens.generated < last.status.tokens.generated)) {
      this.samples = [];  // another server
    }
    this.samples.push({ time, status });
    while (this.samples.length > 2 && this.samples[1].time <= time - windowS) this.samples.shift();
  }

  get spanS() {
    return this.samples.length < 2 ? 0 : this.samples.at(-1).time - this.samples[0].time;
  }

  // Tokens each second: {generated, prompt}.
  tokens() {
    if (this.spanS <= 0) return { generated: 0, prompt: 0 };
    const first = this.samples[0].status.tokens;
    const last = this.samples.at(-1).status.tokens;
    return {
      generated: Math.max(0, last.generated - first.generated) / this.spanS,
      prompt: Math.max(0, last.prompt - first.prompt) / this.spanS,
    };
  }

  // Shares of the time: {busy, bubbles}. Bubbles: without work or without room while passes were
  // under way elsewhere. Null for a tier without counters: one that is lost has none.
  tier(tier) {
    if (!Number.isFinite(tier.passes)) return null;
    const now = this.samples.at(-1);
    // Back to where it was placed: not beyond a time when it was not there, or had done more.
    let old = tier;
    let before = now;
    for (const sample of [...this.samples].reverse()) {
      const one = sample.status.tiers.find((other) => tierKey(other) === tierKey(tier));
      if (!one || !(one.passes <= old.passes)) break;
      old = one;
      before = sample;
    }
    const spanMs = now ? (now.time - before.time) * 1000 : 0;
    if (spanMs <= 0) return { busy: 0, bubbles: 0 };
    const share = (ms) => Math.min(1, Math.max(0, ms / spanMs));
    const busy = share(tier.busy_ms - old.busy_ms);
    const bubbles = share(tier.waiting_ms - old.waiting_ms + tier.blocked_ms - old.blocked_ms);
    return { busy, bubbles: Math.min(bubbles, 1 - busy) };
  }
}
