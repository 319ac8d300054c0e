// The results view: draws files of `valora bench trace --json` in the browser.
import { legend, lineChart, timelineChart } from "./chart.js";
import { el, named, nameText, replace } from "./dom.js";
import { MEASURES, MODES, panelsOf, pointOf, rowsOf } from "./trace.js";

const MOST_OPEN = 4;
const MOST_BYTES = 64 * 2 ** 20;

function table(measure, panel, lines) {
  const axis = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))].sort((a, b) => a - b);
  const shown = (line, at) => {
    const point = line.points.find(([x]) => x === at);
    return point ? String(Number(point[1].toPrecision(4))) : "–";
  };
  return el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": `${measure.title} ${panel.title}` }, el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col", text: panel.axis ?? "policy" }), ...axis.map((at) => el("th", { scope: "col", class: "number", text: panel.axis ? String(at) : measure.unit })))),
    el("tbody", {}, ...lines.map((line) => el("tr", {}, el("th", { scope: "row" }, named(line.name, 40)), ...axis.map((at) => el("td", { class: "number", text: shown(line, at) })))))));
}

function panelNode(measure, panel, series, most) {
  const lines = panel.lines(measure).map((line) => ({ ...line, series: series.indexOf(line.name) }));
  const figures = table(measure, panel, lines);
  const head = panel.title ? el("h3", { text: panel.title }) : null;
  if (!panel.axis) return el("div", { class: "panel" }, head, figures);
  const describe = `${measure.title} in ${measure.unit} over ${panel.axis}${panel.title ? `, ${panel.title}` : ""}`;
  return el("div", { class: "panel" }, head, lineChart(lines, { describe, axis: panel.axis, unit: measure.unit, most }),
    el("details", {}, el("summary", { class: "hint", text: "Figures" }), figures));
}

// The modes over time of each row that has them; in a sweep, only the first is expanded.
function timesNode(rows) {
  const timed = rows.filter((row) => Array.isArray(row.timeline?.intervals) && row.timeline.interval_seconds > 0);
  if (timed.length === 0) return null;
  return el("section", { class: "sheet panel", "aria-label": "Modes over time" }, el("h2", { text: "Modes over time" }),
    el("p", { class: "legend" }, ...MODES.map((mode) => el("span", { class: `mode ${mode}`, text: mode })), el("span", { class: "mode switch", text: "a merge" })),
    ...timed.map((row, at) => el("details", { open: at < MOST_OPEN }, el("summary", {}, named(row.policy, 40), el("span", { class: "hint", text: ` ${pointOf(rows, row)}${row.merges} ${row.merges === 1 ? "merge" : "merges"}` })),
      timelineChart(row.timeline, MODES, `Share of the time in each mode, ${row.policy}`))));
}

function fileNodes(name, rows) {
  const panels = panelsOf(rows);
  const series = [...new Set(rows.map((row) => row.policy))];
  const sections = MEASURES.map((measure) => {
    const most = measure.most ?? 1.05 * Math.max(...rows.map(measure.value), Number.MIN_VALUE);  // the same for all panels
    return el("section", { class: "sheet panel", "aria-label": measure.title }, el("h2", {}, measure.title, el("span", { class: "hint", text: ` ${measure.unit}` })),
      el("div", { class: "charts" }, ...panels.map((panel) => panelNode(measure, panel, series, most))), panels[0].axis ? legend(series) : null);
  });
  return [el("h2", {}, named(name, 60)), ...sections, timesNode(rows)];
}

export function show(main) {
  const said = el("p", { role: "status", class: "hint", text: "The files are read by this page and sent nowhere." });
  const place = el("div", { class: "data-list" });
  const files = el("input", { type: "file", multiple: true, accept: ".json,application/json", onchange: open });
  async function open() {
    const nodes = [];
    const faults = [];
    for (const file of files.files) {
      try {
        if (file.size > MOST_BYTES) throw new Error("This file is too large.");
        nodes.push(...fileNodes(file.name, rowsOf(await file.text())));
      } catch (fault) {
        faults.push(`${nameText(file.name)}: ${nameText(fault.message, 500)}`);
      }
    }
    said.className = faults.length ? "fault" : "hint";
    said.textContent = faults.join("\n") || `${files.files.length === 1 ? "One file is" : `${files.files.length} files are`} shown.`;
    replace(place, ...nodes);
  }
  main.append(el("div", { class: "data" }, el("h1", { text: "Charts" }),
    el("label", { text: "Results of valora bench trace --json" }, files), said, place));
}
