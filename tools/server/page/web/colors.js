// The colours of devices, from the style sheet, so that each theme has its own.

const kinds = [
  ["cpu", /^cpu/i],
  ["igpu", /^(igpu|vulkan|intel)/i],
  ["dgpu", /^(dgpu|rocm|hip|cuda|gpu)/i],
];
const others = ["other0", "other1", "other2"];

// Returns "cpu", "igpu", "dgpu", or another kind by the tier's index.
export function deviceKind(device, index) {
  const found = kinds.find(([, pattern]) => pattern.test(device));
  return found ? found[0] : others[index % others.length];
}

// Returns colours for a canvas, which can't use custom properties.
export function themeColors() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  const colors = { font: style.fontFamily };
  for (const name of ["ink", "quiet", "grid", "bad", "cpu", "igpu", "dgpu", ...others]) {
    colors[name] = value(`--${name}`);
  }
  return colors;
}

export function deviceColor(device, index, colors) {
  return colors[deviceKind(device, index)];
}
