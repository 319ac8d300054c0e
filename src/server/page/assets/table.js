// A table that sorts by its headers and shows its rows page by page.
import { button, el, replace } from "./dom.js";

const PAGE = 100;

// columns: {name, title, value(row) for sorting, cell(row): node or text, number: boolean}. A row is
// one line: cells that are too long are cut. The first column orders at first, from the top or `down`.
export function makeTable(caption, columns, down = false) {
  let rows = [];
  let page = 0;
  let sorted = { column: columns[0], down };
  let pressed = false;  // the pointer is down on a row
  let late = false;     // rows came meanwhile
  const head = el("tr");
  const body = el("tbody");
  const previous = button("Previous", () => turn(-1), { class: "small" });
  const next = button("Next", () => turn(1), { class: "small" });
  const note = el("p", { class: "hint", role: "status" });

  function drawHead() {
    replace(head, ...columns.map((column) => el("th", {
      scope: "col", class: column.number ? "number" : "",
      "aria-sort": column === sorted.column ? (sorted.down ? "descending" : "ascending") : null,
    }, button(column.title, () => {
      sorted = { column, down: column === sorted.column ? !sorted.down : Boolean(column.number) };
      page = 0;
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
  function turn(by) {
    page += by;
    draw();
    const pressed = by > 0 ? next : previous;
    if (pressed.disabled) (by > 0 ? previous : next).focus();
  }
  function draw() {
    late = false;
    const { column, down } = sorted;
    const last = Math.max(0, Math.ceil(rows.length / PAGE) - 1);
    page = Math.max(0, Math.min(page, last));
    const begin = page * PAGE;
    const before = focused();
    const keyed = rows.map((row) => [column.value(row), row]);
    keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1));
    replace(body, ...keyed.slice(begin, begin + PAGE).map(([, row]) => el("tr", { "data-name": columns[0].value(row) }, ...columns.map((cell, at) =>
      el(at === 0 ? "th" : "td", { scope: at === 0 ? "row" : undefined, class: cell.number ? "number" : "" }, cell.cell(row))))));
    if (before) refocus(before);
    previous.hidden = next.hidden = last === 0;
    previous.disabled = page === 0;
    next.disabled = page === last;
    note.textContent = last > 0 ? `${begin + 1} to ${Math.min(begin + PAGE, rows.length)} of ${rows.length}` : `${rows.length} in all`;
  }
  // A button that is replaced while it is pressed is never clicked.
  function press() {
    pressed = true;
    const release = () => setTimeout(() => {  // after the click
      pressed = false;
      if (late) draw();
    });
    const ends = new AbortController();
    for (const end of ["pointerup", "pointercancel"]) {
      document.addEventListener(end, () => { ends.abort(); release(); }, { signal: ends.signal });
    }
  }
  body.addEventListener("pointerdown", press);
  drawHead();
  const table = el("table", { class: "lines" }, el("caption", { class: "seen-by-readers", text: caption }), el("thead", {}, head), body);
  return {
    node: el("div", {}, el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": caption }, table), el("div", { class: "row" }, note, previous, next)),
    set(next) {
      rows = next;
      late = pressed;
      if (!pressed) draw();
    },
  };
}
