// Shows where the layers are and what each tier does: as a bar, as cards and as a table.

import { deviceKind } from "./colors.js";
import { byId, el, setText } from "./dom.js";
import { bytes, count, holds, layers, percent } from "./format.js";
import { tierKey } from "./rates.js";

// Shows one block for each tier, as wide as its number of layers.
export function showLayers(tiers) {
  const bar = byId("layers");
  const placed = tiers.filter((tier) => tier.end_layer > tier.first_layer);
  const blocks = placed.map((tier) => {
    const n = tier.end_layer - tier.first_layer;
    const block = el("div", { class: "layer-block", "data-kind": deviceKind(tier.device, tiers.indexOf(tier)),
                              "data-state": tier.state, title: `${tier.device}: ${holds(tier)}` },
                     el("span", {}, tier.device), el("span", {}, layers(tier).replace(/^layers? /, "")));
    block.style.flexGrow = n;
    block.style.setProperty("--layers", n);
    return block;
  });
  bar.replaceChildren(...blocks);
  bar.setAttribute("aria-label", placed.map((tier) =>
    `${tier.device}: ${holds(tier)}${tier.state === "lost" ? ", lost" : ""}`).join("; ") || "No layers placed");
}

class TierCard {
  constructor() {
    this.device = el("span", { class: "device" });
    this.name = el("span", { class: "tier-name" });
    this.state = el("span", { class: "tier-state" });
    this.busy = el("span", { class: "share-busy" });
    this.bubbles = el("span", { class: "share-bubbles" });
    this.shares = el("p", { class: "shares" });
    this.facts = el("p", { class: "quiet small" });
    this.node = el("li", { class: "tier" },
                   el("p", { class: "tier-head" }, this.device, this.name, this.state),
                   el("div", { class: "share-bar", "aria-hidden": "true" }, this.busy, this.bubbles),
                   this.shares, this.facts);
  }

  // shares: null if the tier has no counters.
  update(tier, index, shares) {
    const lost = tier.state === "lost";
    this.node.dataset.kind = deviceKind(tier.device, index);
    this.node.dataset.state = tier.state;
    setText(this.device, tier.device);
    setText(this.name, tier.name ?? "");
    setText(this.state, lost ? `lost${tier.reason ? `: ${tier.reason}` : ""}` : "");
    this.busy.style.width = `${(shares?.busy ?? 0) * 100}%`;
    this.bubbles.style.width = `${(shares?.bubbles ?? 0) * 100}%`;
    setText(this.shares, shares ? `busy ${percent(shares.busy)}, bubbles ${percent(shares.bubbles)}` : "");
    setText(this.facts, shares
      ? `${holds(tier)} · weights ${bytes(tier.weights_bytes)}, KV ${bytes(tier.kv_bytes)}, ` +
        `scratch ${bytes(tier.scratch_bytes)} · ${count(tier.passes)} passes`
      : holds(tier));
  }
}

// Returns a number, or a dash if there is none.
const known = (format, value) => (Number.isFinite(value) ? format(value) : "–");

const columns = [
  ["Device", (tier) => tier.device],
  ["Name", (tier) => tier.name ?? ""],
  ["State", (tier) => (tier.reason ? `${tier.state}: ${tier.reason}` : tier.state)],
  ["Holds", (tier) => holds(tier)],
  ["Busy", (tier, shares) => known(percent, shares?.busy)],
  ["Bubbles", (tier, shares) => known(percent, shares?.bubbles)],
  ["Passes", (tier) => known(count, tier.passes)],
  ["Tokens", (tier) => known(count, tier.tokens)],
  ["Weights", (tier) => known(bytes, tier.weights_bytes)],
  ["KV", (tier) => known(bytes, tier.kv_bytes)],
  ["Scratch", (tier) => known(bytes, tier.scratch_bytes)],
  ["In", (tier) => known(bytes, tier.bytes_in)],
  ["Out", (tier) => known(bytes, tier.bytes_out)],
];

export class TiersView {
  constructor() {
    this.cards = [];
    this.key = "";
    byId("table-head").append(el("tr", {}, ...columns.map(([name]) => el("th", { scope: "col" }, name))));
  }

  // Returns true if the tiers have changed.
  update(tiers, rates) {
    const key = tiers.map((tier) => `${tierKey(tier)} ${tier.state}`).join("; ");
    const changed = key !== this.key;
    if (changed) {
      this.key = key;
      showLayers(tiers);
      this.cards = tiers.map(() => new TierCard());
      byId("tiers").replaceChildren(...this.cards.map((card) => card.node));
      byId("table-body").replaceChildren(...tiers.map(() =>
        el("tr", {}, ...columns.map((column, i) =>
          i === 0 ? el("th", { scope: "row" }) : el("td")))));
    }
    tiers.forEach((tier, i) => {
      const shares = rates.tier(tier);
      this.cards[i].update(tier, i, shares);
      const cells = byId("table-body").rows[i].cells;
      columns.forEach(([, value], column) => setText(cells[column], value(tier, shares)));
    });
    return changed;
  }
}
