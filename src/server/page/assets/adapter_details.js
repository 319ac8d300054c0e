// All that is known of one adapter, for which the table has no room, and the totals of many.
import { button, el, named } from "./dom.js";
import { ago, bytes, count, seconds } from "./format.js";

export const PLACES = {
  pool: ["in the pool", "accent"], host: ["in memory", ""], file: ["in its file", ""], heads: ["heads alone", ""],
};

export function parts(row) {
  return [row.decoder ? "decoder" : "", row.vision ? "vision" : "", ...row.heads.map((head) => `head ${head}`)].filter(Boolean).join(", ");
}

export function showDetails(row) {
  const lines = [
    ["Folder", named(row.path, 500)],
    ["Weights", `${(PLACES[row.place] ?? [row.place])[0]}${row.pinned ? ", pinned" : ""}`],
    ["Last load", row.last_load ? `${seconds(row.last_load.seconds)}, ${ago(row.last_load.ended)}` : "none yet"],
    ["Rank", count(row.rank)], ["Size", bytes(row.bytes)],
    ["Changes", named(parts(row), 500)],
    ["Merging", row.mergeable ? "possible" : `not possible: ${row.unmergeable}`],
    ["Requests", count(row.requests)],
    ["Tokens", `${count(row.prompt_tokens)} of prompts, ${count(row.generated_tokens)} generated`],
    ["Last used", ago(row.last_used)],
    ["Registered", `${ago(row.loaded)}, generation ${row.generation}`],
  ];
  const dialog = el("dialog", { "aria-label": "Details of an adapter" });
  dialog.append(el("div", { class: "stack" }, el("h2", {}, named(row.name, 200)),
    el("dl", { class: "figures" }, ...lines.map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", {}, value)))),
    el("div", { class: "row end" }, button("Close", () => dialog.close()))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

// Names of one folder share its weights, so these are counted once.
export function totals(rows) {
  const sum = (list, field) => list.reduce((sofar, row) => sofar + row[field], 0);
  const folders = [...new Map(rows.map((row) => [row.path, row])).values()];
  const pooled = folders.filter((row) => row.place === "pool");
  return [
    ["Adapters", count(rows.length)],
    ["Folders", count(folders.length), bytes(sum(folders, "bytes"))],
    ["In the pool", count(pooled.length), bytes(sum(pooled, "bytes"))],
    ["Pinned", count(rows.filter((row) => row.pinned).length)],
    ["Requests", count(sum(rows, "requests"))],
    ["Tokens", count(sum(rows, "generated_tokens"))],
  ];
}
