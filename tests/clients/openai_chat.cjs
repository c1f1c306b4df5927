// The `openai` package: models, chat, completions, streams and usage.
"use strict";
const assert = require("node:assert/strict");

const question = [{ role: "user", content: "What is the capital of France?" }];
// As the template writes it.
const written = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";

async function collect(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

module.exports = (shared) => {
  const { check } = shared;
  const chat = (more) => shared.openai.chat.completions.create({
    model: shared.model, messages: question, temperature: 0, max_tokens: 12, ...more });
  const complete = (more) => shared.openai.completions.create({
    model: shared.model, prompt: "Once upon a time", temperature: 0, max_tokens: 16, ...more });

  check("openai: models", async () => {
    const list = await shared.openai.models.list();
    assert.deepEqual(list.data.map((m) => m.id), [shared.model]);
    assert.equal(list.data[0].object, "model");
    const one = await shared.openai.models.retrieve(shared.model);
    assert.equal(one.id, shared.model);
    await assert.rejects(shared.openai.models.retrieve("another"), { status: 404 });
  });

  check("openai: chat, with usage as /tokenize counts", async () => {
    const answer = await chat({ max_tokens: 40 });
    assert.equal(answer.object, "chat.completion");
    assert.match(answer.id, /^chatcmpl-/);
    assert.match(answer._request_id, /^req_/);
    const [choice] = answer.choices;
    assert.equal(choice.message.role, "assistant");
    assert.equal(choice.message.content, "The capital of France is Paris.");
    assert.equal(choice.finish_reason, "stop");
    const prompt = await shared.server.tokens(written);
    const text = await shared.server.tokens(choice.message.content);
    assert.equal(answer.usage.prompt_tokens, prompt.length);
    // Without the token that ended it.
    assert.equal(answer.usage.completion_tokens, text.length);
    assert.equal(answer.usage.total_tokens,
                 answer.usage.prompt_tokens + answer.usage.completion_tokens);
  });

  check("openai: what is told in other words is the same", async () => {
    const plain = await chat({ messages: [{ role: "system", content: "Be kind." }, ...question] });
    const other = await chat({
      messages: [
        { role: "developer", content: [{ type: "text", text: "Be " }, { type: "text", text: "kind." }] },
        ...question,
      ],
      max_tokens: undefined, max_completion_tokens: 12, user: "somebody", store: false,
    });
    assert.deepEqual(other.choices, plain.choices);
    assert.equal(other.usage.prompt_tokens, plain.usage.prompt_tokens);
  });

  check("openai: a streamed chat is the whole one in pieces", async () => {
    const whole = await chat({ max_tokens: 40 });
    const chunks = await collect(
      await chat({ max_tokens: 40, stream: true, stream_options: { include_usage: true } }));
    const [first] = chunks;
    for (const chunk of chunks) {
      assert.equal(chunk.object, "chat.completion.chunk");
      for (const field of ["id", "created", "model"]) assert.equal(chunk[field], first[field]);
      for (const choice of chunk.choices) assert.equal(choice.index, 0);
    }
    assert.equal(first.choices[0].delta.role, "assistant");
    const usage = chunks.at(-1);
    assert.deepEqual(usage.choices, []);
    const { completion_tokens, prompt_tokens, total_tokens } = whole.usage;
    assert.equal(usage.usage.completion_tokens, completion_tokens);
    assert.equal(usage.usage.prompt_tokens, prompt_tokens);
    assert.equal(usage.usage.total_tokens, total_tokens);
    const body = chunks.slice(0, -1);
    assert.equal(body.at(-1).choices[0].finish_reason, "stop");
    for (const chunk of body.slice(0, -1)) assert.equal(chunk.choices[0].finish_reason, null);
    const text = body.map((chunk) => chunk.choices[0].delta.content ?? "").join("");
    assert.equal(text, whole.choices[0].message.content);
    // Each token's text as it comes, and none twice.
    assert.ok(body.length > completion_tokens / 2, `${body.length} chunks`);
  });

  check("openai: without usage there is no chunk of it", async () => {
    const chunks = await collect(await chat({ stream: true }));
    assert.ok(chunks.every((chunk) => chunk.choices.length === 1 && !chunk.usage));
  });

  check("openai: the client's own helpers read the stream", async () => {
    const runner = shared.openai.chat.completions.stream({
      model: shared.model, messages: question, temperature: 0, max_tokens: 40,
      stream_options: { include_usage: true } });
    let text = "";
    runner.on("content", (delta) => (text += delta));
    const final = await runner.finalChatCompletion();
    assert.equal(text, "The capital of France is Paris.");
    assert.equal(final.choices[0].message.content, text);
    assert.equal((await runner.totalUsage()).completion_tokens, final.usage.completion_tokens);
  });

  check("openai: the frames themselves", async () => {
    const answer = await shared.server.ask("/v1/chat/completions", {
      messages: question, temperature: 0, max_tokens: 5, stream: true });
    assert.equal(answer.headers.get("content-type"), "text/event-stream");
    const text = await answer.text();
    assert.ok(text.endsWith("\n\ndata: [DONE]\n\n"), text);
    for (const frame of text.split("\n\n").slice(0, -2)) {
      assert.ok(frame.startsWith("data: {"), frame);
      JSON.parse(frame.slice(6));
    }
  });

  check("openai: completions", async () => {
    const answer = await complete();
    assert.equal(answer.object, "text_completion");
    assert.equal(answer.choices[0].finish_reason, "length");
    assert.equal(answer.usage.completion_tokens, 16);
    const prompt = await shared.server.tokens("Once upon a time", { add_special: true });
    assert.equal(answer.usage.prompt_tokens, prompt.length);
    const text = await shared.server.tokens(answer.choices[0].text);
    assert.equal(text.length, 16);
    const given = await complete({ prompt });
    assert.equal(given.choices[0].text, answer.choices[0].text);
    const chunks = await collect(await complete({ stream: true }));
    assert.equal(chunks.map((c) => c.choices[0].text).join(""), answer.choices[0].text);
    const echoed = await complete({ echo: true });
    assert.equal(echoed.choices[0].text, `Once upon a time${answer.choices[0].text}`);
  });

  check("openai: several prompts in one request", async () => {
    const prompts = ["Once upon a time", "The old king", "In the forest"];
    const alone = [];
    for (const prompt of prompts) alone.push((await complete({ prompt })).choices[0].text);
    const together = await complete({ prompt: prompts });
    assert.deepEqual(together.choices.map((c) => c.index), [0, 1, 2]);
    assert.deepEqual(together.choices.map((c) => c.text), alone);
  });

  check("openai: /detokenize undoes /tokenize", async () => {
    const text = "Grüße, “dear” friend: 你好 👋🏽!";
    const tokens = await shared.server.tokens(text);
    assert.equal((await shared.server.json("/detokenize", { tokens })).content, text);
    const pieces = await shared.server.tokens(text, { with_pieces: true });
    assert.deepEqual(pieces.map((p) => p.id), tokens);
    const bytes = pieces.map((p) => Buffer.from(p.piece));
    assert.equal(Buffer.concat(bytes).toString(), text);
  });
};
