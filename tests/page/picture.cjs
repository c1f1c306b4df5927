// What is seen on the timeline, and of anything else.
"use strict";
const { sleep } = require("./mock_server.cjs");

// How many pixels are drawn, in how many colours, and a sum that changes with them.
const look = (page) => page.locator("#timeline").evaluate((canvas) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const colors = new Map();
  let drawn = 0;
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] === 0) continue;
    drawn += 1;
    if (data[i + 3] === 255) {
      const color = `${data[i]},${data[i + 1]},${data[i + 2]}`;
      colors.set(color, (colors.get(color) ?? 0) + 1);
    }
    sum = (sum * 31 + i * data[i] + data[i + 1]) % 1e9;
  }
  return { drawn, sum, many: [...colors].filter(([, n]) => n > 300).map(([color]) => color), all: data.length / 4 };
});

// Pixels of a colour, pale ones too: narrow passes are.
const pixelsOf = (page, color) => page.locator("#timeline").evaluate((canvas, text) => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const wanted = text.match(/\d+/g).slice(0, 3).map(Number);
  let found = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 60 && wanted.every((value, j) => Math.abs(data[i + j] - value) <= 4)) found += 1;
  }
  return found;
}, color);

async function changes(page, ms) {
  let last = (await look(page)).sum;
  let found = 0;
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) {
    const { sum } = await look(page);
    if (sum !== last) found += 1;
    last = sum;
  }
  return found;
}

// Of a screenshot, as a person would see it.
async function colorsOf(page, locator) {
  const picture = (await locator.screenshot()).toString("base64");
  return page.evaluate(async (base64) => {
    const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    const counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const color = (data[i] << 16) | (data[i + 1] << 8) | data[i + 2];
      counts.set(color, (counts.get(color) ?? 0) + 1);
    }
    return [...counts.values()].sort((a, b) => b - a).map((n) => n / (data.length / 4));
  }, picture);
}

module.exports = { changes, colorsOf, look, pixelsOf };
