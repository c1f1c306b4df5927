// Elements from data. Strings become text nodes and never markup, so whatever a model or a server
// says stays text.

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

// Replaces the text only where it differs: a screen reader or a selection is not disturbed for
// nothing.
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

let clearTimer = 0;

// Read out once by a screen reader.
export function announce(text) {
  const region = byId("announcer");
  region.textContent = text;
  clearTimeout(clearTimer);
  clearTimer = setTimeout(() => (region.textContent = ""), 15000);
}

// Copies, and says on the button and to a screen reader what became of it.
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
    return copyBySelection(text);  // over plain HTTP there is no clipboard object
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
