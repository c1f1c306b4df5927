// Shows Markdown as elements.

import { copyBy, el } from "./dom.js";
import { parseMarkdown } from "./markdown.js";

// Updates `root` to show `text`. Unchanged blocks keep their elements, so that a growing answer
// costs only its last block, and a selection in it stays.
export function showMarkdown(root, text) {
  const blocks = parseMarkdown(text);
  blocks.forEach((block, i) => {
    const old = root.children[i];
    if (old && old.trineSource === block.source) return;
    const node = blockNode(block);
    node.trineSource = block.source;
    if (old) old.replaceWith(node);
    else root.append(node);
  });
  while (root.children.length > blocks.length) root.lastElementChild.remove();
}

function blockNode(block) {
  switch (block.kind) {
    case "code": return codeNode(block);
    case "heading":  // below the page's own headings
      return el(`h${Math.min(block.level + 2, 6)}`, {}, ...spanNodes(block.spans));
    case "rule": return el("hr");
    case "quote": return el("blockquote", {}, ...block.blocks.map(blockNode));
    case "list": return listNode(block);
    default: return el("p", {}, ...spanNodes(block.spans));
  }
}

function listNode({ ordered, start, items }) {
  return el(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? start : undefined },
            ...items.map(({ spans, blocks }) =>
              el("li", {}, ...spanNodes(spans), ...blocks.map(blockNode))));
}

function codeNode({ language, text }) {
  const copy = el("button", { type: "button", class: "copy-code", "aria-label": "Copy code" }, "Copy");
  copy.addEventListener("click", () => copyBy(copy, text));
  return el("div", { class: "code" },
            el("div", { class: "code-head" }, el("span", {}, language || "text"), copy),
            el("pre", { tabindex: "0", role: "group", "aria-label": "Code" }, el("code", {}, text)));
}

function spanNodes(spans) {
  return spans.map((span) => {
    switch (span.kind) {
      case "code": return el("code", {}, span.text);
      case "strong": return el("strong", {}, ...spanNodes(span.spans));
      case "em": return el("em", {}, ...spanNodes(span.spans));
      case "link":
        return el("a", { href: span.href, target: "_blank", rel: "noopener noreferrer nofollow",
                         title: span.href }, ...spanNodes(span.spans));
      default: return document.createTextNode(span.text);
    }
  });
}
