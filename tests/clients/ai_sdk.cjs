// Vercel's AI SDK, with its provider for compatible servers.
"use strict";
const assert = require("node:assert/strict");
const ai = require("ai");
const { createOpenAICompatible } = require("@ai-sdk/openai-compatible");
const { z } = require("zod");
const { assertFits, hero, weather } = require("./schema.cjs");

globalThis.AI_SDK_LOG_WARNINGS = false;

module.exports = (shared) => {
  const { check } = shared;
  const provider = (more = {}) => createOpenAICompatible({
    name: "trine", baseURL: shared.server.base, apiKey: shared.server.key, includeUsage: true,
    supportsStructuredOutputs: true, ...more });
  const ask = () => ({ model: provider()(shared.model), prompt: "What is the capital of France?",
                       temperature: 0, maxOutputTokens: 40, maxRetries: 0 });

  check("ai: text, whole and streamed", async () => {
    const whole = await ai.generateText(ask());
    assert.equal(whole.text, "The capital of France is Paris.");
    assert.equal(whole.finishReason, "stop");
    const streamed = ai.streamText(ask());
    const pieces = [];
    for await (const piece of streamed.textStream) pieces.push(piece);
    assert.ok(pieces.length > 1);
    assert.equal(pieces.join(""), whole.text);
    assert.equal(await streamed.finishReason, "stop");
    const usage = await streamed.usage;
    for (const name of ["inputTokens", "outputTokens", "totalTokens"]) {
      assert.ok(usage[name] > 0);
      assert.equal(usage[name], whole.usage[name]);
    }
  });

  check("ai: completions", async () => {
    const model = provider().completionModel(shared.model);
    const { text, usage } = await ai.generateText({
      model, prompt: "Once upon a time", temperature: 0, maxOutputTokens: 8 });
    assert.ok(text.length > 0);
    assert.equal(usage.outputTokens, 8);
  });

  check("ai: tools, whole and streamed", async () => {
    const tools = { get_weather: ai.tool({
      description: "The weather", inputSchema: ai.jsonSchema(weather) }) };
    for (const toolChoice of ["required", { type: "tool", toolName: "get_weather" }]) {
      const whole = await ai.generateText({ ...ask(), maxOutputTokens: 100, tools, toolChoice });
      assert.equal(whole.finishReason, "tool-calls");
      assert.equal(whole.toolCalls[0].toolName, "get_weather");
      assertFits(whole.toolCalls[0].input, weather);
      const streamed = ai.streamText({ ...ask(), maxOutputTokens: 100, tools, toolChoice });
      const calls = await streamed.toolCalls;
      assert.deepEqual(calls[0].input, whole.toolCalls[0].input);
      assert.equal(await streamed.finishReason, "tool-calls");
    }
  });

  check("ai: a tool's answer goes back", async () => {
    const given = [];
    const tools = { get_weather: ai.tool({
      description: "The weather", inputSchema: ai.jsonSchema(weather),
      execute: async (input) => { given.push(input); return { sky: "grey" }; } }) };
    const result = await ai.generateText({
      ...ask(), maxOutputTokens: 200, tools, toolChoice: "required", stopWhen: ai.stepCountIs(2) });
    assert.ok(given.length >= 1);
    given.forEach((input) => assertFits(input, weather));
    assert.ok(result.steps.length >= 1);
  });

  check("ai: objects", async () => {
    const schema = z.object({ name: z.enum(["Hans", "Grete"]), brave: z.boolean() });
    const made = await ai.generateObject({ ...ask(), maxOutputTokens: 100, schema });
    schema.parse(made.object);
    const streamed = ai.streamObject({
      ...ask(), maxOutputTokens: 200, schema: ai.jsonSchema(hero) });
    const parts = [];
    for await (const part of streamed.partialObjectStream) parts.push(part);
    assertFits(await streamed.object, hero);
    assert.deepEqual(parts.at(-1), await streamed.object);
  });

  check("ai: embeddings", async () => {
    const model = provider().embeddingModel(shared.model);
    const { embeddings, usage } = await ai.embedMany({ model, values: ["a king", "a queen"] });
    const raw = await shared.openai.embeddings.create({
      model: shared.model, input: ["a king", "a queen"], encoding_format: "float" });
    assert.deepEqual(embeddings, raw.data.map((d) => d.embedding));
    assert.equal(usage.tokens, raw.usage.prompt_tokens);
  });

  check("ai: errors", async () => {
    const stranger = provider({ apiKey: "another" })(shared.model);
    const error = await ai.generateText({ ...ask(), model: stranger }).catch((e) => e);
    assert.ok(ai.APICallError.isInstance(error), String(error));
    assert.equal(error.statusCode, 401);
    assert.equal(error.isRetryable, false);
    const wrong = await ai.generateText({
      ...ask(), prompt: "word ".repeat(3000) }).catch((e) => e);
    assert.equal(wrong.statusCode, 400);
    assert.equal(wrong.data.error.code, "context_length_exceeded");
    assert.equal(wrong.message, wrong.data.error.message);
  });
};
