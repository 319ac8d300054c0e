// Lists all adapters: where their weights are, what they change and who uses them; loads and
// unloads them.
import { parts, PLACES, showDetails, totals } from "./adapter_details.js";
import { makeLoadForm } from "./adapter_load.js";
import { json, request } from "./api.js";
import * as catalog from "./catalog.js";
import { button, el, named, nameText, replace } from "./dom.js";
import { ago, bytes, count } from "./format.js";
import { makePoll } from "./poll.js";
import { makeTable } from "./table.js";

const EVERY = 5000;

function placeNode(row) {
  const [text, kind] = PLACES[row.place] ?? [row.place, ""];
  return el("span", { class: "badges" }, el("span", { class: `badge ${kind}`, text }), row.pinned ? el("span", { class: "badge", text: "pinned" }) : null);
}

function nameNode(row) {
  return el("button", { type: "button", class: "quiet small name", "aria-haspopup": "dialog", onclick: () => showDetails(row) }, named(row.name, 48));
}

function columns(actions) {
  const number = (name, title, show = count) => ({ name, title, number: true, value: (row) => row[name], cell: (row) => show(row[name]) });
  const list = [
    { name: "name", title: "Name", value: (row) => row.name, cell: nameNode },
    { name: "place", title: "Weights", value: (row) => row.place, cell: placeNode },
    number("rank", "Rank"),
    number("bytes", "Size", bytes),
    { name: "parts", title: "Changes", value: parts, cell: (row) => named(parts(row), 60) },
    number("requests", "Requests"),
    number("generated_tokens", "Tokens"),
    number("last_used", "Last used", ago),
    { name: "merge", title: "Merging", value: (row) => row.unmergeable, cell: (row) => (row.mergeable ? "possible" : el("span", { class: "hint", title: row.unmergeable, text: row.unmergeable })) },
  ];
  if (actions) list.push({ name: "actions", title: "Change", value: () => 0, cell: actions });
  return list;
}

// Asks for confirmation before unloading: others may be using the adapter.
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
  const sums = el("dl", { class: "totals", "aria-label": "Totals" });
  let rows = [];
  let table = null;

  function say(text, fault = false) {
    said.className = fault ? "fault" : "hint";
    said.textContent = text;
  }
  function draw() {
    performance.mark("filter-begin");
    const words = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const found = rows.filter((row) => words.every((word) => row.text.includes(word)));
    table?.set(found);
    replace(sums, ...totals(found).map(([name, value, more]) => el("div", {}, el("dt", { text: name }), el("dd", {}, value, more ? el("span", { class: "hint", text: ` ${more}` }) : null))));
    performance.measure("filter", "filter-begin");
  }
  async function unload(row) {
    if (!await confirmed(`Unload ${nameText(row.name)}? Requests that run keep it until they end.`)) return;
    try {
      await request("/v1/unload_lora_adapter", { method: "POST", body: { lora_name: row.name } });
      say(`Unloaded ${nameText(row.name)}.`);
      await changed();
    } catch (fault) {
      say(fault.message, true);
    }
  }
  async function pin(row) {
    try {
      await request(`/v1/${row.pinned ? "unpin" : "pin"}_lora_adapter`, { method: "POST", body: { lora_name: row.name } });
      say(`${nameText(row.name)} ${row.pinned ? "may leave the pool again" : "stays in the pool"}.`);
      await changed();
    } catch (fault) {
      say(fault.message, true);
    }
  }
  let form = null;
  const actions = (row) => el("span", { class: "row" },
    button(row.pinned ? "Unpin" : "Pin", () => pin(row), { class: "quiet small", "aria-label": `${row.pinned ? "Unpin" : "Pin"} ${nameText(row.name)}` }),
    button("Replace", () => form.replace(row), { class: "quiet small", "aria-label": `Replace ${nameText(row.name)}` }),
    button("Unload", () => unload(row), { class: "quiet small", "aria-label": `Unload ${nameText(row.name)}` }));

  function build(rights) {
    if (rights.load) form = makeLoadForm(rights.upload, changed);
    table = makeTable("Adapters", columns(rights.load ? actions : null));
    replace(place, table.node, rights.load ? form.node : el("p", { class: "notice", text: `Adapters cannot be changed from here: ${rights.reason}.` }));
  }
  async function refresh() {
    const now = await json("/v1/stats");
    if (poll.ended()) return;
    rows = now.adapters.map((row) => ({ ...row, text: `${row.name}\n${row.path ?? ""}\n${parts(row)}`.toLowerCase() }));
    if (!table) build(now.rights);
    draw();
    if (said.classList.contains("fault")) say("");
  }
  const poll = makePoll(refresh, (fault) => say(fault.message, true), EVERY);
  function changed() {
    catalog.reload();
    return poll.now();
  }

  search.addEventListener("input", draw);
  main.append(el("div", { class: "data" }, el("div", { class: "row" }, el("h1", { class: "grow", text: "Adapters" }), el("div", { class: "find" }, search)), said, sums, place));
  poll.now();
  return poll.end;
}
