// The server's page in a real browser.
//
//   page_test.cjs PART...      chat, failures, settings, machine, access
//
// TRINE_PAGE_URL: a server to try it on, instead of the one in mock_server.cjs; what needs a server
// that errs on purpose is skipped then. TRINE_CHROMIUM: the browser. TRINE_PAGE_PICTURES: a folder
// for screenshots.
"use strict";
const { after, before, beforeEach, test } = require("node:test");
const { Browser, findChromium } = require("./browser.cjs");
const { MockServer } = require("./mock_server.cjs");

const chromium = findChromium();
if (!chromium) {
  console.log("skipped: there is no chromium");
  process.exit(process.env.CI || process.env.TRINE_REQUIRE_NODE ? 1 : 77);
}

const mock = process.env.TRINE_PAGE_URL ? null : new MockServer();
const shared = { mock, browser: null };

before(async () => {
  const base = mock ? await mock.listen() : new URL("/", process.env.TRINE_PAGE_URL).href;
  shared.browser = await Browser.start(chromium, base);
});
beforeEach(() => mock?.reset());
after(async () => {
  await shared.browser?.close();
  mock?.close();
});

// check(name, {mocked: true where it tells the server what to do, ...Browser.withPage's}, use)
shared.check = (name, { mocked = false, prepare, ...options }, use) =>
  test(name, { skip: mocked && !mock ? "needs the mock" : false, timeout: 120_000 }, async () => {
    prepare?.(mock);
    await shared.browser.withPage(use, options);
  });

for (const part of process.argv.slice(2)) require(`./${part}.cjs`)(shared);
