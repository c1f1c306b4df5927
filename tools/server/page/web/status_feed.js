// Gets /v1/status twice a second while the page is visible.

import { ApiError, getJson } from "./api.js";

const intervalMs = 500;
const patienceMs = 5000;

export class StatusFeed {
  // onStatus(status), onError(error).
  constructor({ onStatus, onError }) {
    this.onStatus = onStatus;
    this.onError = onError;
    this.timer = 0;
    this.asking = false;
    document.addEventListener("visibilitychange", () => this.poll());
    this.poll();
  }

  // Polls at once, and regularly from then on.
  async poll() {
    clearTimeout(this.timer);
    if (document.visibilityState !== "visible" || this.asking) return;
    this.asking = true;
    const begin = performance.now();
    try {
      this.onStatus(await getJson("v1/status", AbortSignal.timeout(patienceMs)));
    } catch (error) {
      const late = error.name === "TimeoutError";
      this.onError(late ? new ApiError("The server does not answer.", { type: "unreachable" }) : error);
    }
    this.asking = false;
    const spent = performance.now() - begin;
    this.timer = setTimeout(() => this.poll(), Math.max(50, intervalMs - spent));
  }
}
