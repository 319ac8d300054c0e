// Answers and events of the last minutes, a row per skill: equal answers in a row are one segment, and
// an event is a bar below its segments.
import { el, named, nameText, replace } from "./dom.js";

const SPAN = 300;  // seconds
const MOST = 200;  // segments of a row

function place(node, from, to, begin, span) {
  node.style.setProperty("left", `${100 * Math.max(0, from - begin) / span}%`);
  node.style.setProperty("width", `${100 * (Math.max(from, to) - Math.max(from, begin)) / span}%`);
  return node;
}

function makeRow(name) {
  const track = el("div", { class: "track" });
  const segments = [];  // {from, to: null for the last one, text}
  const bars = [];  // {from, to: null while it goes on}
  const kinds = new Map();  // text -> hue

  function answer(time, text) {
    const last = segments.at(-1);
    if (last?.text === text) return;
    if (last) last.to = time;
    if (!kinds.has(text)) kinds.set(text, kinds.size % 6);
    segments.push({ from: time, to: null, text });
    if (segments.length > MOST) segments.shift();
  }
  function event(type, time) {
    if (type === "start") bars.push({ from: time, to: null });
    else if (bars.length && bars.at(-1).to === null) bars.at(-1).to = time;
    if (bars.length > MOST) bars.shift();
  }
  function draw(begin, end) {
    const seen = (part) => (part.to ?? end) >= begin;
    replace(track,
      ...segments.filter(seen).map((part) => place(el("span", { class: `segment hue-${kinds.get(part.text)}`, title: nameText(part.text, 300), text: nameText(part.text, 30) }), part.from, part.to ?? end, begin, end - begin)),
      ...bars.filter(seen).map((part) => place(el("span", { class: "bar" }), part.from, part.to ?? end, begin, end - begin)));
  }
  return { node: el("div", { class: "lane-row" }, el("span", { class: "hint" }, named(name, 24)), track), answer, event, draw };
}

// textOf(answer): what a segment shows; answers of equal text are one.
export function makeTimeline(skills, textOf) {
  const rows = new Map(skills.map((name) => [name, makeRow(name)]));
  const axis = el("p", { class: "hint axis" });
  let first = null;
  let last = null;
  let asked = false;

  function draw() {
    asked = false;
    const begin = Math.max(first, last - SPAN);
    const end = Math.max(last, begin + 1);
    for (const row of rows.values()) row.draw(begin, end);
    axis.textContent = `${new Date(begin * 1000).toLocaleTimeString()} – ${new Date(end * 1000).toLocaleTimeString()}`;
  }
  return {
    node: el("div", { class: "timeline", "aria-hidden": "true" }, ...[...rows.values()].map((row) => row.node), axis),
    add(event) {
      const time = event.frame_time ?? event.time;
      first = Math.min(first ?? time, time);
      last = Math.max(last ?? time, time);
      for (const [name, answer] of Object.entries(event.answers ?? {})) rows.get(name)?.answer(time, textOf(answer));
      if (event.type === "start" || event.type === "end") rows.get(event.skill)?.event(event.type, time);
      if (asked) return;
      asked = true;
      requestAnimationFrame(draw);
    },
  };
}
