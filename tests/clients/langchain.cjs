// LangChain's OpenAI package.
"use strict";
const assert = require("node:assert/strict");
const { ChatOpenAI, OpenAI, OpenAIEmbeddings } = require("@langchain/openai");
const { HumanMessage, SystemMessage } = require("@langchain/core/messages");
const { assertFits, hero, weather } = require("./schema.cjs");

module.exports = (shared) => {
  const { check } = shared;
  const place = (more) => ({
    apiKey: shared.server.key, maxRetries: 0, configuration: { baseURL: shared.server.base }, ...more });
  const chat = (more) => new ChatOpenAI(place({
    model: shared.model, temperature: 0, maxTokens: 60, ...more }));
  const question = [new SystemMessage("Be kind."), new HumanMessage("What is the capital of France?")];

  check("langchain: chat, whole and streamed", async () => {
    const answer = await chat().invoke(question);
    const raw = await shared.openai.chat.completions.create({
      model: shared.model, temperature: 0, max_tokens: 60, messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "What is the capital of France?" }] });
    assert.equal(answer.content, raw.choices[0].message.content);
    assert.equal(answer.usage_metadata.input_tokens, raw.usage.prompt_tokens);
    assert.equal(answer.usage_metadata.output_tokens, raw.usage.completion_tokens);
    assert.equal(answer.response_metadata.finish_reason, "stop");
    let whole;
    for await (const chunk of await chat().stream(question)) {
      whole = whole === undefined ? chunk : whole.concat(chunk);
    }
    assert.equal(whole.content, answer.content);
    assert.equal(whole.usage_metadata.output_tokens, raw.usage.completion_tokens);
  });

  check("langchain: several at once", async () => {
    const one = await chat().invoke(question);
    const all = await chat().batch([question, question, question]);
    for (const answer of all) assert.equal(answer.content, one.content);
  });

  check("langchain: completions", async () => {
    const model = new OpenAI(place({ model: shared.model, temperature: 0, maxTokens: 8 }));
    const text = await model.invoke("Once upon a time");
    const raw = await shared.openai.completions.create({
      model: shared.model, prompt: "Once upon a time", temperature: 0, max_tokens: 8 });
    assert.equal(text, raw.choices[0].text);
  });

  check("langchain: tools, whole and streamed", async () => {
    const tool = { type: "function",
                   function: { name: "get_weather", description: "", parameters: weather } };
    for (const tool_choice of ["required", "get_weather"]) {
      const model = chat({ maxTokens: 100 }).bindTools([tool], { tool_choice });
      const answer = await model.invoke(question);
      assert.equal(answer.tool_calls[0].name, "get_weather");
      assertFits(answer.tool_calls[0].args, weather);
      let whole;
      for await (const chunk of await model.stream(question)) {
        whole = whole === undefined ? chunk : whole.concat(chunk);
      }
      assert.deepEqual(whole.tool_calls[0].args, answer.tool_calls[0].args);
    }
  });

  check("langchain: structured output", async () => {
    const schema = { title: "hero", ...hero };
    for (const method of ["jsonSchema", "functionCalling"]) {
      const model = chat({ maxTokens: 200 }).withStructuredOutput(schema, { name: "hero", method });
      assertFits(await model.invoke(question), hero);
    }
  });

  check("langchain: embeddings", async () => {
    const model = new OpenAIEmbeddings(place({ model: shared.model }));
    const vectors = await model.embedDocuments(["a king", "a queen"]);
    const raw = await shared.openai.embeddings.create({
      model: shared.model, input: ["a king", "a queen"] });
    assert.deepEqual(vectors, raw.data.map((d) => d.embedding));
    assert.deepEqual(await model.embedQuery("a king"), vectors[0]);
  });

  check("langchain: errors", async () => {
    const stranger = chat({ apiKey: "another" });
    await assert.rejects(stranger.invoke(question), { status: 401 });
    await assert.rejects(chat().invoke("word ".repeat(3000)), (error) => {
      assert.match(`${error.code} ${error.name} ${error.lc_error_code}`, /context/i);
      return true;
    });
  });
};
