// The settings dialog. A valid change takes effect at once. Empty fields are not sent.

import { apiKey, setApiKey } from "./api.js";
import { byId } from "./dom.js";
import { loadSettings, saveSettings } from "./store.js";

const numbers = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"];

export class Settings {
  // onKey: called when the API key has changed.
  constructor({ onKey }) {
    this.dialog = byId("settings");
    this.form = byId("settings-form");
    this.onKey = onKey;
    this.fill(loadSettings());
    this.form.addEventListener("change", () => this.keep());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.keep();
      this.dialog.close();
    });
    byId("reset-settings").addEventListener("click", () => {
      this.fill({});
      this.keep();
    });
    byId("open-settings").addEventListener("click", () => this.open());
  }

  open(field = "temperature") {
    this.form.elements.key.value = apiKey();
    this.dialog.showModal();
    this.form.elements[field].focus();
  }

  fill(settings) {
    const fields = this.form.elements;
    for (const name of numbers) fields[name].value = settings[name] ?? "";
    fields.system.value = settings.system ?? "";
    fields.stop.value = (settings.stop ?? []).join("\n");
  }

  // Returns the values to send.
  values() {
    const fields = this.form.elements;
    const values = {};
    for (const name of numbers) {
      if (fields[name].value !== "" && fields[name].validity.valid) {
        values[name] = fields[name].valueAsNumber;
      }
    }
    if (fields.system.value.trim() !== "") values.system = fields.system.value;
    const stop = fields.stop.value.split("\n").filter((line) => line !== "");
    if (stop.length > 0) values.stop = stop;
    return values;
  }

  keep() {
    saveSettings(this.values());
    const key = this.form.elements.key.value.trim();
    if (this.dialog.open && key !== apiKey()) {
      setApiKey(key);
      this.onKey();
    }
  }
}
