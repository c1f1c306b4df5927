// Events of the timeline as they come in, poll by poll, and the server's clock.

const keepUs = 8e6;

export class TimelineStore {
  constructor() {
    this.clear();
  }

  clear() {
    this.rows = [];  // by tier: Map from an event's name to the event
    this.knownUs = 0;
    this.offsetUs = null;
  }

  // `atMs`: this browser's clock when the answer came.
  add({ now_us: nowUs, events }, tierCount, atMs) {
    if (nowUs < this.knownUs) this.clear();  // another server
    this.knownUs = nowUs;
    this.setClock(nowUs - atMs * 1000);
    while (this.rows.length < tierCount) this.rows.push(new Map());
    for (const event of events) {
      const row = this.rows[event.tier];
      // One that was under way comes again with another end.
      row?.set(`${event.kind} ${event.begin_us}`, event);
    }
    for (const row of this.rows) {
      for (const [name, event] of row) if (event.end_us < nowUs - keepUs) row.delete(name);
    }
  }

  // An answer is older than it looks, never younger: the largest offset seen is the truest. It gives
  // way slowly, as clocks drift.
  setClock(offsetUs) {
    const far = this.offsetUs === null || Math.abs(offsetUs - this.offsetUs) > 2e6;
    this.offsetUs = far ? offsetUs : Math.max(offsetUs, this.offsetUs - 5000);
  }

  // The server's time to show at the right edge: a little behind, so that it moves evenly between
  // polls, and never beyond what is known.
  headUs(atMs, delayUs) {
    if (this.offsetUs === null) return 0;
    return Math.min(atMs * 1000 + this.offsetUs - delayUs, this.knownUs);
  }

  // Events of a tier that overlap the span.
  between(tier, beginUs, endUs) {
    return [...(this.rows[tier]?.values() ?? [])].filter((event) =>
      event.end_us > beginUs && event.begin_us < endUs);
  }

  lastEventUs() {
    let last = 0;
    for (const row of this.rows) for (const event of row.values()) last = Math.max(last, event.end_us);
    return last;
  }
}
