// Ratios and speeds over the last seconds, from differences of counters.

const windowS = 3;

// Names a tier together with its layers, because its counters start at 0 when layers are placed on
// it.
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
      this.samples = [];  // the server has restarted
    }
    this.samples.push({ time, status });
    while (this.samples.length > 2 && this.samples[1].time <= time - windowS) this.samples.shift();
  }

  get spanS() {
    return this.samples.length < 2 ? 0 : this.samples.at(-1).time - this.samples[0].time;
  }

  // Returns tokens per second: {generated, prompt}.
  tokens() {
    if (this.spanS <= 0) return { generated: 0, prompt: 0 };
    const first = this.samples[0].status.tokens;
    const last = this.samples.at(-1).status.tokens;
    return {
      generated: Math.max(0, last.generated - first.generated) / this.spanS,
      prompt: Math.max(0, last.prompt - first.prompt) / this.spanS,
    };
  }

  // Returns fractions of the time: {busy, bubbles}. Bubbles: the tier lacked work or room while
  // passes were in flight elsewhere. Returns null for a tier without counters, such as a lost one.
  tier(tier) {
    if (!Number.isFinite(tier.passes)) return null;
    const now = this.samples.at(-1);
    // Goes back to the oldest sample of this placement: stops where the tier was not there or had
    // done more passes.
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
