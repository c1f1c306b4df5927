// Sends requests to the server that this page came from, and passes its errors on unchanged.

const keyName = "trine.key";

export function apiKey() {
  return sessionStorage.getItem(keyName) ?? "";
}

export function setApiKey(key) {
  if (key) sessionStorage.setItem(keyName, key);
  else sessionStorage.removeItem(keyName);
}

// Encodes a key for a header, which holds bytes: as UTF-8, like curl does.
function asHeader(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

export class ApiError extends Error {
  // status: 0 if no answer came, or the answer broke off.
  constructor(message, { status = 0, type = "", code = "", param = "", retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { status, type, code, param, retryAfter });
  }

  // For example "429 rate_limit_error, rate_limit_exceeded".
  get kind() {
    const parts = [this.status || "", this.type].filter(Boolean).join(" ");
    const code = this.code === this.type ? "" : this.code;
    return [parts, code, this.param].filter(Boolean).join(", ");
  }
}

// Makes an error from the "error" object of an answer or a stream frame.
export function errorFrom(object, status = 0, retryAfter = 0) {
  const { message, type, code, param } = object ?? {};
  return new ApiError(String(message || "The server gave no reason."), {
    status, retryAfter, type: type ?? "", code: code ?? "", param: param ?? "",
  });
}

// Returns the response if its status is 2xx. Otherwise throws an ApiError, or an AbortError if the
// signal aborted.
export async function request(path, { method = "GET", body, signal } = {}) {
  const headers = {};
  if (apiKey()) headers.Authorization = `Bearer ${asHeader(apiKey())}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), {
      method, headers, signal, cache: "no-store", credentials: "same-origin",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError("The server can't be reached.", { type: "unreachable" });
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function getJson(path, signal) {
  const response = await request(path, { signal });
  try {
    return await response.json();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(`${path} did not answer with JSON.`, { type: "bad_answer" });
  }
}

async function errorOf(response) {
  const retryAfter = Number(response.headers.get("Retry-After")) || 0;
  const text = await response.text().catch(() => "");
  try {
    const { error } = JSON.parse(text);
    if (error) return errorFrom(error, response.status, retryAfter);
  } catch {
    // The body may be a proxy's page.
  }
  const said = text.trim().slice(0, 300) || response.statusText || "The server gave no reason.";
  return errorFrom({ message: said }, response.status, retryAfter);
}
