// What makes a page usable for everybody, as far as a program can tell.
"use strict";

// Everything that can be acted on or looked at, as Chromium tells a screen reader, must have a name.
async function nameless(page, context) {
  const session = await context.newCDPSession(page);
  const { nodes } = await session.send("Accessibility.getFullAXTree");
  const roles = ["button", "textbox", "combobox", "spinbutton", "link", "img", "image", "progressbar", "region", "dialog",
                 "main", "complementary", "columnheader"];
  return nodes.filter((node) => !node.ignored && roles.includes(node.role?.value) && !node.name?.value?.trim())
    .map((node) => `${node.role.value} ${node.nodeId}`);
}

// Texts whose contrast with what is behind them is below AA.
const pale = (page) => page.evaluate(() => {
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const level = (rgb) => {
    const [r, g, b] = rgb.map((v) => (v / 255 <= 0.03928 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const opacity = (node) => {
    let product = 1;
    for (let at = node; at; at = at.parentElement) product *= Number(getComputedStyle(at).opacity);
    return product;
  };
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== "");
    if (!own || !node.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true })) continue;
    if (node.closest(".hidden, .skip, noscript, script, option, [data-state=lost].layer-block")) continue;
    const style = getComputedStyle(node);
    const behind = ground(node);
    const part = opacity(node);
    const ink = parse(style.color).slice(0, 3).map((value, i) => value * part + behind[i] * (1 - part));
    const [a, b] = [level(ink), level(behind)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) found.push(`${node.className || node.tagName} "${node.textContent.slice(0, 20)}" ${ratio.toFixed(2)}`);
  }
  return found;
});

// Ids that are there twice, and references to ids that are not.
const badIds = (page) => page.evaluate(() => {
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  const found = ids.filter((id, i) => ids.indexOf(id) !== i);
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
    for (const node of document.querySelectorAll(`[${name}]`)) {
      for (const id of node.getAttribute(name).split(" ")) if (!ids.includes(id)) found.push(`${name}=${id}`);
    }
  }
  return found;
});

// Headings that leave out a level, controls without a label of their own, landmarks that are not there
// once, and names on elements that may have none.
const unsound = (page) => page.evaluate(() => {
  const found = [];
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    if (!heading.checkVisibility()) continue;
    const next = Number(heading.tagName[1]);
    if (next > level + 1) found.push(`h${level} is followed by ${heading.tagName} "${heading.textContent}"`);
    level = next;
  }
  for (const one of ["h1", "main", "body > header", "title", "[role=status]"]) {
    const n = document.querySelectorAll(one).length;
    if (n !== 1) found.push(`${n} of ${one}`);
  }
  for (const field of document.querySelectorAll("input, textarea, select")) {
    if (field.labels.length === 0) found.push(`no label: ${field.name || field.id}`);
  }
  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) found.push("an image without alt");
  for (const named of document.querySelectorAll(":is(div, span, p, pre, code)[aria-label]:not([role])")) {
    found.push(`${named.tagName} has a name, but no role`);
  }
  for (const node of document.querySelectorAll("[tabindex]")) if (node.tabIndex > 0) found.push("a tabindex above 0");
  if (!document.documentElement.lang) found.push("no language");
  return found;
});

// What scrolls sideways, but for code and the table, which may.
const sideways = (page) => page.evaluate(() => [...document.querySelectorAll("html, body, body *")]
  .filter((node) => node.scrollWidth > node.clientWidth + 1 && node.checkVisibility() &&
                    (node === document.documentElement || /auto|scroll/.test(getComputedStyle(node).overflowX)) &&
                    !node.closest(".table-scroll, pre, .hidden"))
  .map((node) => `${node.tagName}#${node.id}.${node.className}: ${node.scrollWidth} in ${node.clientWidth}`));

// Buttons that lie upon each other.
const overlapping = (page) => page.evaluate(() => {
  const all = [...document.querySelectorAll("button, select")].filter((node) => node.checkVisibility())
    .map((node) => ({ name: node.id || node.textContent, at: node.getBoundingClientRect() }));
  return all.flatMap((a, i) => all.slice(i + 1)
    .filter((b) => a.at.left < b.at.right - 1 && b.at.left < a.at.right - 1 && a.at.top < b.at.bottom - 1 && b.at.top < a.at.bottom - 1)
    .map((b) => `${a.name} and ${b.name}`));
});

// Words that no person should read.
const nonsense = (page) => page.evaluate(() =>
  document.body.innerText.match(/.*(NaN|undefined|null|Infinity|\[object).*/g) ?? []);

const tooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth - screen.width);
const focused = (page) => page.evaluate(() => document.activeElement.id || document.activeElement.textContent);

module.exports = { badIds, focused, nameless, nonsense, overlapping, pale, sideways, tooWide, unsound };
