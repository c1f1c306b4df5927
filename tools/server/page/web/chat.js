// The conversation: its turns, the answer being written, and the buttons for both.

import { streamAnswer } from "./answer.js";
import { ApiError } from "./api.js";
import { Composer } from "./composer.js";
import { announce, byId } from "./dom.js";
import { describeResult, MessageView } from "./message_view.js";
import { loadTurns, saveTurns } from "./store.js";

const exampleText = "Once upon a time";

export class Chat {
  constructor({ settings }) {
    this.settings = settings;
    this.model = "";
    this.chat = null;
    this.turns = loadTurns();
    this.views = [];
    this.running = null;  // the AbortController of the current answer
    this.editing = false;
    this.log = byId("log");
    this.composer = new Composer({
      onSend: (text) => this.send(text),
      onStop: () => this.stop(),
      onEditLast: () => this.editLast(),
      onCancelEdit: () => this.cancelEdit(),
    });
    byId("new-chat").addEventListener("click", () => this.clear());
    byId("example").addEventListener("click", () => this.send(exampleText));
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.running && !byId("settings").open) this.stop();
    });
    addEventListener("pagehide", () => saveTurns(this.turns));
    this.setModel("", true);
  }

  // chat: the model has a chat template; without one it continues text.
  setModel(model, chat) {
    // An unchanged model must not cost the reader the focus or the place in the text.
    if (model === this.model && chat === this.chat) return;
    this.model = model;
    this.chat = chat;
    document.body.dataset.mode = chat ? "chat" : "text";
    this.composer.setChat(chat);
    byId("empty-title").textContent = chat ? "Say something." : "Begin a text.";
    byId("empty-hint").textContent = chat
      ? "What you write stays in this browser and on this server."
      : "This model has no chat template: it continues what you write.";
    byId("example").hidden = chat;
    byId("example").textContent = `“${exampleText}”`;
    if (!this.running) this.render();
  }

  render() {
    this.views = this.turns.map((turn) => new MessageView(turn, { chat: this.chat }));
    byId("messages").replaceChildren(...this.views.map((view) => view.node));
    this.refresh();
    this.log.scrollTop = this.log.scrollHeight;
  }

  // Updates the buttons of each turn. Without chat all turns are one text, with its buttons at the
  // end.
  refresh() {
    byId("empty").hidden = this.turns.length > 0;
    const lastUser = this.turns.findLastIndex((turn) => turn.role === "user");
    this.views.forEach((view, i) => {
      const last = i === this.views.length - 1;
      const { role, content, error } = view.turn;
      const buttons = [];
      if (i === (this.chat ? lastUser : this.views.length - 1) && lastUser >= 0) {
        buttons.push(["Edit", "Edit message", () => this.editLast()]);
      }
      if (last && role === "assistant" && !error) {
        buttons.push(["Regenerate", "Regenerate answer", () => this.answerAgain()]);
      }
      const text = this.chat ? content : this.text();
      view.showActions(this.running && last ? "" : text, this.running ? [] : buttons);
      view.showFailure(error, this.remedies(error, last));
    });
  }

  text() {
    return this.turns.map((turn) => turn.content).join("");
  }

  remedies(error, last) {
    if (!last || this.running) return [];
    const retry = ["Retry", () => this.answerAgain()];
    if (error?.status === 401) return [["Give an API key", () => this.settings.open("key")], retry];
    return [retry];
  }

  // Returns false if the text can't be sent at present.
  send(text) {
    const nothing = text === "" && (this.editing || this.turns.length === 0);
    if (this.running || nothing) return false;
    if (this.editing) this.dropFromLastUser();
    this.cancelEdit();
    if (text !== "") this.push({ role: "user", content: this.chat ? text : this.joined(text) });
    this.answer();
    return true;
  }

  // Adds a space if words would run together where one writer follows the other.
  joined(text) {
    const before = this.text();
    return before === "" || /\s$/.test(before) || /^[\s.,;:!?'’”)]/.test(text) ? text : ` ${text}`;
  }

  push(turn) {
    this.turns.push(turn);
    const view = new MessageView(turn, { chat: this.chat });
    this.views.push(view);
    byId("messages").append(view.node);
    return view;
  }

  truncate(length) {
    this.turns.length = length;
    for (const view of this.views.splice(length)) view.node.remove();
  }

  dropFromLastUser() {
    this.truncate(Math.max(0, this.turns.findLastIndex((turn) => turn.role === "user")));
  }

  answerAgain() {
    if (this.running) return;
    if (this.turns.at(-1)?.role === "assistant") this.truncate(this.turns.length - 1);
    this.answer();
    this.composer.focus();
  }

  editLast() {
    const turn = this.turns.findLast((one) => one.role === "user");
    if (!turn || this.running) return false;
    this.editing = true;
    this.composer.setEditing(true);
    this.composer.put(turn.content);
    this.composer.focus();
    return true;
  }

  cancelEdit() {
    if (this.editing) this.composer.put("");
    this.editing = false;
    this.composer.setEditing(false);
  }

  stop() {
    this.running?.abort();
  }

  clear() {
    this.stop();
    this.cancelEdit();
    this.truncate(0);
    saveTurns(this.turns);
    this.refresh();
    this.composer.focus();
  }

  async answer() {
    const asked = [...this.turns];
    const view = this.push({ role: "assistant", content: "" });
    const stopper = new AbortController();
    this.running = stopper;
    this.composer.setBusy(true);
    view.node.classList.add("busy");
    view.node.setAttribute("aria-busy", "true");
    this.refresh();
    this.scroll(true);
    saveTurns(this.turns);
    announce("The model answers.");
    await this.fill(view, asked, stopper.signal);
    view.node.classList.remove("busy");
    view.node.removeAttribute("aria-busy");
    if (this.running === stopper) this.running = null;
    this.composer.setBusy(false);
    this.show(view);
    this.refresh();
    this.scroll(this.atEnd);
    saveTurns(this.turns);
  }

  async fill(view, asked, signal) {
    const { turn } = view;
    try {
      const result = await streamAnswer({
        chat: this.chat, model: this.model, turns: asked, settings: this.settings.values(), signal,
        onText: (text) => {
          turn.content += text;
          this.showSoon(view);
        },
      });
      turn.note = describeResult(result);
      announce(turn.content || "The answer is empty.");
    } catch (error) {
      if (signal.aborted) {
        turn.note = "Stopped.";
        announce("Stopped.");
        return;
      }
      const known = error instanceof ApiError ? error : new ApiError(String(error));
      turn.error = { ...known, message: known.message, kind: known.kind };
      announce(`Error: ${known.message}`);
    }
  }

  // Updates once per frame, which is often enough for the eye.
  showSoon(view) {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => this.show(view));
  }

  show(view) {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.scroll(false);
    view.update();
    this.scroll(this.atEnd);
  }

  // Follows the answer, unless the reader has scrolled up.
  scroll(toEnd) {
    const { scrollHeight, scrollTop, clientHeight } = this.log;
    this.atEnd = toEnd || scrollHeight - scrollTop - clientHeight < 60;
    if (toEnd) this.log.scrollTop = scrollHeight;
  }
}
