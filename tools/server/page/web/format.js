// Numbers as people read them.

export function count(n) {
  return Math.round(n).toLocaleString("en");
}

// Formats for places with little room: 950, 12.3k, 4.56M.
export function brief(n) {
  if (n < 1000) return String(Math.round(n));
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(n < 1e8 ? 1 : 0)}M`;
}

export function bytes(n) {
  if (n < 1024) return `${Math.round(n)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let value = n / 1024;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

export function percent(ratio) {
  return `${Math.round(ratio * 100)} %`;
}

export function rate(perSecond) {
  return perSecond < 100 ? perSecond.toFixed(1) : count(perSecond);
}

// Returns "41.2 tokens/s", or "" if the time is too short to tell. Pieces that came in one burst,
// because they were quick or were held back on the way, show when they were sent on, not when they
// were made.
export function speed(tokens, ms) {
  const leastMs = 50;
  return tokens > 0 && ms >= leastMs ? `${rate((tokens * 1000) / ms)} tokens/s` : "";
}

export function seconds(s) {
  if (s < 10) return `${s.toFixed(s < 1 ? 2 : 1)} s`;
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return `${Math.round(s / 3600)} h`;
}

// "layers 0–3", "layer 4", "no layers".
export function layers({ first_layer: first, end_layer: end }) {
  if (!(end > first)) return "no layers";
  return end - first === 1 ? `layer ${first}` : `layers ${first}–${end - 1}`;
}

export function holds(tier) {
  const parts = [layers(tier)];
  if (tier.embedding) parts.push("embedding");
  if (tier.head) parts.push("head");
  return parts.join(", ");
}
