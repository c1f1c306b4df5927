// Shows one turn of a conversation as an element.

import { copyBy, el, setText } from "./dom.js";
import { count, seconds, speed } from "./format.js";
import { showMarkdown } from "./markdown_view.js";

export class MessageView {
  // chat: answers are shown as Markdown; otherwise all turns are one text, shown as it is.
  constructor(turn, { chat }) {
    this.turn = turn;
    this.chat = chat;
    this.body = el("div", { class: "body" });
    this.note = el("p", { class: "note quiet small" });
    this.actions = el("div", { class: "actions" });
    this.failure = el("div", { class: "failure" });
    const who = turn.role === "user" ? "You" : "Model";
    this.node = el("article", { class: `message ${turn.role}`, "aria-label": who },
                   el("h2", { class: "who" }, who), this.body, this.failure, this.note, this.actions);
    this.update();
  }

  update() {
    const { role, content } = this.turn;
    if (this.chat && role === "assistant") showMarkdown(this.body, content);
    else setText(this.body, content);
    setText(this.note, this.turn.note ?? "");
  }

  // `text`: what Copy copies. `buttons`: further ones, as [label, aria-label, action].
  showActions(text, buttons) {
    const nodes = buttons.map(([name, label, action]) =>
      el("button", { type: "button", "aria-label": label, onclick: action }, name));
    if (text !== "") nodes.unshift(this.copyButton(text));
    this.actions.replaceChildren(...nodes);
  }

  copyButton(text) {
    const what = this.turn.role === "user" ? "message" : "answer";
    const label = this.chat ? `Copy ${what}` : "Copy text";
    const button = el("button", { type: "button", "aria-label": label }, "Copy");
    button.addEventListener("click", () => copyBy(button, text));
    return button;
  }

  // Shows the server's error and buttons for what can be done about it.
  showFailure(error, buttons) {
    if (!error) {
      this.failure.replaceChildren();
      return;
    }
    const wait = error.retryAfter > 0 ? ` The server asks for ${seconds(error.retryAfter)} of patience.` : "";
    this.failure.replaceChildren(
      el("p", { class: "failure-text" }, error.message + wait),
      error.kind ? el("p", { class: "quiet small" }, error.kind) : null,
      el("div", { class: "failure-actions" }, ...buttons.map(([text, action]) =>
        el("button", { type: "button", onclick: action }, text))));
  }
}

// "87 tokens · 41.2 tokens/s · first after 0.12 s · 300 read (256 from the cache)"
export function describeResult({ finish, usage, firstMs, lastMs }) {
  const parts = [];
  if (usage) {
    const made = usage.completion_tokens ?? 0;
    parts.push(`${count(made)} token${made === 1 ? "" : "s"}`);
    const pace = speed(made - 1, lastMs - firstMs);
    if (pace) parts.push(pace);
    parts.push(`first after ${seconds(firstMs / 1000)}`);
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    parts.push(`${count(usage.prompt_tokens ?? 0)} read${cached > 0 ? ` (${count(cached)} from the cache)` : ""}`);
  }
  if (finish === "length") parts.push("cut off at the token limit");
  else if (finish && finish !== "stop") parts.push(finish.replaceAll("_", " "));
  return parts.join(" · ");
}
