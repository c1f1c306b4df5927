// A server for the page without an engine: its files, and an API that does what a test tells it to.
"use strict";
const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { statusOf } = require("./mock_status.cjs");

const source = path.join(__dirname, "../../tools/server/page");
const types = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8",
                css: "text/css; charset=utf-8", svg: "image/svg+xml" };
// The one the real server sends.
const policy = /kPageSecurityPolicy =\s*"([^"]+)"/.exec(
  fs.readFileSync(path.join(source, "page.h"), "utf8"))[1];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

class MockServer {
  constructor() {
    this.server = http.createServer((request, response) => this.handle(request, response));
    this.reset();
  }

  reset() {
    this.key = "";         // an API key it wants
    this.chat = true;      // the model has a template
    this.plans = [];       // of the answers to come: see play()
    this.asked = [];       // requests for answers: {url, body, authorization, left}
    this.statusCalls = 0;
    this.state = "ok";
    this.machine = {};     // see mock_status.cjs
  }

  async listen() {
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.server.address().port}/`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  async handle(request, response) {
    const { pathname } = new URL(request.url, "http://x");
    if (!pathname.startsWith("/v1/")) return this.file(pathname, response);
    const authorization = request.headers.authorization ?? "";
    if (this.key && authorization !== `Bearer ${this.key}`) {
      return fail(response, 401, { message: "No such key.", type: "authentication_error", code: "invalid_api_key" });
    }
    if (pathname === "/v1/models") return this.models(response);
    if (pathname === "/v1/status") {
      this.statusCalls += 1;
      return json(response, 200, statusOf(this));
    }
    let text = "";
    for await (const chunk of request) text += chunk;
    const asked = { url: pathname, body: JSON.parse(text), authorization, left: false };
    this.asked.push(asked);
    response.on("close", () => (asked.left = !response.writableFinished));
    await this.play(this.plans.shift() ?? { pieces: ["Very ", "well."] }, asked, response);
  }

  file(pathname, response) {
    const name = pathname === "/" ? "index.html" : pathname.replace(/^\/page\//, "");
    const file = path.join(source, "web", path.basename(name));
    if (!fs.existsSync(file)) return fail(response, 404, { message: `No ${pathname}.` });
    response.writeHead(200, { "Content-Type": types[name.split(".").pop()],
                              "Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff" });
    response.end(fs.readFileSync(file));
  }

  models(response) {
    json(response, 200, { object: "list", data: [
      { id: "mock-1b", object: "model", created: 1, owned_by: "trine", meta: { chat: this.chat } }] });
  }

  // A plan: {pieces, delayMs} and then one of {error: in mid-stream, breakOff: true, finish}; or
  // {status, error, headers}: refused.
  async play(plan, { url, body }, response) {
    if (plan.status) return fail(response, plan.status, plan.error, plan.headers);
    const chat = url === "/v1/chat/completions";
    const head = { id: "x", created: 1, model: body.model };
    const send = (object) => response.write(`data: ${JSON.stringify(object)}\n\n`);
    const choice = (text, finish) => send({ ...head, choices: [chat
      ? { index: 0, delta: text === null ? {} : { content: text }, finish_reason: finish }
      : { index: 0, text: text ?? "", finish_reason: finish }] });
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
    if (chat) send({ ...head, choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] });
    for (const piece of plan.pieces) {
      choice(piece, null);
      if (plan.delayMs) await sleep(plan.delayMs);
      if (response.destroyed) return;
    }
    if (plan.breakOff) return response.destroy();
    if (plan.error) send({ error: plan.error });
    else {
      choice(null, plan.finish ?? "stop");
      send({ ...head, choices: [], usage: { prompt_tokens: 20, completion_tokens: plan.pieces.length,
                                            total_tokens: 20 + plan.pieces.length,
                                            prompt_tokens_details: { cached_tokens: 16 } } });
      response.write("data: [DONE]\n\n");
    }
    response.end();
  }
}

function json(response, status, object, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(object));
}

function fail(response, status, error, headers) {
  json(response, status, { error: { type: "", param: null, code: null, ...error } }, headers);
}

module.exports = { MockServer, sleep };
