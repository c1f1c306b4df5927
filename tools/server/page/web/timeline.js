// The timeline: a row for each tier, with passes as blocks, copies as low blocks, bubbles as gaps,
// and faults as lines through all rows. Moves from right to left.

import { byId, setText } from "./dom.js";
import { deviceColor, themeColors } from "./colors.js";
import { count } from "./format.js";
import { TimelineStore } from "./timeline_store.js";

const rowHeight = 26;
const barHeight = 16;
const axisHeight = 18;
const delayUs = 650e3;  // a poll's interval and its way
const frameMs = 33;     // the browser may share its processor with the model

export class Timeline {
  constructor() {
    this.canvas = byId("timeline");
    this.legend = byId("timeline-text").textContent;
    this.context = this.canvas.getContext("2d");
    this.store = new TimelineStore();
    this.tiers = [];
    this.faults = [];
    this.paused = false;
    this.pointer = null;
    this.lastDraw = 0;
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    byId("pause").addEventListener("click", () => this.setPaused(!this.paused));
    byId("span").addEventListener("change", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(event));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    requestAnimationFrame(() => this.tick());
  }

  add(status, layoutChanged) {
    if (layoutChanged) this.store.clear();  // its events belong to the old tiers
    this.tiers = status.tiers;
    const timeline = status.timeline ?? { now_us: status.uptime_s * 1e6, events: [] };
    this.store.add(timeline, status.tiers.length, performance.now());
    this.faults = (status.faults ?? []).map((fault) => ({
      device: fault.device, atUs: timeline.now_us - fault.seconds_ago * 1e6,
    }));
    const head = this.store.headUs(performance.now(), delayUs);
    const anew = this.headUs === undefined || head < this.headUs;  // first, or a restarted server
    if (!this.paused && (anew || this.happening())) this.headUs = head;
    if (!this.moving()) this.draw();
  }

  setPaused(paused) {
    this.paused = paused;
    byId("pause").textContent = paused ? "Go on" : "Pause";
    this.draw();
  }

  get spanUs() {
    return Number(byId("span").value) * 1e6;
  }

  happening() {
    const lastUs = Math.max(this.store.lastEventUs(), ...this.faults.map((fault) => fault.atUs));
    return lastUs > (this.headUs ?? 0) - this.spanUs;
  }

  // Stops when nothing happens, when the canvas is hidden, and when the user does not want motion.
  moving() {
    return !this.paused && !this.still.matches && this.canvas.clientWidth > 0 && this.happening();
  }

  tick() {
    requestAnimationFrame(() => this.tick());
    const now = performance.now();
    if (now - this.lastDraw < frameMs || !this.moving()) return;
    const head = this.store.headUs(now, delayUs);
    if (head === this.headUs) return;  // the server has gone
    this.headUs = head;
    this.draw();
  }

  draw() {
    this.lastDraw = performance.now();
    const width = this.canvas.clientWidth;
    if (width === 0) return;
    const height = Math.max(1, this.tiers.length) * rowHeight + axisHeight;
    const scale = devicePixelRatio || 1;
    if (this.canvas.width !== Math.round(width * scale) ||
        this.canvas.height !== Math.round(height * scale)) {
      this.canvas.style.height = `${height}px`;
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const c = this.context;
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, width, height);
    this.colors = themeColors();
    c.font = `11px ${this.colors.font}`;
    this.labelWidth = Math.min(90, Math.max(0, ...this.tiers.map((tier) =>
      Math.ceil(c.measureText(tier.device).width))) + 10);
    this.drawAxis(width, height);
    this.tiers.forEach((tier, i) => this.drawRow(tier, i, width));
    this.drawFaults(width, height);
  }

  x(us, width) {
    const begin = this.headUs - this.spanUs;
    return this.labelWidth + ((us - begin) / this.spanUs) * (width - this.labelWidth);
  }

  drawAxis(width, height) {
    const c = this.context;
    const step = this.spanUs / (this.spanUs > 2e6 ? 6 : 5);
    c.fillStyle = this.colors.grid;
    const head = this.headUs ?? 0;
    for (let us = Math.floor(head / step) * step; us > head - this.spanUs; us -= step) {
      c.fillRect(Math.round(this.x(us, width)), 0, 1, height - axisHeight);
    }
    c.fillStyle = this.colors.quiet;
    c.textBaseline = "alphabetic";
    c.textAlign = "left";
    const span = this.spanUs >= 1e6 ? `${this.spanUs / 1e6} s` : `${this.spanUs / 1e3} ms`;
    c.fillText(`−${span}`, this.labelWidth, height - 4);
    c.textAlign = "right";
    c.fillText(this.paused ? "paused" : "now", width, height - 4);
    c.textAlign = "left";
  }

  drawRow(tier, i, width) {
    const c = this.context;
    const top = i * rowHeight + (rowHeight - barHeight) / 2;
    const lost = tier.state === "lost";
    c.fillStyle = lost ? this.colors.bad : this.colors.ink;
    c.textBaseline = "middle";
    c.fillText(tier.device, 0, top + barHeight / 2, this.labelWidth - 6);
    c.fillStyle = this.colors.grid;
    c.fillRect(this.labelWidth, top + barHeight, width - this.labelWidth, 1);
    c.save();
    c.beginPath();
    c.rect(this.labelWidth, 0, width - this.labelWidth, 1e4);
    c.clip();
    c.fillStyle = deviceColor(tier.device, i, this.colors);
    const events = this.store.between(i, this.headUs - this.spanUs, this.headUs);
    this.drawBlocks(events.filter((event) => event.kind === "pass"), top, barHeight, width);
    c.fillStyle = this.colors.ink;
    this.drawBlocks(events.filter((event) => event.kind === "copy"), top + barHeight - 3, 3, width);
    c.restore();
  }

  // Adds up blocks that are too narrow to be seen: the busier a column, the darker it is.
  drawBlocks(events, top, height, width) {
    const c = this.context;
    const columns = new Map();
    for (const event of events) {
      const begin = this.x(event.begin_us, width);
      const end = this.x(Math.min(event.end_us, this.headUs), width);
      if (end - begin >= 3) {
        c.fillRect(begin, top, end - begin - 1, height);
        continue;
      }
      for (let column = Math.floor(begin); column < end; column += 1) {
        const part = Math.min(end, column + 1) - Math.max(begin, column);
        columns.set(column, (columns.get(column) ?? 0) + part);
      }
    }
    for (const [column, part] of columns) {
      c.globalAlpha = Math.min(1, 0.2 + 0.8 * part);
      c.fillRect(column, top, 1, height);
    }
    c.globalAlpha = 1;
  }

  drawFaults(width, height) {
    const c = this.context;
    for (const { device, atUs } of this.faults) {
      if (atUs < this.headUs - this.spanUs || atUs > this.headUs) continue;
      const x = Math.round(this.x(atUs, width));
      c.fillStyle = this.colors.bad;
      c.fillRect(x - 1, 0, 2, height - axisHeight);
      c.textBaseline = "alphabetic";
      const text = `✕ ${device}`;
      // Places the text beside its line and clear of "now".
      const right = x + c.measureText(text).width > width - 50;
      c.textAlign = right ? "right" : "left";
      c.fillText(text, right ? Math.min(x, width - 50) : x, height - 4);
      c.textAlign = "left";
    }
  }

  // Shows what is under the pointer.
  point(event) {
    const text = event ? this.textAt(event.offsetX, event.offsetY) : "";
    setText(byId("timeline-text"), text || this.legend);
  }

  textAt(x, y) {
    const i = Math.floor(y / rowHeight);
    const width = this.canvas.clientWidth;
    const us = this.headUs - this.spanUs +
               ((x - this.labelWidth) / (width - this.labelWidth)) * this.spanUs;
    const near = this.spanUs / (width - this.labelWidth);
    const found = this.store.between(i, us - near, us + near).find((one) => one.kind !== "wait");
    if (!found || !this.tiers[i]) return "";
    const ms = ((found.end_us - found.begin_us) / 1000).toFixed(2);
    return `${this.tiers[i].device}, ${found.kind}: ${ms} ms, ${count(found.tokens ?? 0)} tokens ` +
           `of ${count(found.sequences ?? 0)} sequences`;
  }
}
