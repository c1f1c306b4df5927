// OpenAI's own client, the AI SDK and LangChain against the real server.
//
//   clients_test.cjs PROGRAM MODEL
"use strict";
const { after, before, test } = require("node:test");
const OpenAI = require("openai").default;
const { TrineServer } = require("./trine_server.cjs");

// As many clients at once as the server has places, in one of the tests.
const places = 33;

const shared = { server: null, openai: null };

before(async () => {
  // Full sequences: 33 of 1024 positions.
  shared.server = await TrineServer.start({ args: ["-np", String(places), "-c", "1024"] });
  shared.model = "tales-27m-q8_0";
  shared.openai = new OpenAI({
    baseURL: shared.server.base, apiKey: shared.server.key, maxRetries: 0 });
}, { timeout: 180_000 });

after(async () => {
  await shared.server.idle();
  console.log(`stopped within ${(await shared.server.stop()).toFixed(0)} ms`);
}, { timeout: 120_000 });

shared.check = (name, use) => test(name, { timeout: 180_000 }, use);

for (const part of ["openai_chat", "openai_sampling", "openai_forms", "openai_others",
                    "openai_errors", "ai_sdk", "langchain", "leaving", "retries"]) {
  require(`./${part}.cjs`)(shared);
}
