// A server that is still loading, or has too much to do: the clients' own retries find it ready.
"use strict";
const assert = require("node:assert/strict");
const ai = require("ai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { ChatOpenAI } = require("@langchain/openai");
const OpenAI = require("openai").default;
const { TrineServer } = require("./trine_server.cjs");

const question = "What is the capital of France?";
const expected = "The capital of France is Paris.";

module.exports = ({ check }) => {
  check("retries: while the model is loaded", async () => {
    const model = "tales-27m-q8_0";
    // Opening the device takes three seconds more.
    const server = await TrineServer.start({ loaded: false, env: { TRINE_FAULT: "cpu:slow=3s@open=1" } });
    const health = await fetch(`${server.origin}/health`);
    assert.equal(health.status, 503);
    assert.equal((await health.json()).status, "loading");
    const refusals = [];
    const watched = async (url, init) => {
      const answer = await fetch(url, init);
      if (!answer.ok) refusals.push([answer.status, answer.headers.get("retry-after")]);
      return answer;
    };
    const client = (maxRetries) => new OpenAI({
      baseURL: server.base, apiKey: server.key, maxRetries, fetch: watched });
    const messages = [{ role: "user", content: question }];
    const impatient = await client(0).chat.completions.create({ model, messages }).catch((e) => e);
    assert.equal(impatient.status, 503);
    assert.match(impatient.message, /loaded/);
    const patient = client(20).chat.completions.create({ model, messages, temperature: 0 });
    const stream = client(20).chat.completions.create({ model, messages, temperature: 0, stream: true });
    const sdk = ai.generateText({
      model: createOpenAICompatible({ name: "trine", baseURL: server.base, apiKey: server.key,
                                      fetch: watched })(model),
      prompt: question, temperature: 0, maxRetries: 8 });
    const langchain = new ChatOpenAI({
      model, apiKey: server.key, temperature: 0, maxRetries: 8,
      configuration: { baseURL: server.base, fetch: watched } }).invoke(question);
    assert.equal((await patient).choices[0].message.content, expected);
    let text = "";
    for await (const chunk of await stream) text += chunk.choices[0].delta.content ?? "";
    assert.equal(text, expected);
    assert.equal((await sdk).text, expected);
    assert.equal((await langchain).content, expected);
    console.log(`answers after ${refusals.length} refusals`);
    assert.ok(refusals.length >= 5, "each client was told to wait at least once");
    for (const [status, after] of refusals) {
      assert.equal(status, 503);
      assert.ok(Number(after) >= 1);
    }
    await server.stop();
  });

  check("retries: while the queue is full", async () => {
    const server = await TrineServer.start({ args: ["-np", "1", "--queue", "1", "-c", "512"] });
    const refusals = [];
    const client = (maxRetries) => new OpenAI({
      baseURL: server.base, apiKey: server.key, maxRetries,
      fetch: async (url, init) => {
        const answer = await fetch(url, init);
        if (!answer.ok) refusals.push([answer.status, answer.headers.get("retry-after")]);
        return answer;
      } });
    const request = { model: "x", prompt: "Once upon a time", max_tokens: 100, temperature: 0 };
    const eight = (maxRetries) => Promise.allSettled(
      Array.from({ length: 8 }, () => client(maxRetries).completions.create(request)));
    const impatient = await eight(0);
    const failed = impatient.filter((answer) => answer.status === "rejected");
    assert.ok(failed.length > 0 && failed.length < 8, `${failed.length} of 8 were refused`);
    for (const { reason } of failed) {
      assert.ok(reason instanceof OpenAI.RateLimitError, String(reason));
      assert.equal(reason.code, "rate_limit_exceeded");
    }
    const texts = new Set((await eight(30)).map((answer) => answer.value?.choices[0].text));
    assert.equal(texts.size, 1);
    assert.ok(!texts.has(undefined));
    for (const [status, after] of refusals) assert.deepEqual([status, Number(after) > 0], [429, true]);
    await server.stop();
  });
};
