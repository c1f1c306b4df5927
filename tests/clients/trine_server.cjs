// A `trine serve` of its own, on a port that is free, and what tests ask it beside the API.
//
// The program and the model are the first two arguments of every test here; TRINE_SERVE_ARGS: more
// for the server.
"use strict";
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");

const [program, model] = process.argv.slice(2);
const key = "a key of these tests";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits until `condition` gives something; what it was, and after how many milliseconds.
async function until(condition, { within = 20_000, what = "it" } = {}) {
  const begin = performance.now();
  for (;;) {
    const value = await condition();
    const ms = performance.now() - begin;
    if (value) return { value, ms };
    if (ms > within) throw new Error(`${what} did not come about within ${within} ms`);
    await sleep(5);
  }
}

class TrineServer {
  // Resolves when it listens; with `loaded`, when it also serves. Port 0: any.
  static async start({ args = [], env = {}, loaded = true, device = "cpu", port = 0 } = {}) {
    const server = new TrineServer();
    const more = (process.env.TRINE_SERVE_ARGS ?? "").split(" ").filter(Boolean);
    const around = { ...process.env };
    delete around.TRINE_API_KEY;  // a key of whoever runs the tests
    server.child = spawn(program, [
      "serve", "-m", model, "--port", String(port), "--api-key", key,
      "--chat-template", path.join(__dirname, "template.jinja"),
      ...(device ? ["--device", device] : []), ...args, ...more,
    ], { stdio: ["ignore", "pipe", "pipe"], env: { ...around, ...env } });
    // A test that fails leaves its server running: node shall not wait for that server.
    for (const part of [server.child, server.child.stdout, server.child.stderr]) part.unref();
    server.log = "";
    server.child.on("exit", (code, signal) => (server.exit = { code, signal }));
    server.child.stderr.on("data", (data) => (server.log += data));
    process.on("exit", () => server.child.kill("SIGKILL"));
    let out = "";
    server.child.stdout.on("data", (data) => (out += data));
    await until(() => server.exit || /^trine: (http:\S+)\n/m.test(out),
                { within: 60_000, what: "the server's address" });
    if (server.exit) throw new Error(`the server ended: ${server.log}`);
    server.origin = /^trine: (http:\S+)\n/m.exec(out)[1];
    server.port = Number(new URL(server.origin).port);
    server.base = `${server.origin}/v1`;
    server.key = key;
    if (loaded) await server.loaded();
    return server;
  }

  async loaded() {
    await until(async () => (await fetch(`${this.origin}/health`)).ok || this.exit,
                { within: 120_000, what: "the model" });
    if (this.exit) throw new Error(`the server ended: ${this.log}`);
  }

  // `body`: an object, or the very bytes.
  ask(path, body, options = {}) {
    const ready = body === undefined || typeof body === "string" || Buffer.isBuffer(body);
    return fetch(this.origin + path, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: ready ? body : JSON.stringify(body),
      ...options,
    });
  }

  async json(path, body) {
    const answer = await this.ask(path, body);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  // One metric, or the sum over its labels.
  async metric(name) {
    const text = await (await this.ask("/metrics")).text();
    const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))];
    if (values.length === 0) throw new Error(`there is no ${name} in ${text}`);
    return values.reduce((sum, [, value]) => sum + Number(value), 0);
  }

  async tokens(text, more = {}) {
    return (await this.json("/tokenize", { content: text, ...more })).tokens;
  }

  // Every place is free, nothing waits.
  async idle(within = 20_000) {
    const names = ["trine_places_taken", "trine_requests_running", "trine_requests_waiting"];
    const isIdle = async () => {
      for (const name of names) if ((await this.metric(name)) !== 0) return false;
      return true;
    };
    return (await until(isIdle, { within, what: "an idle server" })).ms;
  }

  // Of memory that is its own, in bytes.
  memory() {
    const status = fs.readFileSync(`/proc/${this.child.pid}/status`, "utf8");
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)[1]) * 1024;
  }

  signal(name = "SIGTERM") {
    this.child.kill(name);
  }

  // Waits until the server has ended; returns after how many milliseconds.
  async ended() {
    return (await until(() => this.exit, { within: 60_000, what: "the server's end" })).ms;
  }

  // Tells the server to end, and expects code 0.
  async stop() {
    this.signal();
    const ms = await this.ended();
    if (this.exit.code !== 0) {
      throw new Error(`the server ended with ${JSON.stringify(this.exit)}: ${this.log.slice(-4000)}`);
    }
    return ms;
  }
}

module.exports = { TrineServer, sleep, until };
