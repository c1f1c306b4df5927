// Draws one number's last minute as a line.

const points = 120;
const width = 120;
const height = 24;
const svg = "http://www.w3.org/2000/svg";

export class Sparkline {
  constructor() {
    this.values = [];
    this.node = document.createElementNS(svg, "svg");
    this.node.setAttribute("class", "sparkline");
    this.node.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.node.setAttribute("preserveAspectRatio", "none");
    this.node.setAttribute("aria-hidden", "true");
    const ground = document.createElementNS(svg, "polyline");
    ground.setAttribute("class", "ground");
    ground.setAttribute("points", `0,${height - 1} ${width},${height - 1}`);
    this.line = document.createElementNS(svg, "polyline");
    this.node.append(ground, this.line);
  }

  add(value) {
    this.values.push(value);
    if (this.values.length > points) this.values.shift();
    const top = Math.max(1, ...this.values);
    const step = width / (points - 1);
    const begin = width - (this.values.length - 1) * step;
    this.line.setAttribute("points", this.values.map((one, i) =>
      `${(begin + i * step).toFixed(1)},${(height - 1 - (one / top) * (height - 2)).toFixed(1)}`).join(" "));
  }
}
