// The box for writing messages.

import { byId } from "./dom.js";

export class Composer {
  // onSend(text), onStop(), onEditLast(); the last returns true if there is something to edit.
  constructor({ onSend, onStop, onEditLast, onCancelEdit }) {
    this.box = byId("prompt");
    this.onSend = onSend;
    this.onStop = onStop;
    this.onEditLast = onEditLast;
    this.onCancelEdit = onCancelEdit;
    this.busy = false;
    this.chat = true;
    // Without a real keyboard, Enter begins a new line, as everywhere on a phone.
    this.enterSends = !matchMedia("(pointer: coarse)").matches;
    byId("composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    byId("stop").addEventListener("click", () => this.onStop());
    byId("cancel-edit").addEventListener("click", () => this.onCancelEdit());
    this.box.addEventListener("input", () => this.fit());
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    if (event.isComposing) return;  // Enter selects a word of an input method
    if (event.key === "Enter" && !event.shiftKey && this.enterSends) {
      event.preventDefault();
      this.send();
    } else if (event.key === "ArrowUp" && this.box.value === "" && !this.busy) {
      if (this.onEditLast()) event.preventDefault();
    } else if (event.key === "Escape" && !this.busy && this.editing) {
      this.onCancelEdit();
    }
  }

  send() {
    if (this.busy) return;
    const text = this.chat ? this.box.value.trim() : this.box.value;
    if (this.chat && text === "") return;
    if (this.onSend(text)) this.put("");
  }

  put(text) {
    this.box.value = text;
    this.fit();
  }

  // Makes the box as tall as its text, up to the limit in the style sheet.
  fit() {
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight + 2}px`;
  }

  focus() {
    this.box.focus({ preventScroll: true });
  }

  setBusy(busy) {
    this.busy = busy;
    const stop = byId("stop");
    const hadFocus = document.activeElement === stop || document.activeElement === byId("send");
    stop.hidden = !busy;
    byId("send").hidden = busy;
    if (hadFocus) this.focus();
  }

  setEditing(editing) {
    this.editing = editing;
    byId("editing").hidden = !editing;
  }

  setChat(chat) {
    this.chat = chat;
    byId("prompt-label").textContent = chat ? "Message" : "Text to continue";
    this.box.placeholder = chat ? "Message" : "Text to continue, or nothing to let it go on";
    byId("send").textContent = chat ? "Send" : "Continue";
    const keys = this.enterSends ? "Enter sends, Shift+Enter makes a line, " : "";
    byId("prompt-hint").textContent = `${keys}Escape stops an answer.`;
    byId("prompt-hint").hidden = !this.enterSends;
  }
}
