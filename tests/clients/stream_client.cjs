// A client of streams that does what it is told to: reads slowly, leaves, counts.
"use strict";
const http = require("node:http");
const { sleep } = require("./trine_server.cjs");

// The text of a frame of any of the three endpoints.
function textOf(frame) {
  if (frame.type === "response.output_text.delta") return frame.delta;
  const choice = frame.choices?.[0];
  return choice?.text ?? choice?.delta?.content ?? "";
}

// What a whole stream has said: {status, text, frames, finish, usage, error, done, first_ms}.
// `read(n)`, before the nth frame is taken: may wait; "leave": the connection is cut.
async function streamed(server, path, body, { read } = {}) {
  const begin = performance.now();
  const request = http.request(server.origin + path, {
    method: "POST", agent: false,
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" } });
  request.end(JSON.stringify({ ...body, stream: true }));
  const answer = await new Promise((resolve, reject) => {
    request.on("response", resolve);
    request.on("error", reject);
  });
  const result = { status: answer.statusCode, text: "", frames: 0, finish: null, done: false };
  let pending = "";
  answer.setEncoding("utf8");
  for await (const data of answer) {
    pending += data;
    for (let end; (end = pending.indexOf("\n\n")) >= 0; pending = pending.slice(end + 2)) {
      if (result.done) throw new Error(`a frame after the last: ${pending}`);
      if (read && (await read(result.frames)) === "leave") {
        request.destroy();
        return { ...result, left: true };
      }
      take(pending.slice(0, end), result);
      if (result.text && result.first_ms === undefined) result.first_ms = performance.now() - begin;
    }
  }
  if (result.status !== 200) result.error = JSON.parse(pending).error;
  else if (pending) throw new Error(`half a frame at the end: ${pending}`);
  result.ms = performance.now() - begin;
  return result;
}

function take(text, result) {
  ++result.frames;
  const data = /^data: (.*)$/m.exec(text)[1];
  if (data === "[DONE]") {
    result.done = true;
    return;
  }
  const frame = JSON.parse(data);
  if (frame.error && frame.type === undefined) result.error = frame.error;
  result.text += textOf(frame);
  result.finish = frame.choices?.[0]?.finish_reason ?? result.finish;
  result.usage = frame.usage ?? result.usage;
  if (frame.response && frame.type !== "response.created" && frame.type !== "response.in_progress") {
    result.done = true;
    result.finish = frame.response.status;
    result.usage = frame.response.usage;
  }
}

const slowly = (ms) => () => sleep(ms);

module.exports = { slowly, streamed };
