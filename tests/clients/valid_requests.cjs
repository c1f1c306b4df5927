// Requests with every field there is, each with the kinds of JSON it may have.
"use strict";

const weather = { type: "object", properties: { city: { type: "string", maxLength: 4 } } };

// field: [a value that is right, ...the kinds it takes]. A kind that is taken may still be refused
// for its value.
const sampling = {
  model: ["x", "string"], temperature: [1, "number"], top_p: [0.9, "number"], top_k: [3, "number"],
  min_p: [0.1, "number"], typical_p: [0.9, "number"], repeat_penalty: [1.1, "number"],
  repeat_last_n: [8, "number"], frequency_penalty: [0.5, "number"], presence_penalty: [0.5, "number"],
  seed: [4, "number"], stop: [["x y z"], "string", "array"], stream: [false, "boolean"],
  stream_options: [{ include_usage: true }, "object"], logit_bias: [{ 5: 1 }, "object", "array"],
  user: ["me", "string"], ignore_eos: [false, "boolean"], mirostat: [0, "number"],
  mirostat_tau: [5, "number"], mirostat_eta: [0.1, "number"],
  samplers: [["temperature"], "string", "array"],
};
const forms = { response_format: [{ type: "text" }, "object"], grammar: ["root ::= \"a\" | \"b\"", "string"] };

const endpoints = {
  "/v1/chat/completions": {
    messages: [[{ role: "user", content: "Hi" }], "array"], ...sampling, ...forms, n: [1, "number"],
    max_tokens: [1, "number"], max_completion_tokens: [1, "number"], logprobs: [true, "boolean"],
    top_logprobs: [2, "number"],
    tools: [[{ type: "function", function: { name: "f", parameters: weather } }], "array"],
    tool_choice: ["none", "string", "object"], parallel_tool_calls: [true, "boolean"],
    chat_template_kwargs: [{ a: 1 }, "object"], reasoning_effort: ["low", "string"],
    modalities: [["text"], "array"],
  },
  "/v1/completions": {
    prompt: ["Hi", "string", "array"], ...sampling, ...forms, n: [1, "number"],
    max_tokens: [1, "number"], logprobs: [2, "number"], echo: [false, "boolean"],
    best_of: [1, "number"], suffix: ["", "string"],
  },
  "/v1/responses": {
    input: ["Hi", "string", "array"], instructions: ["Be kind.", "string"], ...sampling,
    max_output_tokens: [1, "number"], text: [{ format: { type: "text" } }, "object"],
    metadata: [{ a: "b" }, "object"],
  },
  "/v1/embeddings": {
    input: [["Hi", "there"], "string", "array"], model: ["x", "string"],
    encoding_format: ["base64", "string"], dimensions: [256, "number"], user: ["me", "string"],
  },
  "/tokenize": {
    content: ["Hi", "string"], add_special: [true, "boolean"], parse_special: [true, "boolean"],
    with_pieces: [true, "boolean"],
  },
  "/detokenize": { tokens: [[1, 2, 3], "array"] },
};

// Of sessions, which are something else after each request. {id}: of one that is open.
const { stream, stream_options, ...ofSessions } = sampling;  // those are an answer's
const sessionEndpoints = {
  "/v1/sessions": { prompt: ["Hi", "string", "array"], ...ofSessions, ...forms, n: [1, "number"] },
  "/v1/sessions/{id}/append": { prompt: [" there", "string", "array"] },
  "/v1/sessions/{id}/generate": {
    max_tokens: [2, "number"], n: [1, "number"], logprobs: [2, "number"], stream: [false, "boolean"],
    stream_options: [{ include_usage: true }, "object"], model: ["x", "string"],
  },
  "/v1/sessions/{id}/checkpoint": {},
  "/v1/sessions/{id}/regress": { t: [0, "number"] },
  "/v1/sessions/{id}/fork": { n: [1, "number"], seed: [4, "number"] },
};

// One with all fields.
function validRequest(path) {
  const fields = endpoints[path] ?? sessionEndpoints[path];
  return Object.fromEntries(Object.entries(fields).map(([name, [value]]) => [name, value]));
}

module.exports = { endpoints, sessionEndpoints, validRequest };
