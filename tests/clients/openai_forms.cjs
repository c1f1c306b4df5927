// The `openai` package: answers of a given form, tool calls and JSON.
"use strict";
const assert = require("node:assert/strict");
const { assertFits, hero, weather } = require("./schema.cjs");

const tools = [
  { type: "function",
    function: { name: "get_weather", description: "The weather of a city", parameters: weather } },
  { type: "function", function: { name: "ring_the_bell" } },
];
const messages = [{ role: "user", content: "How is the weather in Paris?" }];

function assertCall(call) {
  assert.equal(call.type, "function");
  assert.ok(call.id.length > 0);
  assert.ok(["get_weather", "ring_the_bell"].includes(call.function.name), call.function.name);
  const schema = call.function.name === "get_weather"
    ? weather : { type: "object", properties: {}, additionalProperties: false };
  assertFits(JSON.parse(call.function.arguments), schema);
}

module.exports = (shared) => {
  const { check } = shared;
  const chat = (more) => shared.openai.chat.completions.create({
    model: shared.model, messages, max_tokens: 200, ...more });
  const named = (name) => ({ type: "function", function: { name } });

  check("tools: one that is required is called, whatever is sampled", async () => {
    for (let seed = 0; seed < 6; ++seed) {
      const answer = await chat({ tools, tool_choice: "required", temperature: 1, seed });
      const [choice] = answer.choices;
      assert.equal(choice.finish_reason, "tool_calls");
      assert.equal(choice.message.content, null);
      assert.equal(choice.message.tool_calls.length, 1);
      assertCall(choice.message.tool_calls[0]);
    }
  });

  check("tools: the named one is called", async () => {
    for (const name of ["get_weather", "ring_the_bell"]) {
      const answer = await chat({ tools, tool_choice: named(name), temperature: 0 });
      const [call] = answer.choices[0].message.tool_calls;
      assert.equal(call.function.name, name);
      assertCall(call);
      if (name === "ring_the_bell") assert.equal(call.function.arguments, "{}");
    }
  });

  check("tools: streamed", async () => {
    const request = { tools, tool_choice: "required", temperature: 1, seed: 5 };
    const whole = (await chat(request)).choices[0];
    const calls = [];
    let end = null;
    for await (const chunk of await chat({ ...request, stream: true })) {
      const [choice] = chunk.choices;
      for (const delta of choice.delta.tool_calls ?? []) {
        if (calls[delta.index] === undefined) {
          assert.equal(delta.type, "function");
          assert.ok(delta.id);
          calls[delta.index] = { name: delta.function.name, text: "" };
        }
        calls[delta.index].text += delta.function.arguments ?? "";
      }
      end = choice.finish_reason ?? end;
    }
    assert.equal(end, "tool_calls");
    assert.deepEqual(calls, whole.message.tool_calls.map((call) => (
      { name: call.function.name, text: call.function.arguments })));
  });

  check("tools: the client's runner calls the function and goes on with what it says", async () => {
    const asked = [];
    const runner = shared.openai.chat.completions.runTools({
      model: shared.model, messages, max_tokens: 200, temperature: 0,
      tool_choice: named("get_weather"),
      tools: [{ type: "function", function: {
        name: "get_weather", description: "", parameters: weather, parse: JSON.parse,
        function: (given) => { asked.push(given); return "It rains."; } } }],
    }, { maxChatCompletions: 2 });
    await runner.done();
    assert.ok(asked.length >= 1);
    asked.forEach((given) => assertFits(given, weather));
    const said = runner.messages.filter((message) => message.role === "tool");
    assert.equal(said[0].content, "It rains.");
  });

  check("tools: with none, and where none is wanted", async () => {
    const answer = await chat({ tools, tool_choice: "none", temperature: 0, max_tokens: 20 });
    assert.equal(answer.choices[0].message.tool_calls, undefined);
    assert.ok(answer.choices[0].message.content.length > 0);
    await assert.rejects(chat({ tool_choice: "required" }), { status: 400, param: "tool_choice" });
    await assert.rejects(chat({ tools, tool_choice: named("another") }),
                         { status: 400, param: "tool_choice.function.name" });
  });

  check("JSON: an answer of a schema parses and fits, whatever is sampled", async () => {
    const response_format = {
      type: "json_schema", json_schema: { name: "hero", strict: true, schema: hero } };
    for (let seed = 0; seed < 8; ++seed) {
      const answer = await chat({ response_format, temperature: seed === 0 ? 0 : 1.2, seed });
      assert.equal(answer.choices[0].finish_reason, "stop");
      assertFits(JSON.parse(answer.choices[0].message.content), hero);
    }
  });

  check("JSON: streamed, and with the client's parser", async () => {
    const response_format = { type: "json_schema", json_schema: { name: "hero", schema: hero } };
    let text = "";
    for await (const chunk of await chat({ response_format, stream: true, temperature: 1, seed: 2 })) {
      text += chunk.choices[0].delta.content ?? "";
    }
    assertFits(JSON.parse(text), hero);
    const { zodResponseFormat } = require("openai/helpers/zod");
    const { z } = require("zod");
    const Hero = z.object({ name: z.enum(["Hans", "Grete"]), age: z.number().int(), brave: z.boolean() });
    const parsed = await shared.openai.chat.completions.parse({
      model: shared.model, messages, max_tokens: 200, temperature: 0,
      response_format: zodResponseFormat(Hero, "hero") });
    assert.deepEqual(Hero.parse(parsed.choices[0].message.parsed),
                     parsed.choices[0].message.parsed);
  });

  check("JSON: json_object is an object as long as it has room to end", async () => {
    let ended = 0;
    for (let seed = 0; seed < 6; ++seed) {
      const answer = await chat({
        response_format: { type: "json_object" }, temperature: 1, seed, max_tokens: 400 });
      const [choice] = answer.choices;
      if (choice.finish_reason === "length") continue;
      ++ended;
      const value = JSON.parse(choice.message.content);
      assert.ok(value !== null && typeof value === "object" && !Array.isArray(value));
    }
    assert.ok(ended > 0);
    const text = await chat({ response_format: { type: "text" }, temperature: 0, max_tokens: 12 });
    const plain = await chat({ temperature: 0, max_tokens: 12 });
    assert.deepEqual(text.choices, plain.choices);
  });
};
