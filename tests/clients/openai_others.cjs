// The `openai` package: embeddings and responses.
"use strict";
const assert = require("node:assert/strict");
const { assertFits, hero } = require("./schema.cjs");

const texts = ["The king rode out.", "A king on a horse", "Bread and butter"];

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, value, i) => sum + value * y[i], 0);
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
}

module.exports = (shared) => {
  const { check } = shared;
  const embed = (more) => shared.openai.embeddings.create({ model: shared.model, input: texts, ...more });

  check("embeddings: as base64, which the client asks for by itself, and as numbers", async () => {
    const asked = [];
    const client = shared.openai.withOptions({
      fetch: (url, init) => { asked.push(JSON.parse(init.body)); return fetch(url, init); } });
    const packed = await client.embeddings.create({ model: shared.model, input: texts });
    assert.equal(asked[0].encoding_format, "base64");
    const plain = await embed({ encoding_format: "float" });
    assert.deepEqual(packed.data.map((d) => d.index), [0, 1, 2]);
    packed.data.forEach((data, i) => {
      assert.equal(data.embedding.length, 256);
      assert.deepEqual(data.embedding.map(Math.fround), plain.data[i].embedding.map(Math.fround));
    });
    const counts = await Promise.all(
      texts.map((text) => shared.server.tokens(text, { add_special: true })));
    const sum = counts.reduce((total, tokens) => total + tokens.length, 0);
    assert.equal(plain.usage.prompt_tokens, sum);
    const [first, second, third] = plain.data.map((d) => d.embedding);
    assert.ok(Math.abs(cosine(first, first) - 1) < 1e-6);
    assert.notDeepEqual(second, third);
  });

  check("embeddings: the same alone, as tokens, and beside answers that are written", async () => {
    const all = (await embed()).data.map((d) => d.embedding);
    const busy = shared.openai.completions.create({
      model: shared.model, prompt: "Once upon a time", max_tokens: 60, temperature: 0 });
    const alone = await Promise.all(texts.map((input) => embed({ input })));
    await busy;
    assert.deepEqual(alone.map((answer) => answer.data[0].embedding), all);
    const tokens = await shared.server.tokens(texts[0], { add_special: true });
    assert.deepEqual((await embed({ input: [tokens] })).data[0].embedding, all[0]);
    assert.deepEqual((await embed({ dimensions: 256 })).data[0].embedding, all[0]);
    await assert.rejects(embed({ dimensions: 3 }), { status: 400, param: "dimensions" });
    await assert.rejects(embed({ input: "" }), { status: 400, param: "input" });
  });

  check("responses: whole", async () => {
    const answer = await shared.openai.responses.create({
      model: shared.model, instructions: "Be kind.", input: "What is the capital of France?",
      temperature: 0, max_output_tokens: 40 });
    assert.equal(answer.object, "response");
    assert.equal(answer.status, "completed");
    const chat = await shared.openai.chat.completions.create({
      model: shared.model, temperature: 0, max_tokens: 40, messages: [
        { role: "system", content: "Be kind." },
        { role: "user", content: "What is the capital of France?" }] });
    assert.equal(answer.output_text, chat.choices[0].message.content);
    assert.equal(answer.usage.input_tokens, chat.usage.prompt_tokens);
    assert.equal(answer.usage.output_tokens, chat.usage.completion_tokens);
    const cut = await shared.openai.responses.create({
      model: shared.model, input: [{ role: "user", content: "Tell me of a king." }],
      temperature: 0, max_output_tokens: 3 });
    assert.equal(cut.status, "incomplete");
    assert.equal(cut.incomplete_details.reason, "max_output_tokens");
  });

  check("responses: streamed", async () => {
    const request = { model: shared.model, input: "What is the capital of France?",
                      temperature: 0, max_output_tokens: 40 };
    const whole = await shared.openai.responses.create(request);
    const events = [];
    for await (const event of await shared.openai.responses.create({ ...request, stream: true })) {
      events.push(event);
    }
    assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
    const deltas = events.filter((e) => e.type === "response.output_text.delta");
    assert.ok(deltas.length > 1);
    assert.equal(deltas.map((e) => e.delta).join(""), whole.output_text);
    assert.deepEqual(events.filter((e) => e.type !== "response.output_text.delta").map((e) => e.type), [
      "response.created", "response.in_progress", "response.output_item.added",
      "response.content_part.added", "response.output_text.done", "response.content_part.done",
      "response.output_item.done", "response.completed"]);
    const final = await shared.openai.responses.stream(request).finalResponse();
    assert.equal(final.output_text, whole.output_text);
  });

  check("responses: of a form", async () => {
    const answer = await shared.openai.responses.create({
      model: shared.model, input: "Tell me of a hero.", temperature: 1, max_output_tokens: 200,
      text: { format: { type: "json_schema", name: "hero", schema: hero, strict: true } } });
    assertFits(JSON.parse(answer.output_text), hero);
  });
};
