// One stream, live: the last answered frame with its boxes, the answers, a timeline and the events.
import { events, request } from "./api.js";
import { boxesIn, drawBoxes } from "./boxes.js";
import { el, named, nameText, replace, visible } from "./dom.js";
import { seconds } from "./format.js";
import { makeTimeline } from "./stream_timeline.js";

const REPLAYED = 300;  // events from before it was opened
const LISTED = 50;
const AGAIN = 2000;

export const titleOf = (stream) => stream.name || stream.id;

export function nameOfSkill(skill) {
  return typeof skill === "string" ? skill : skill.name ?? skill.model;
}

const clock = (time) => new Date(time * 1000).toLocaleTimeString();

// Boxes as their labels: "2 × coin, card".
function labelsOf(text) {
  const { boxes } = boxesIn(text, true);
  const counts = new Map();
  for (const { label } of boxes) counts.set(String(label), (counts.get(String(label)) ?? 0) + 1);
  return [...counts].map(([label, times]) => (times > 1 ? `${times} × ${label}` : label)).join(", ");
}

function answerText(answer) {
  if (answer.error) return `failed: ${nameText(answer.error.message ?? "no answer", 300)}`;
  return visible(labelsOf(answer.content) || answer.content).slice(0, 2000) || "(nothing)";
}

function eventText(event) {
  if (event.type === "state") return `${event.state}${event.reason ? `: ${nameText(event.reason, 300)}` : ""}`;
  const what = `${nameText(event.skill, 60)} ${event.type === "start" ? "begins" : "ends"}`;
  return event.answer ? `${what}: ${nameText(answerText(event.answer), 120)}` : what;
}

// Boxes of all skills that answer in pixels; with several, each label names its skill.
function boxesOf(stream, answers) {
  const found = stream.skills.filter((skill) => skill.response_format?.type === "boxes").map(nameOfSkill)
    .flatMap((skill) => boxesIn(answers[skill]?.content ?? "", true).boxes.map((box) => ({ ...box, skill })));
  const several = new Set(found.map((box) => box.skill)).size > 1;
  return found.map((box) => (several ? { ...box, label: `${box.skill}: ${box.label}` } : box));
}

function answerLine(name, answer) {
  const score = answer.score === undefined ? "" : ` ${(100 * answer.score).toFixed(0)} %`;
  return el("div", {}, el("dt", {}, named(name, 40)), el("dd", { dir: "auto" }, answerText(answer), el("span", { class: "hint", text: score })));
}

export function makeStreamWatch() {
  const node = el("section", { class: "sheet stream", hidden: true, "aria-label": "The stream" });
  let stream = null;
  let control = null;
  let url = null;  // of the frame that is shown
  let wanted = null;  // the newest answers, whose frame is not shown yet
  let loading = false;
  let parts = null;

  function build() {
    parts = { picture: el("div", { class: "stream-picture" }), answers: el("dl", { class: "figures" }), measured: el("p", { class: "hint" }),
      list: el("ol", { class: "stream-events", "aria-label": "Events" }), timeline: makeTimeline(stream.skills.map(nameOfSkill), answerText) };
    replace(node, el("h2", {}, named(titleOf(stream), 80)),
      el("div", { class: "stream-now" }, parts.picture, el("div", { class: "stack" }, parts.answers, parts.measured)),
      parts.timeline.node, el("h3", { text: "Events" }), parts.list);
    node.hidden = false;
  }
  function drawFrame(event, blob) {
    if (url) URL.revokeObjectURL(url);
    url = blob ? URL.createObjectURL(blob) : null;
    const boxes = boxesOf(stream, event.answers ?? {});
    if (url) replace(parts.picture, boxes.length ? drawBoxes(url, { boxes, inPixels: true }) : el("img", { src: url, alt: "The frame that was last answered" }));
    if (event.answers) replace(parts.answers, ...Object.entries(event.answers).map(([name, answer]) => answerLine(name, answer)));
    else replace(parts.answers, el("p", { class: "fault", text: answerText(event) }));
    parts.measured.textContent = `frame ${event.frame}, ${clock(event.frame_time)}, answered after ${seconds(event.lag)}`;
  }
  // One frame is fetched at a time; those that come meanwhile are passed over.
  async function loadFrames() {
    if (loading) return;
    loading = true;
    while (wanted && control) {
      const event = wanted;
      const shown = stream;
      wanted = null;
      const blob = await request(`/v1/streams/${shown.id}/frames/${event.frame}`, { signal: control.signal }).then((response) => response.blob(), () => null);
      if (stream === shown) drawFrame(event, blob);
    }
    loading = false;
  }
  function take(event) {
    parts.timeline.add(event);
    if (event.type === "answers") {
      wanted = event;
      return loadFrames();
    }
    parts.list.prepend(el("li", {}, el("time", { class: "hint", text: clock(event.time) }), " ", el("span", { dir: "auto", text: eventText(event) })));
    while (parts.list.children.length > LISTED) parts.list.lastChild.remove();
    return undefined;
  }
  async function follow(own) {
    let last = Math.max(0, stream.last_event - REPLAYED);
    while (!own.signal.aborted) {
      try {
        const response = await request(`/v1/streams/${stream.id}/events?after=${last}`, { accept: "text/event-stream", signal: own.signal });
        for await (const text of events(response)) {
          if (own.signal.aborted) return;
          const event = JSON.parse(text);
          last = event.id;
          take(event);
        }
      } catch (fault) {
        if (own.signal.aborted || fault.status === 404) return;
      }
      await new Promise((resolve) => { setTimeout(resolve, AGAIN); });
    }
  }
  function close() {
    control?.abort();
    control = stream = wanted = null;
    if (url) URL.revokeObjectURL(url);
    url = null;
    node.hidden = true;
  }

  return {
    node,
    close,
    shown: () => stream?.id ?? null,
    open(next) {
      close();
      stream = next;
      control = new AbortController();
      build();
      follow(control);
    },
  };
}
