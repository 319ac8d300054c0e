// SVG charts: lines over an axis, and shares over time. Colours come from CSS classes.
import { el, named, svg, visible } from "./dom.js";

const WIDTH = 420, HEIGHT = 250;
const LEFT = 46, RIGHT = 18, TOP = 8, FOOT = 40;
const MARKS = 8;
const MOST_LABELS = 7;  // on the axis

// Round numbers from 0 to at least `most`.
function ticks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((times) => times * power >= rough) * power;
  const out = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) out.push(Number(at.toPrecision(12)));
  return out;
}

function label(x, y, text, anchor) {
  const node = svg("text", { x, y, "text-anchor": anchor });
  node.textContent = text;
  return node;
}

function titled(node, text) {
  const title = svg("title");
  title.textContent = visible(text);
  node.append(title);
  return node;
}

export function legend(names) {
  return el("ul", { class: "legend" }, ...names.map((name, at) => el("li", { class: `series-${at % MARKS}` }, el("span", { class: "part", "aria-hidden": "true" }), named(name, 40))));
}

// lines: [{name, series, points}], best first; the best is drawn last, on top.
export function lineChart(lines, { describe, axis, unit, most }) {
  const all = lines.flatMap((line) => line.points);
  const xs = all.map(([x]) => x);
  const low = Math.min(...xs), high = Math.max(...xs);
  const top = most ?? (1.05 * Math.max(...all.map(([, y]) => y)) || 1);
  const x = (value) => LEFT + (WIDTH - LEFT - RIGHT) * (high > low ? (value - low) / (high - low) : 0.5);
  const y = (value) => TOP + (HEIGHT - TOP - FOOT) * (1 - value / top);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": visible(describe), class: "chart" });
  for (const tick of ticks(0, top, 4)) {
    picture.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }), label(LEFT - 5, y(tick) + 4, String(tick), "end"));
  }
  const measured = [...new Set(xs)];
  for (const tick of measured.length <= MOST_LABELS ? measured : ticks(low, high, MOST_LABELS)) picture.append(label(x(tick), HEIGHT - FOOT + 16, String(tick), "middle"));
  picture.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, axis, "middle"));
  for (const { name, series, points } of [...lines].reverse()) {
    const group = svg("g", { class: `line series-${series % MARKS}` }, svg("polyline", { points: points.map(([a, b]) => `${x(a)},${y(b)}`).join(" ") }));
    for (const [a, b] of points) group.append(titled(svg("circle", { cx: x(a), cy: y(b), r: 3.5 }), `${name}: ${Number(b.toPrecision(4))} ${unit} at ${a}`));
    picture.append(group);
  }
  return picture;
}

// timeline: from a row of valora bench trace. The rest of each interval is idle time.
export function timelineChart(timeline, modes, describe) {
  const width = timeline.interval_seconds, intervals = timeline.intervals;
  const span = width * intervals.length || 1;
  const x = (seconds) => LEFT + (2 * WIDTH - LEFT - RIGHT) * seconds / span;
  const height = 90;
  const picture = svg("svg", { viewBox: `0 0 ${2 * WIDTH} ${height + 30}`, role: "img", "aria-label": visible(describe), class: "chart long" });
  intervals.forEach((interval, at) => {
    let below = 0;
    for (const mode of modes) {
      const share = Math.min(1, (interval.mode_seconds?.[mode] ?? 0) / width);
      if (share > 0) picture.append(svg("rect", { class: `mode-${mode}`, x: x(at * width), width: x((at + 1) * width) - x(at * width), y: height * (1 - below - share), height: height * share }));
      below += share;
    }
  });
  for (const { at, seconds } of timeline.writes ?? []) picture.append(titled(svg("rect", { class: "write", x: x(at), y: 0, width: 1.5, height: 8 }), `a merge of ${(1e3 * seconds).toFixed(1)} ms`));
  for (const tick of ticks(0, span, 10)) picture.append(label(x(tick), height + 16, `${tick} s`, "middle"));
  return picture;
}
