// All adapters: where their weights are, what they change, who uses them; loading and unloading.
import { json, request } from "./api.js";
import * as catalog from "./catalog.js";
import { button, el, named, replace } from "./dom.js";
import { ago, bytes, count } from "./format.js";
import { makeTable } from "./table.js";

const EVERY = 5000;
const PLACES = {
  pool: ["in the pool", "accent"], file: ["in its file", ""], heads: ["heads alone", ""],
};

function parts(row) {
  return [row.decoder ? "decoder" : "", row.vision ? "vision" : "", ...row.heads.map((head) => `head ${head}`)].filter(Boolean).join(", ");
}

function placeNode(row) {
  const [text, kind] = PLACES[row.place] ?? [row.place, ""];
  return el("span", { class: "badges" }, el("span", { class: `badge ${kind}`, text }), row.pinned ? el("span", { class: "badge", text: "pinned" }) : null);
}

function columns(actions) {
  const number = (name, title, show = count) => ({ name, title, number: true, value: (row) => row[name], cell: (row) => show(row[name]) });
  const list = [
    { name: "name", title: "Name", value: (row) => row.name, cell: (row) => named(row.name, 48) },
    { name: "place", title: "Weights", value: (row) => row.place, cell: placeNode },
    number("rank", "Rank"),
    number("bytes", "Size", bytes),
    { name: "parts", title: "Changes", wide: true, value: parts, cell: (row) => named(parts(row), 60) },
    number("requests", "Requests"),
    number("generated_tokens", "Tokens"),
    number("last_used", "Last used", ago),
    number("loaded", "Loaded", ago),
    { name: "merge", title: "Merging", wide: true, value: (row) => row.unmergeable, cell: (row) => (row.mergeable ? "possible" : el("span", { class: "hint", text: row.unmergeable })) },
  ];
  if (actions) list.push({ name: "actions", title: "Change", value: () => 0, cell: actions });
  return list;
}

function loadForm(after) {
  const name = el("input", { name: "lora_name", required: true, spellcheck: false, autocomplete: "off" });
  const path = el("input", { name: "lora_path", required: true, spellcheck: false, autocomplete: "off", placeholder: "a folder on the server" });
  const pinned = el("input", { type: "checkbox" });
  const replaces = el("input", { type: "checkbox" });
  const said = el("p", { role: "status" });
  const progress = el("progress", { hidden: true, "aria-label": "Loading" });
  const submit = el("button", { type: "submit", class: "primary", text: "Load" });
  const form = el("form", { class: "load-form", onsubmit: (event) => { event.preventDefault(); load(); } },
    el("label", { text: "Name" }, name), el("label", { text: "Folder" }, path),
    el("label", { class: "check" }, pinned, "keep it in the pool (pinned)"), el("label", { class: "check" }, replaces, "replace the adapter of this name (a task of the manifest loses its question and its head)"),
    el("div", { class: "row" }, submit, progress), said);
  async function load() {
    submit.disabled = true;
    progress.hidden = false;
    said.className = "";
    said.textContent = "Loading…";
    try {
      await request("/v1/load_lora_adapter", { method: "POST", body: { lora_name: name.value, lora_path: path.value, pinned: pinned.checked, load_inplace: replaces.checked } });
      said.textContent = `Loaded ${name.value}.`;
      after();
    } catch (fault) {
      said.className = "fault";
      said.textContent = fault.message;
    }
    submit.disabled = false;
    progress.hidden = true;
  }
  const open = el("details", { class: "sheet" }, el("summary", { text: "Load an adapter" }), form);
  return {
    node: open,
    replace(row) {
      open.open = true;
      name.value = row.name;
      path.value = row.path;
      pinned.checked = row.pinned;
      replaces.checked = true;
      path.focus();
    },
  };
}

// Asks before it unloads: others may be using the adapter.
function confirmed(text) {
  const dialog = el("dialog", { "aria-label": text });
  const done = new Promise((resolve) => {
    dialog.addEventListener("close", () => { resolve(dialog.returnValue === "yes"); dialog.remove(); });
  });
  dialog.append(el("div", { class: "stack" }, el("p", { text }), el("div", { class: "row end" },
    button("Cancel", () => dialog.close("no"), { class: "quiet" }), button("Unload", () => dialog.close("yes"), { class: "primary" }))));
  document.body.append(dialog);
  dialog.showModal();
  return done;
}

export function show(main) {
  const said = el("p", { role: "status" });
  const search = el("input", { type: "search", placeholder: "Search names, folders, heads…", "aria-label": "Search adapters" });
  const place = el("div");
  let rows = [];
  let table = null;
  let timer = 0;
  let gone = false;

  function say(text, fault = false) {
    said.className = fault ? "fault" : "hint";
    said.textContent = text;
  }
  function draw() {
    performance.mark("filter-begin");
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    table?.set(rows.filter((row) => words.every((word) => row.text.includes(word))));
    performance.measure("filter", "filter-begin");
  }
  async function unload(row) {
    if (!await confirmed(`Unload ${row.name}? Requests that run keep it until they end.`)) return;
    try {
      await request("/v1/unload_lora_adapter", { method: "POST", body: { lora_name: row.name } });
      say(`Unloaded ${row.name}.`);
      await changed();
    } catch (fault) {
      say(fault.message, true);
    }
  }
  const form = loadForm(() => changed());
  const actions = (row) => el("span", { class: "row" },
    button("Replace", () => form.replace(row), { class: "quiet small", "aria-label": `Replace ${row.name}` }),
    button("Unload", () => unload(row), { class: "quiet small", "aria-label": `Unload ${row.name}` }));

  function build(rights) {
    table = makeTable("Adapters", columns(rights.load ? actions : null));
    replace(place, table.node, rights.load ? form.node : el("p", { class: "notice", text: `Adapters cannot be changed from here: ${rights.reason}.` }));
  }
  async function refresh() {
    clearTimeout(timer);
    try {
      const now = await json("/v1/stats");
      if (gone) return;
      rows = now.adapters.map((row) => ({ ...row, text: `${row.name}\n${row.path}\n${parts(row)}`.toLowerCase() }));
      if (!table) build(now.rights);
      draw();
      if (said.classList.contains("fault")) say("");
    } catch (fault) {
      if (!gone) say(fault.message, true);
    }
    if (!gone) timer = setTimeout(() => (document.hidden || place.contains(document.activeElement) ? later() : refresh()), EVERY);
  }
  // Rows are not drawn anew under the keyboard's focus.
  function later() {
    timer = setTimeout(refresh, EVERY);
  }
  function changed() {
    catalog.reload();
    return refresh();
  }

  search.addEventListener("input", draw);
  main.append(el("div", { class: "data" }, el("div", { class: "row" }, el("h1", { class: "grow", text: "Adapters" }), el("div", { class: "find" }, search)), said, place));
  refresh();
  return () => { gone = true; clearTimeout(timer); };
}
