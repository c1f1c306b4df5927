// Keeps the conversation and the settings between visits, in this browser only.

const conversationName = "trine.conversation";
const settingsName = "trine.settings";

function read(name) {
  try {
    return JSON.parse(localStorage.getItem(name));
  } catch {
    return null;
  }
}

function write(name, value) {
  try {
    localStorage.setItem(name, JSON.stringify(value));
  } catch {
    // The browser has no room, or forbids it.
  }
}

// Returns the turns: {role: "user" | "assistant", content, note?, error?}. Drops anything else.
export function loadTurns() {
  const turns = read(conversationName)?.turns;
  if (!Array.isArray(turns)) return [];
  return turns.filter((turn) => ["user", "assistant"].includes(turn?.role) &&
                                typeof turn.content === "string");
}

export function saveTurns(turns) {
  write(conversationName, { version: 1, turns });
}

export function loadSettings() {
  const settings = read(settingsName);
  return settings && typeof settings === "object" ? settings : {};
}

export function saveSettings(settings) {
  write(settingsName, settings);
}
