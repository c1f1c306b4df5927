// Keeps the timeline's events, poll by poll, and estimates the server's clock.

const keepUs = 8e6;

export class TimelineStore {
  constructor() {
    this.clear();
  }

  clear() {
    this.rows = [];  // by tier: Map from an event's key to the event
    this.knownUs = 0;
    this.offsetUs = null;
  }

  // `atMs`: this browser's clock when the answer came.
  add({ now_us: nowUs, events }, tierCount, atMs) {
    if (nowUs < this.knownUs) this.clear();  // the server has restarted
    this.knownUs = nowUs;
    this.setClock(nowUs - atMs * 1000);
    while (this.rows.length < tierCount) this.rows.push(new Map());
    for (const event of events) {
      const row = this.rows[event.tier];
      // An event that was still running comes again with another end.
      row?.set(`${event.kind} ${event.begin_us}`, event);
    }
    for (const row of this.rows) {
      for (const [name, event] of row) if (event.end_us < nowUs - keepUs) row.delete(name);
    }
  }

  // Answers arrive late, never early, so the largest offset seen is the most accurate. It shrinks
  // slowly, because clocks drift.
  setClock(offsetUs) {
    const far = this.offsetUs === null || Math.abs(offsetUs - this.offsetUs) > 2e6;
    this.offsetUs = far ? offsetUs : Math.max(offsetUs, this.offsetUs - 5000);
  }

  // Returns the server's time at the right edge. It lags a little, so that it moves evenly between
  // polls, and never exceeds what is known.
  headUs(atMs, delayUs) {
    if (this.offsetUs === null) return 0;
    return Math.min(atMs * 1000 + this.offsetUs - delayUs, this.knownUs);
  }

  // Returns a tier's events that overlap the time span.
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
