// Streams one answer of the model.

import { ApiError, errorFrom, request } from "./api.js";
import { eventData } from "./sse.js";

const numbers = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"];

// Returns the request's body. Joins consecutive turns of the same role, as after a failed answer,
// because many templates refuse them.
export function requestBody({ chat, model, turns, settings }) {
  const body = { model, stream: true, stream_options: { include_usage: true } };
  for (const name of numbers) {
    if (Number.isFinite(settings[name])) body[name] = settings[name];
  }
  if (settings.stop?.length > 0) body.stop = settings.stop;
  const said = turns.filter((turn) => turn.content !== "");
  if (!chat) {
    body.prompt = said.map((turn) => turn.content).join("");
    return body;
  }
  body.messages = settings.system ? [{ role: "system", content: settings.system }] : [];
  for (const { role, content } of said) {
    const last = body.messages.at(-1);
    if (last?.role === role) last.content += `\n\n${content}`;
    else body.messages.push({ role, content });
  }
  return body;
}

// Calls onText with each piece. Returns {finish, usage, firstMs, lastMs}; the last two are when the
// first and the last text came.
export async function streamAnswer({ chat, signal, onText, ...asked }) {
  const path = chat ? "v1/chat/completions" : "v1/completions";
  const begin = performance.now();
  const result = { finish: "", usage: null, firstMs: 0, lastMs: 0 };
  const response = await request(path, {
    method: "POST", body: requestBody({ chat, ...asked }), signal,
  });
  let complete = false;
  try {
    for await (const data of eventData(response.body)) {
      if (data === "[DONE]") {
        complete = true;
        break;
      }
      const frame = parseFrame(data);
      const choice = frame.choices?.[0];
      const text = (chat ? choice?.delta?.content : choice?.text) ?? "";
      if (text !== "") {
        result.lastMs = performance.now() - begin;
        result.firstMs ||= result.lastMs;
        onText(text);
      }
      if (choice?.finish_reason) result.finish = choice.finish_reason;
      if (frame.usage) result.usage = frame.usage;
    }
  } catch (error) {
    if (signal?.aborted || error instanceof ApiError) throw error;
    throw new ApiError("The connection broke off.", { type: "unreachable" });
  }
  if (!complete && !result.finish) {
    throw new ApiError("The stream ended before the answer did.", { type: "incomplete" });
  }
  return result;
}

function parseFrame(data) {
  let frame;
  try {
    frame = JSON.parse(data);
  } catch {
    throw new ApiError("The stream holds something that is not JSON.", { type: "bad_answer" });
  }
  if (frame?.error) throw errorFrom(frame.error);
  return frame ?? {};
}
