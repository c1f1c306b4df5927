// The panel that shows the machine at work.

import { announce, byId, el, setText } from "./dom.js";
import { brief, count, percent, rate, seconds } from "./format.js";
import { Rates } from "./rates.js";
import { Sparkline } from "./sparkline.js";
import { TiersView } from "./tiers_view.js";
import { Timeline } from "./timeline.js";

const stateNames = {
  ok: "ok", degraded: "degraded", lost: "lost", loading: "loading", stopping: "stopping", unreachable: "no answer",
};

export class Machine {
  constructor() {
    this.rates = new Rates();
    this.tiers = new TiersView();
    this.timeline = new Timeline();
    this.sparkline = new Sparkline();
    this.numbers = new Map();
    this.state = "";
    this.number("speed", "tokens/s").append(this.sparkline.node);
    this.number("reading", "prompt tokens/s");
    this.number("running", "running");
    this.number("queued", "queued");
    this.number("kv", "KV blocks in use");
    this.number("cached", "prompt from cache");
  }

  number(name, label) {
    const value = el("span", { class: "number-value" }, "–");
    this.numbers.set(name, value);
    const data = el("dd", { "data-number": name }, value);
    byId("numbers").append(el("div", {}, el("dt", {}, label), data));
    return data;
  }

  set(name, text) {
    setText(this.numbers.get(name), text);
  }

  show(status) {
    this.rates.add(status);
    this.showState(status.state, this.sentence(status));
    byId("machine").classList.remove("stale");
    byId("loading").hidden = status.state !== "loading";
    byId("loading").value = status.load_progress ?? 0;
    const layoutChanged = this.tiers.update(status.tiers, this.rates);
    this.timeline.add(status, layoutChanged);
    this.showNumbers(status);
    this.showFaults(status.faults ?? []);
  }

  showError(error) {
    byId("machine").classList.add("stale");
    const locked = error.status === 401 || error.status === 403;
    this.showState(locked ? "locked" : "unreachable",
                   locked ? "The server wants an API key: Settings." : error.message);
  }

  sentence({ state, load_progress: progress, tiers, uptime_s: uptime, requests }) {
    const lost = tiers.filter((tier) => tier.state === "lost").map((tier) => tier.device);
    if (state === "loading") return `The model is being loaded: ${percent(progress ?? 0)}.`;
    if (state === "stopping") return "The server is stopping.";
    const done = `Up ${seconds(uptime)}, ${count(requests.completed)} answered` +
                 (requests.cancelled ? `, ${count(requests.cancelled)} cancelled` : "") +
                 (requests.failed ? `, ${count(requests.failed)} failed` : "") + ".";
    if (state === "lost") return `No device is left: nothing can be answered. ${done}`;
    if (lost.length > 0) return `Without ${lost.join(" and ")}; the rest goes on. ${done}`;
    return done;
  }

  showState(state, sentence) {
    setText(byId("machine-line"), sentence);
    if (state === this.state) return;
    const before = this.state;
    this.state = state;
    byId("state").dataset.state = state;
    setText(byId("state"), stateNames[state] ?? state);
    if (before !== "" || state !== "ok") announce(`Server: ${stateNames[state] ?? state}. ${sentence}`);
  }

  showNumbers({ requests, tokens, kv }) {
    const speed = this.rates.tokens();
    this.set("speed", rate(speed.generated));
    if (this.rates.spanS > 0) this.sparkline.add(speed.generated);
    this.set("reading", rate(speed.prompt));
    this.set("running", `${count(requests.running)} / ${count(requests.slots)}`);
    this.set("queued", count(requests.queued));
    const used = kv.blocks > 0 ? (kv.blocks - kv.free) / kv.blocks : 0;
    this.set("kv", percent(used) + (kv.shared ? `, ${brief(kv.shared)} shared` : ""));
    this.set("cached", tokens.prompt > 0 ? percent(Math.min(1, tokens.cached / tokens.prompt)) : "–");
  }

  showFaults(faults) {
    byId("faults-section").hidden = faults.length === 0;
    const list = byId("faults");
    while (list.children.length > faults.length) list.lastElementChild.remove();
    faults.forEach((fault, i) => {
      const when = fault.seconds_ago < 1 ? "just now" : `${seconds(fault.seconds_ago)} ago`;
      const text = `${fault.device}, ${when}: ${fault.reason}`;
      if (list.children[i]) setText(list.children[i], text);
      else list.append(el("li", {}, text));
    });
  }
}
