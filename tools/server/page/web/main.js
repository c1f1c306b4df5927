// The page: a chat, and the machine that it runs on.

import { getJson } from "./api.js";
import { Chat } from "./chat.js";
import { byId } from "./dom.js";
import { Machine } from "./machine.js";
import { Settings } from "./settings.js";
import { StatusFeed } from "./status_feed.js";

const settings = new Settings({ onKey: () => {
  modelOf = null;
  feed.poll();
} });

function showView(view) {
  document.body.dataset.view = view;
  for (const name of ["chat", "machine"]) {
    byId(`view-${name}`).setAttribute("aria-pressed", String(name === view));
  }
}
byId("view-chat").addEventListener("click", () => showView("chat"));
byId("view-machine").addEventListener("click", () => showView("machine"));
// Both lead to the box, which must be visible before it can have the focus.
byId("skip").addEventListener("click", () => showView("chat"));
byId("new-chat").addEventListener("click", () => showView("chat"));

const chat = new Chat({ settings });
const machine = new Machine();
let modelOf = null;  // the model in the status when /v1/models was last asked

const feed = new StatusFeed({
  onStatus: (status) => {
    machine.show(status);
    if (status.state !== "loading" && status.model !== modelOf) loadModel(status.model);
  },
  onError: (error) => {
    machine.showError(error);
    modelOf = null;  // another model may follow
  },
});

let asking = false;

// Gets the model's name and whether it has a chat template. If that fails, the next status tries
// again.
async function loadModel(name) {
  if (asking) return;
  asking = true;
  try {
    const [model] = (await getJson("v1/models")).data;
    byId("model").textContent = model.id;
    document.title = `${model.id} – Trine`;
    chat.setModel(model.id, model.meta?.chat !== false);
    modelOf = name;
  } catch {
    // The machine panel shows what is wrong with the server.
  }
  asking = false;
}

if (!matchMedia("(pointer: coarse)").matches) chat.composer.focus();
