// Makes elements from data. Strings become text nodes, never markup, so that what a model or a
// server says stays text.

export const byId = (id) => document.getElementById(id);

// el("button", {class: "x", onclick: f, "aria-label": "y"}, "text", child, ...)
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// Replaces the text only if it differs, so as not to disturb a screen reader or a selection
// needlessly.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Makes a screen reader read the text once. Each text has its own element, because a text that
// replaced the one before it could keep that one from being read.
export function announce(text) {
  const said = el("p", {}, text);
  byId("announcer").append(said);
  setTimeout(() => said.remove(), 15000);
}

// Copies, and shows the outcome on the button and to a screen reader.
export async function copyBy(button, text) {
  const said = (await copyText(text)) ? "Copied" : "Can't copy";
  button.textContent = said;
  announce(`${said}.`);
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);  // plain HTTP has no clipboard object
  }
}

function copyBySelection(text) {
  const focused = document.activeElement;
  const area = el("textarea", { class: "hidden", "aria-hidden": "true", readonly: true });
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return copied;
}
