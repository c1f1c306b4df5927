// Parses the Markdown that models write into data: blocks with spans in them. HTML is not parsed,
// so none can get through.
//
//   block: {kind: "code", language, text} | {kind: "heading", level, spans} | {kind: "rule"} |
//          {kind: "paragraph", spans} | {kind: "quote", blocks} |
//          {kind: "list", ordered, start, items: [{spans, blocks}]}
//   span:  {kind: "text" | "code", text} | {kind: "strong" | "em", spans} |
//          {kind: "link", href, spans}
// Every block has `source`, the lines it came from.

const fence = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/;
const rule = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const quote = /^ {0,3}> ?(.*)$/;
const deepest = 6;

export function parseMarkdown(text, depth = 0) {
  return parseBlocks(text.split(/\r?\n/), depth);
}

function parseBlocks(lines, depth) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === "") {
      at += 1;
      continue;
    }
    const [block, end] = readBlock(lines, at, depth);
    block.source = lines.slice(at, end).join("\n");
    blocks.push(block);
    at = end;
  }
  return blocks;
}

function readBlock(lines, at, depth) {
  const line = lines[at];
  let match;
  if ((match = fence.exec(line))) return readCode(lines, at, match);
  if ((match = heading.exec(line))) {
    return [{ kind: "heading", level: match[1].length, spans: parseSpans(match[2]) }, at + 1];
  }
  if (rule.test(line)) return [{ kind: "rule" }, at + 1];
  if (depth < deepest && quote.test(line)) return readQuote(lines, at, depth);
  if (depth < deepest && item.test(line)) return readList(lines, at, depth);
  return readParagraph(lines, at, depth);
}

// A block that is not closed goes to the end: it is still being written.
function readCode(lines, at, [, marks, language]) {
  let end = at + 1;
  while (end < lines.length && !closes(lines[end], marks)) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  return [{ kind: "code", language, text }, Math.min(end + 1, lines.length)];
}

function closes(line, marks) {
  const text = line.trim();
  return text.length >= marks.length && text === marks[0].repeat(text.length);
}

function readQuote(lines, at, depth) {
  let end = at;
  while (end < lines.length && quote.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => quote.exec(line)[1]);
  return [{ kind: "quote", blocks: parseBlocks(inner, depth + 1) }, end];
}

function readList(lines, at, depth) {
  const [, indent, mark] = item.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const match = item.exec(lines[end]);
    if (!match || match[1].length > indent.length + 1 || /\d/.test(match[2]) !== ordered) break;
    const first = match[3];
    const inner = indent.length + match[2].length + 1;
    const begin = end;
    end = endOfItem(lines, end + 1, indent.length);
    const rest = lines.slice(begin + 1, end).map((line) => line.replace(/^\s*/, (space) =>
      space.slice(Math.min(space.length, inner))));
    items.push({ spans: parseSpans(first), blocks: parseBlocks(rest, depth + 1) });
  }
  return [{ kind: "list", ordered, start: ordered ? parseInt(mark, 10) : 1, items }, end];
}

// An item includes the lines that are indented deeper, and empty lines between them.
function endOfItem(lines, at, indent) {
  let end = at;
  for (let i = at; i < lines.length; i += 1) {
    if (lines[i].trim() === "") continue;
    const match = item.exec(lines[i]);
    if (match && match[1].length <= indent + 1) return i;
    if (/^\s*/.exec(lines[i])[0].length <= indent) return end;
    end = i + 1;
  }
  return end;
}

function readParagraph(lines, at, depth) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== "" && !fence.test(lines[end]) &&
         !heading.test(lines[end]) && !rule.test(lines[end]) &&
         !(depth < deepest && (item.test(lines[end]) || quote.test(lines[end])))) {
    end += 1;
  }
  return [{ kind: "paragraph", spans: parseSpans(lines.slice(at, end).join("\n")) }, end];
}

// A mark that is never closed stays plain characters. The length of every span is bounded, so that
// a model that repeats a mark endlessly can't block the page.
const span = new RegExp([
  "(?<!`)`(?<code>[^`]{1,2000})`(?!`)",
  "(?<!`)``(?!`)(?<code2>[^\\n]{0,2000}?[^`\\n])``(?!`)",
  "\\*\\*(?<strong>\\S(?:[^\\n]{0,2000}?\\S)?)\\*\\*",
  "(?<![\\w*])[*](?<em>[^\\s*](?:[^*\\n]{0,2000}[^\\s*])?)[*](?![\\w*])",
  "(?<!\\w)_(?<em2>[^\\s_](?:[^_\\n]{0,2000}[^\\s_])?)_(?!\\w)",
  "\\[(?<label>[^\\[\\]\\n]{1,300})\\]\\((?<href>[^\\s()]{1,2000})\\)",
  "\\\\(?<escaped>[\\\\`*_{}\\[\\]()#+.!>~|-])",
].join("|"), "g");

export function parseSpans(text, depth = 0) {
  if (depth > deepest) return [{ kind: "text", text }];
  const spans = [];
  let at = 0;
  for (const match of text.matchAll(span)) {
    const found = spanOf(match.groups, depth);
    if (!found) continue;
    if (match.index > at) spans.push({ kind: "text", text: text.slice(at, match.index) });
    spans.push(found);
    at = match.index + match[0].length;
  }
  if (at < text.length) spans.push({ kind: "text", text: text.slice(at) });
  return spans;
}

function spanOf({ code, code2, strong, em, em2, label, href, escaped }, depth) {
  if (code ?? code2) return { kind: "code", text: code ?? code2 };
  if (strong !== undefined) return { kind: "strong", spans: parseSpans(strong, depth + 1) };
  if (em ?? em2) return { kind: "em", spans: parseSpans(em ?? em2, depth + 1) };
  if (escaped !== undefined) return { kind: "text", text: escaped };
  // Makes links only of addresses that are safe to open; any other link stays text.
  if (/^https?:\/\//i.test(href)) return { kind: "link", href, spans: parseSpans(label, depth + 1) };
  return null;
}
