// Sends requests to this server, with the API key that the user entered.
import { nameText } from "./dom.js";

const root = new URL(".", document.baseURI);
const KEY = "valora.key";

export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function address(path) {
  return new URL(path.replace(/^\//, ""), root);
}

export function key() {
  return sessionStorage.getItem(KEY) ?? "";
}

export function setKey(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

// Asks the user for a key; set by app.js. Resolves to true if there is a new key.
let askForKey = async () => false;
let asking = null;
export function onKeyNeeded(ask) {
  askForKey = ask;
}

function askOnce(wasWrong) {
  asking ??= askForKey(wasWrong).finally(() => { asking = null; });
  return asking;
}

async function errorOf(response) {
  let message = `The server answered ${response.status}.`;
  try {
    const body = JSON.parse(await response.text());
    message = nameText(body.error?.message ?? message, 2000);
  } catch { /* not one of this server's errors */ }
  return new ApiError(response.status, message);
}

// body: sent as JSON; blob: sent as it is, with its own type.
export async function request(path, { method = "GET", body, blob, accept, signal, ask = true } = {}) {
  const headers = {};
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (accept) headers.Accept = accept;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (blob) headers["Content-Type"] = blob.type;
  const sent = key();
  let response;
  try {
    response = await fetch(address(path), {
      method, headers, signal, cache: "no-store", body: body === undefined ? blob : JSON.stringify(body),
    });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new ApiError(0, "The server cannot be reached.");
  }
  if (response.status === 401 && ask) {
    if (key() !== sent || await askOnce(sent !== "")) return request(path, { method, body, blob, accept, signal });
  }
  if (!response.ok) throw await errorOf(response);
  return response;
}

export async function json(path, options) {
  return (await request(path, options)).json();
}

// Sends a form with XMLHttpRequest, because fetch cannot report progress. sent(bytes, of): called
// as bytes are sent.
export function upload(path, form, sent) {
  return new Promise((resolve, reject) => {
    const asked = new XMLHttpRequest();
    asked.open("POST", address(path));
    if (key()) asked.setRequestHeader("Authorization", `Bearer ${key()}`);
    asked.upload.addEventListener("progress", (event) => sent(event.loaded, event.total));
    asked.addEventListener("error", () => reject(new ApiError(0, "The upload was cut off.")));
    asked.addEventListener("load", async () => {
      if (asked.status === 200) return resolve();
      reject(await errorOf(new Response(asked.responseText, { status: asked.status })));
    });
    asked.send(form);
  });
}

// Yields the data of each server-sent event.
export async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      rest += value;
      const parts = rest.split("\n\n");
      rest = parts.pop();
      for (const part of parts)
        for (const line of part.split("\n")) if (line.startsWith("data: ")) yield line.slice(6);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Yields /v1/stats every second, without the adapters.
export async function* stats(signal, ask = true) {
  const response = await request("/v1/stats", { accept: "text/event-stream", signal, ask });
  for await (const event of events(response)) {
    const now = JSON.parse(event);
    if (now.error) throw new ApiError(503, now.error.message);  // an ingress has lost the server
    yield now;
  }
}

// Returns /v1/stats once, without the adapters.
export async function snapshot(ask = true) {
  const control = new AbortController();
  try {
    for await (const event of stats(control.signal, ask)) return event;
    throw new ApiError(0, "The server ended its answer.");
  } finally {
    control.abort();
  }
}
