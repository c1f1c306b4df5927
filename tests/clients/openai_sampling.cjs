// The `openai` package: what says how an answer is sampled, and that company changes nothing.
"use strict";
const assert = require("node:assert/strict");
const { TrineServer } = require("./trine_server.cjs");

module.exports = (shared) => {
  const { check } = shared;
  const story = (more) => shared.openai.completions.create({
    model: shared.model, prompt: "Once upon a time", max_tokens: 24, temperature: 0, ...more });
  const text = async (more) => (await story(more)).choices[0].text;

  check("sampling: the same seed, the same text", async () => {
    const first = await text({ temperature: 1, seed: 7 });
    assert.equal(await text({ temperature: 1, seed: 7 }), first);
    assert.notEqual(await text({ temperature: 1, seed: 8 }), first);
  });

  check("sampling: n", async () => {
    const answer = await story({ n: 3, temperature: 1, seed: 7 });
    assert.deepEqual(answer.choices.map((c) => c.index), [0, 1, 2]);
    assert.equal(new Set(answer.choices.map((c) => c.text)).size, 3);
    assert.equal(answer.choices[0].text, await text({ temperature: 1, seed: 7 }));
    assert.equal(answer.usage.completion_tokens, 72);
    const again = await story({ n: 3, temperature: 1, seed: 7 });
    assert.deepEqual(again.choices, answer.choices);
    const texts = ["", "", ""], ends = [0, 0, 0];
    for await (const chunk of await story({ n: 3, temperature: 1, seed: 7, stream: true })) {
      for (const choice of chunk.choices) {
        assert.equal(ends[choice.index], 0, "text after the finish reason");
        texts[choice.index] += choice.text;
        if (choice.finish_reason) ends[choice.index] += 1;
      }
    }
    assert.deepEqual(ends, [1, 1, 1]);
    assert.deepEqual(texts, answer.choices.map((c) => c.text));
  });

  check("sampling: stop strings", async () => {
    const whole = await text();
    const stop = whole.slice(20, 26);  // begins and ends inside of tokens
    const answer = await story({ stop });
    assert.equal(answer.choices[0].text, whole.slice(0, whole.indexOf(stop)));
    assert.equal(answer.choices[0].finish_reason, "stop");
    const listed = await story({ stop: ["never in this text", stop] });
    assert.equal(listed.choices[0].text, answer.choices[0].text);
    let streamed = "";
    for await (const chunk of await story({ stop, stream: true })) {
      streamed += chunk.choices[0].text;
    }
    assert.equal(streamed, answer.choices[0].text);
  });

  check("sampling: logit_bias", async () => {
    const [first] = await shared.server.tokens(await text({ max_tokens: 1 }));
    const without = await text({ max_tokens: 1, logit_bias: { [first]: -100 } });
    assert.notDeepEqual(await shared.server.tokens(without), [first]);
    const [wanted] = await shared.server.tokens(" dragon");
    assert.equal(await text({ max_tokens: 1, logit_bias: { [wanted]: 100 } }),
                 (await shared.server.json("/detokenize", { tokens: [wanted] })).content);
  });

  check("sampling: penalties", async () => {
    const plain = await text({ max_tokens: 60 });
    const penalised = await text({ max_tokens: 60, frequency_penalty: 2, presence_penalty: 2 });
    assert.notEqual(penalised, plain);
  });

  check("sampling: log-probabilities", async () => {
    const answer = await shared.openai.chat.completions.create({
      model: shared.model, temperature: 0, max_tokens: 6, logprobs: true, top_logprobs: 4,
      messages: [{ role: "user", content: "What is the capital of France?" }] });
    const [choice] = answer.choices;
    const tokens = choice.logprobs.content;
    assert.equal(tokens.length, answer.usage.completion_tokens);
    assert.equal(tokens.map((t) => t.token).join(""), choice.message.content);
    for (const token of tokens) {
      assert.deepEqual(token.bytes, [...Buffer.from(token.token)]);
      assert.equal(token.top_logprobs.length, 4);
      // The best is taken, and the list goes downwards.
      assert.equal(token.top_logprobs[0].token, token.token);
      assert.equal(token.top_logprobs[0].logprob, token.logprob);
      const falls = token.top_logprobs.map((t) => t.logprob);
      assert.deepEqual(falls, [...falls].sort((a, b) => b - a));
      assert.ok(token.logprob <= 0);
      const sum = falls.reduce((total, value) => total + Math.exp(value), 0);
      assert.ok(sum > 0 && sum <= 1.0001, `${sum}`);
    }
    const old = await story({ logprobs: 2, max_tokens: 4 });
    const told = old.choices[0].logprobs;
    assert.equal(told.tokens.join(""), old.choices[0].text);
    assert.equal(told.token_logprobs.length, 4);
    assert.equal(Object.keys(told.top_logprobs[0]).length, 2);
    assert.equal(told.text_offset[1] - told.text_offset[0], told.tokens[0].length);
  });

  check("sampling: the same text alone and with 32 others", async () => {
    const alone = await text({ max_tokens: 48 });
    const seeded = await text({ max_tokens: 48, temperature: 1, seed: 3 });
    const others = Array.from({ length: 31 }, (_, i) => text({
      prompt: "The old king said to his daughter ".repeat(1 + (i % 5)), max_tokens: 20 + i,
      temperature: (i % 3) / 2, seed: i }));
    const [together, seededTogether] = await Promise.all([
      text({ max_tokens: 48 }), text({ max_tokens: 48, temperature: 1, seed: 3 }), ...others]);
    assert.equal(together, alone);
    assert.equal(seededTogether, seeded);
  });

  check("sampling: what one key has said is nothing to another", async () => {
    const server = await TrineServer.start({ args: ["--api-key", "theirs"] });
    const ask = async (apiKey) => {
      const client = shared.openai.withOptions({ baseURL: server.base, apiKey });
      const answer = await client.completions.create({
        model: shared.model, prompt: "The old king said to his daughter. ".repeat(12), temperature: 0,
        max_tokens: 16 });
      return [answer.choices[0].text, answer.usage.prompt_tokens_details.cached_tokens];
    };
    const [first, none] = await ask(server.key);
    const [second, some] = await ask(server.key);
    const [third, theirs] = await ask("theirs");
    assert.equal(none, 0);
    assert.ok(some > 0, "the second time it is known");
    assert.equal(theirs, 0);
    assert.deepEqual([second, third], [first, first]);
    await server.stop();
  });
};
