// A table that sorts by its headers and shows its rows page by page.
import { button, el, replace } from "./dom.js";

const PAGE = 100;

// columns: {name, title, value(row) for sorting, cell(row): node or text, number, wide, reason:
// boolean}
export function makeTable(caption, columns) {
  let rows = [];
  let shown = PAGE;
  let sorted = { column: columns[0], down: false };
  const head = el("tr");
  const body = el("tbody");
  const more = button("Show more", () => { shown += 10 * PAGE; draw(); }, { hidden: true });
  const note = el("p", { class: "hint", role: "status" });

  function drawHead() {
    replace(head, ...columns.map((column) => el("th", {
      scope: "col", class: column.number ? "number" : "",
      "aria-sort": column === sorted.column ? (sorted.down ? "descending" : "ascending") : null,
    }, button(column.title, () => {
      sorted = { column, down: column === sorted.column ? !sorted.down : Boolean(column.number) };
      drawHead();
      draw();
      head.querySelector("[aria-sort] button")?.focus();
    }, { class: "quiet" }))));
  }
  // A row's button keeps the focus when its row is drawn anew.
  function focused() {
    const row = body.contains(document.activeElement) ? document.activeElement.closest("tr") : null;
    return row && { name: row.dataset.name, at: [...row.querySelectorAll("button")].indexOf(document.activeElement) };
  }
  function refocus({ name, at }) {
    [...body.rows].find((row) => row.dataset.name === name)?.querySelectorAll("button")[at]?.focus();
  }
  function draw() {
    const { column, down } = sorted;
    const before = focused();
    const keyed = rows.map((row) => [column.value(row), row]);
    keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
    replace(body, ...keyed.slice(0, shown).map(([, row]) => el("tr", { "data-name": columns[0].value(row) }, ...columns.map((cell, at) =>
      el(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : undefined, class: cell.number ? "number" : cell.wide ? "wide" : cell.reason ? "reason" : "" }, cell.cell(row))))));
    if (before) refocus(before);
    more.hidden = rows.length <= shown;
    note.textContent = rows.length > shown ? `${shown} of ${rows.length}` : `${rows.length} in all`;
  }
  drawHead();
  const table = el("table", {}, el("caption", { class: "seen-by-readers", text: caption }), el("thead", {}, head), body);
  return {
    node: el("div", {}, el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption }, table), el("div", { class: "row" }, note, more)),
    set(next) { rows = next; draw(); },
  };
}
