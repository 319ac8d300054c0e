// The models to choose from: the base model and the adapters, with a search over thousands of
// names.
import { json, snapshot } from "./api.js";

const SHOWN = 50;
const FRESH = 15000;  // milliseconds

let known = null;  // {base, adapters, images, videos, rights}
let knownSince = 0;
let loading = null;
const listeners = new Set();

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// The head used if the request names none; the answer is then a label.
function answeringHead(adapter) {
  const only = adapter.heads.length === 1 ? adapter.heads[0].name : "";
  const name = adapter.head ?? only;
  return adapter.heads.find((head) => head.name === name) ?? null;
}

function entryOf(adapter) {
  const head = answeringHead(adapter);
  return {
    name: adapter.name,
    question: adapter.question,
    about: adapter.description || adapter.task,
    pinned: adapter.pinned,
    rank: adapter.rank,
    head: head?.name ?? null,
    headLabels: head?.num_labels ?? 0,
    labels: adapter.num_labels,
    boxes: adapter.boxes,
    text: [adapter.name, adapter.task, adapter.description, adapter.question].join("\n").toLowerCase(),
  };
}

function order(a, b) {
  const rank = (entry) => (entry.pinned ? 0 : entry.question || entry.head || entry.labels || entry.boxes ? 1 : 2);
  return rank(a) - rank(b) || (a.name < b.name ? -1 : 1);
}

async function load() {
  const now = await snapshot();
  const list = await json("/v1/lora_adapters");
  const base = {
    name: now.model.names[0], base: true, question: "", about: "the base model", pinned: false, head: null,
    headLabels: 0, labels: 0, boxes: false, text: now.model.names.join("\n").toLowerCase(),
  };
  return {
    base, adapters: list.data.map(entryOf).sort(order), images: now.model.images, videos: now.model.videos,
    rights: now.rights,
  };
}

function loadOnce() {
  loading ??= load().then((loaded) => {
    known = loaded;
    knownSince = Date.now();
    for (const listener of listeners) listener(loaded);
    return loaded;
  }).finally(() => { loading = null; });
  return loading;
}

export async function get() {
  return known ?? loadOnce();
}

// Loads the list anew; while that fails, the old one stays.
export async function reload() {
  await loading?.catch(() => {});  // it may have begun before what changed
  await loadOnce().catch(() => { /* the state of the server is shown already */ });
}

// Reloads a list that is some seconds old, since others may have loaded adapters. True if it did.
export async function freshen() {
  if (!known || Date.now() - knownSince <= FRESH) return false;
  await reload();
  return true;
}

export function find(name) {
  if (!known) return null;
  return known.base.name === name ? known.base : known.adapters.find((entry) => entry.name === name) ?? null;
}

// Returns {found, total}: the first matches, with names that start with the words at the top.
export function search(words) {
  performance.mark("search-begin");
  const wanted = words.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const all = known ? [known.base, ...known.adapters] : [];
  const hits = all.filter((entry) => wanted.every((word) => entry.text.includes(word)));
  const begins = (entry) => wanted.length > 0 && entry.text.startsWith(wanted[0]);
  const found = [...hits.filter(begins), ...hits.filter((entry) => !begins(entry))].slice(0, SHOWN);
  performance.measure("search", "search-begin");
  return { found, total: hits.length };
}
