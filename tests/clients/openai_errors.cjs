// The `openai` package: errors are those that its users know.
"use strict";
const assert = require("node:assert/strict");
const OpenAI = require("openai");
const { TrineServer } = require("./trine_server.cjs");

const messages = [{ role: "user", content: "Hello" }];

module.exports = (shared) => {
  const { check } = shared;
  const chat = (more) => shared.openai.chat.completions.create({
    model: shared.model, messages, max_tokens: 2, ...more });

  check("errors: the key", async () => {
    const stranger = shared.openai.withOptions({ apiKey: "another" });
    const error = await stranger.models.list().catch((e) => e);
    assert.ok(error instanceof OpenAI.AuthenticationError);
    assert.equal(error.code, "invalid_api_key");
    await assert.rejects(stranger.chat.completions.create({ model: shared.model, messages }),
                         OpenAI.AuthenticationError);
    for (const path of ["/v1/status", "/metrics", "/v1/trace", "/v1/plan", "/nowhere"]) {
      const answer = await fetch(shared.server.origin + path);
      assert.equal(answer.status, 401, path);
      assert.ok(answer.headers.get("www-authenticate"));
    }
    assert.equal((await fetch(`${shared.server.origin}/health`)).status, 200);
  });

  check("errors: a field, with its name", async () => {
    const wrong = [
      [{ temperature: "hot" }, "temperature"],
      [{ temperature: -1 }, "temperature"],
      [{ messages: [] }, "messages"],
      [{ messages: [{ role: "king", content: "" }] }, "messages[0].role"],
      [{ messages: [{ role: "user", content: 7 }] }, "messages[0].content"],
      [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] }] },
       "messages[0].content[0].type"],
      [{ n: 0 }, "n"],
      [{ stop: [1] }, "stop[0]"],
      [{ top_logprobs: 3 }, "top_logprobs"],
      [{ logit_bias: { king: 1 } }, "logit_bias.king"],
      [{ response_format: { type: "poem" } }, "response_format.type"],
      [{ response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: 3 } } } },
       "response_format.json_schema.schema"],
      [{ tools: [{ type: "function", function: { name: "a b" } }] }, "tools[0].function.name"],
    ];
    for (const [more, param] of wrong) {
      const error = await chat(more).catch((e) => e);
      assert.ok(error instanceof OpenAI.BadRequestError, `${param}: ${error}`);
      assert.equal(error.param, param);
      assert.equal(error.type, "invalid_request_error");
      assert.ok(error.message.length > 10);
      // A stream that can't begin is no stream.
      const streamed = await chat({ ...more, stream: true }).catch((e) => e);
      assert.equal(streamed.status, 400);
      assert.equal(streamed.param, param);
    }
  });

  check("errors: a prompt that is too long", async () => {
    const content = "word ".repeat(3000);
    for (const stream of [false, true]) {
      const error = await chat({ messages: [{ role: "user", content }], stream }).catch((e) => e);
      assert.equal(error.status, 400);
      assert.equal(error.code, "context_length_exceeded");
      assert.equal(error.param, "messages");
    }
    const error = await shared.openai.completions.create({
      model: shared.model, prompt: content }).catch((e) => e);
    assert.equal(error.code, "context_length_exceeded");
    const embedded = await shared.openai.embeddings.create({
      model: shared.model, input: content }).catch((e) => e);
    assert.equal(embedded.status, 400);
    assert.equal(embedded.code, "context_length_exceeded");
  });

  check("errors: an answer that fills the context ends", async () => {
    const answer = await shared.openai.completions.create({
      model: shared.model, prompt: "word ".repeat(450), temperature: 0, ignore_eos: true });
    assert.equal(answer.choices[0].finish_reason, "length");
    assert.ok(answer.usage.total_tokens >= 1023 && answer.usage.total_tokens <= 1025,
              JSON.stringify(answer.usage));
  });

  check("errors: in the middle of a stream", async () => {
    const server = await TrineServer.start({ args: ["-c", "2048", "--request-timeout", "1"] });
    const client = shared.openai.withOptions({ baseURL: server.base });
    const endless = { model: shared.model, messages, ignore_eos: true, max_tokens: 2000, temperature: 0 };
    let seen = 0;
    const read = async () => {
      for await (const _ of await client.chat.completions.create({ ...endless, stream: true })) ++seen;
    };
    const error = await read().catch((e) => e);
    assert.ok(error instanceof OpenAI.APIError, String(error));
    assert.equal(error.code, "timeout");
    assert.ok(seen > 0);
    const whole = await client.chat.completions.create(endless).catch((e) => e);
    assert.equal(whole.status, 504);
    await server.stop();
  });

  check("errors: routes", async () => {
    const error = await shared.openai.get("/nowhere").catch((e) => e);
    assert.ok(error instanceof OpenAI.NotFoundError);
    assert.equal(error.type, "not_found_error");
    const wrong = await shared.server.ask("/v1/chat/completions");
    assert.equal(wrong.status, 405);
    assert.ok((await wrong.json()).error.message);
  });
};
