// The page of a real `trine serve` with the shipped model, in a real browser.
//
//   page_server_test.cjs PROGRAM MODEL PLUGIN    the plugin whose devices are several0, several1...
//
// TRINE_CHROMIUM: the browser. TRINE_PAGE_PICTURES: a folder for screenshots.
"use strict";
const { after, before, test } = require("node:test");
const { TrineServer } = require("../clients/trine_server.cjs");
const { Browser, findChromium } = require("./browser.cjs");

const chromium = findChromium();
if (!chromium) {
  console.log("skipped: there is no chromium");
  process.exit(process.env.CI || process.env.TRINE_REQUIRE_NODE ? 1 : 77);
}

const plugin = process.argv[4];
// A key may have letters that a header has not.
const letters = "Schlüssel, ключ";
// Tokens that end an answer, of the shipped model. Without them one goes on to its limit.
const ends = ["8189", "8191"];

const shared = {
  browser: null, quick: null, slow: null, letters,
  // Answers end by themselves, at the machine's speed.
  startQuick: (more = {}) => TrineServer.start({ ...more, args: ["-c", "1024", "--api-key", letters] }),
  // Three tiers, and answers that are as slow and as long as a test wants to look at them.
  startSlow: ({ faults = "", args = [], ...more } = {}) => TrineServer.start({
    ...more, device: "", env: { TRINE_FAULT: `cpu:slow=20@token${faults}` },
    args: ["-c", "1024", "-np", "1", "--queue", "1", "--plugin", plugin, "-ts", "cpu:12,several0:10,several1:10",
           ...ends.flatMap((token) => ["-l", `${token}-inf`]), ...args] }),
  // What a slow server says, from the quick one.
  endless: Object.fromEntries(ends.map((token) => [token, -100])),
};

before(async () => {
  [shared.browser, shared.quick, shared.slow] = await Promise.all([
    Browser.start(chromium, ""), shared.startQuick(), shared.startSlow()]);
});
after(async () => {
  await shared.browser?.close();
  await Promise.all([shared.quick?.stop(), shared.slow?.stop()]);
});

// check(name, Browser.withPage's options, with `server` a name or a function that starts one, use(page, context, server))
shared.check = (name, { server: which, ...options }, use) =>
  test(name, { timeout: 120_000 }, async () => {
    const server = typeof which === "function" ? await which() : shared[which];
    try {
      await shared.browser.withPage((page, context) => use(page, context, server),
                                    { base: `${server.origin}/`, key: server.key, ...options });
    } finally {
      if (server !== shared[which]) server.signal("SIGKILL");
    }
  });

for (const part of ["machine", "chat", "access", "fault", "gone"]) require(`./server_${part}.cjs`)(shared);
