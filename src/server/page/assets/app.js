// The frame of the page: selects views by the URL hash, asks for the API key, and shows whether the
// server is up.
import * as adaptersView from "./adapters.js";
import { key, onKeyNeeded, address, setKey, snapshot } from "./api.js";
import * as batchesView from "./batches.js";
import * as catalog from "./catalog.js";
import * as chartsView from "./charts.js";
import * as nowView from "./now.js";
import * as streamsView from "./streams.js";
import * as tryView from "./try.js";

const VIEWS = { try: tryView, adapters: adaptersView, batches: batchesView, streams: streamsView, now: nowView, charts: chartsView };
const TITLES = { try: "Try", adapters: "Adapters", batches: "Batches", streams: "Streams", now: "Now", charts: "Charts" };
const CHECK_EVERY = 5000;

const main = document.getElementById("main");
const state = document.getElementById("server-state");
const keyButton = document.getElementById("key-button");
let shown = null;
let leave = () => {};

function show() {
  const name = location.hash.slice(1).split("/")[0];
  const view = name in VIEWS ? name : "try";
  for (const link of document.querySelectorAll(".top nav a")) {
    if (link.hash === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === shown) return;
  leave();
  const first = shown === null;
  shown = view;
  document.title = `valora: ${TITLES[view]}`;
  main.className = `view-${view}`;
  main.replaceChildren();
  leave = VIEWS[view].show(main) ?? (() => {});
  if (!first) main.focus();
}

// The views of batches and streams are for servers that take them.
async function findViews() {
  try {
    const { rights } = await snapshot(false);
    for (const view of ["batches", "streams"]) document.getElementById(`${view}-link`).hidden = !rights[view];
  } catch { /* asked again once there is a key, or the server is ready */ }
}

function askForKey(wasWrong) {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key-input");
  document.getElementById("key-text").textContent =
    wasWrong ? "The server does not accept this key." : "This server requires a key.";
  input.value = "";
  keyButton.hidden = false;
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue === "use" && input.value.trim() !== "";
      if (given) setKey(input.value.trim());
      if (given) findViews();
      resolve(given);
    }, { once: true });
    dialog.returnValue = "";
    dialog.showModal();
    input.focus();
  });
}

// Enter in the field would press the form's first button, which is not the one intended.
document.getElementById("key-input").addEventListener("keydown", (event) => {
  if (event.key !== "Enter") return;
  event.preventDefault();
  document.getElementById("key-dialog").close("use");
});

function setState(kind, text) {
  if (state.textContent === text) return;
  const wasAway = state.classList.contains("gone") || state.textContent === "loading";
  state.className = `state ${kind}`;
  state.textContent = text;
  if (!wasAway || kind !== "ready") return;
  catalog.reload();
  findViews();
}

async function check() {
  try {
    const response = await fetch(address("/ready"), { cache: "no-store" });
    const busy = response.status === 503 ? (await response.json()).error.message : "";
    if (response.ok) setState("ready", "ready");
    else setState("busy", ["loading", "draining"].find((word) => busy.includes(word)) ?? "stalled");
  } catch {
    setState("gone", "not reachable");
  }
}

onKeyNeeded(askForKey);
keyButton.addEventListener("click", async () => {
  if (await askForKey(false)) location.reload();
});
if (key()) keyButton.hidden = false;
window.addEventListener("hashchange", show);
window.addEventListener("server-lost", check);
setInterval(() => { if (!document.hidden) check(); }, CHECK_EVERY);
document.addEventListener("visibilitychange", () => { if (!document.hidden) check(); });
check();
findViews();
show();
