// Requests to the server this page came from, and its errors as they are.

const keyName = "trine.key";

export function apiKey() {
  return sessionStorage.getItem(keyName) ?? "";
}

export function setApiKey(key) {
  if (key) sessionStorage.setItem(keyName, key);
  else sessionStorage.removeItem(keyName);
}

// A header holds bytes: a key is sent as those of its letters in UTF-8, as curl does.
function asHeader(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

export class ApiError extends Error {
  // status is 0 where no answer came, or the answer broke off.
  constructor(message, { status = 0, type = "", code = "", param = "", retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { status, type, code, param, retryAfter });
  }

  // "503 unavailable_error, model_loading"
  get kind() {
    const parts = [this.status || "", this.type].filter(Boolean).join(" ");
    const code = this.code === this.type ? "" : this.code;
    return [parts, code, this.param].filter(Boolean).join(", ");
  }
}

// The error of an answer's or a stream frame's "error" object.
export function errorFrom(object, status = 0, retryAfter = 0) {
  const { message, type, code, param } = object ?? {};
  return new ApiError(String(message || "The server gave no reason."), {
    status, retryAfter, type: type ?? "", code: code ?? "", param: param ?? "",
  });
}

// The response, whose status is 2xx; everything else is thrown: an ApiError, or an AbortError where
// the signal said so.
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
    // A proxy's page, perhaps.
  }
  const said = text.trim().slice(0, 300) || response.statusText || "The server gave no reason.";
  return errorFrom({ message: said }, response.status, retryAfter);
}
