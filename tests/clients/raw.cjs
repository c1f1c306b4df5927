// A connection that sends whatever it is told to.
"use strict";
const net = require("node:net");

class Raw {
  static connect(server, options = {}) {
    const raw = new Raw();
    raw.socket = net.connect({ port: server.port, host: "127.0.0.1", ...options });
    raw.text = "";
    raw.closed = new Promise((resolve) => raw.socket.on("close", () => resolve(raw)));
    raw.socket.on("error", () => {});
    raw.socket.on("data", (data) => {
      raw.text += data.toString("latin1");
      raw.onData?.();
    });
    return new Promise((resolve, reject) => {
      raw.socket.once("connect", () => resolve(raw));
      raw.socket.once("error", reject);
    });
  }

  send(bytes) {
    return new Promise((resolve) => this.socket.write(bytes, resolve));
  }

  // The status of the first answer; 0: the connection has ended, or the time has passed.
  status(within = 60_000) {
    return new Promise((resolve) => {
      const found = () => {
        const match = /^HTTP\/1\.1 (\d{3})/.exec(this.text.replace(/^HTTP\/1\.1 100[^]*?\r\n\r\n/, ""));
        if (match) finish(Number(match[1]));
      };
      const finish = (status) => {
        clearTimeout(timer);
        this.onData = undefined;
        resolve(status);
      };
      const timer = setTimeout(() => finish(0), within);
      this.onData = found;
      this.socket.once("close", () => { found(); finish(0); });
      if (this.socket.destroyed) finish(0);
      found();
    });
  }

  halfClose() {
    this.socket.end();
  }

  reset() {
    this.socket.resetAndDestroy();
  }

  close() {
    this.socket.destroy();
  }
}

// A request as it goes over the wire.
function wire(server, path, body, headers = {}) {
  const all = { Host: "localhost", Authorization: `Bearer ${server.key}`,
                "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body),
                ...headers };
  const lines = Object.entries(all).filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), Buffer.from(body)]);
}

// Sends it on a connection of its own; the status.
async function exchange(server, bytes, within) {
  const raw = await Raw.connect(server);
  await raw.send(bytes);
  const status = await raw.status(within);
  raw.close();
  return status;
}

module.exports = { Raw, exchange, wire };
