// A moving strip of the last steps: a bar's height shows the step's tokens, its colour the mode.
import { el, replace } from "./dom.js";
import { duration, seconds } from "./format.js";

const KEPT = 30 * 128;  // entries of 30 events
const SPAN = 30;  // seconds shown
const MODES = ["unmerged", "merged", "mixture"];

const IDLE = 1;  // seconds without a step after which the engine is said to be idle

function described({ steps, tokens, sequences, adapters, mode, seconds: taken }) {
  const many = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;
  return `Last ${steps === 1 ? "step" : `${steps} steps`}: ${many(tokens, "token")} of ${many(sequences, "sequence")}, ${many(adapters, "adapter")} besides the base, ${mode}, ${seconds(taken)}`;
}

// The times of an entry's steps, [[began, ended]]. An entry that stands for several has their time in
// all: the rest of its span is pauses, drawn as gaps of equal length. narrow: seconds of the shortest
// gap that can be seen; null if the gaps are shorter.
export function piecesOf({ steps, began, ended, seconds: busy }, narrow) {
  const pause = ended - began - busy;
  if (steps < 2 || pause < 0.05 * (ended - began)) return [[began, ended]];
  if (pause / (steps - 1) < narrow) return null;
  const pitch = (ended - began - busy / steps) / (steps - 1);
  return Array.from({ length: steps }, (_, at) => [began + at * pitch, began + at * pitch + busy / steps]);
}

export function makeStrip() {
  let steps = [];
  let clock = 0;  // the server's clock minus this one's
  const canvas = el("canvas", { role: "img", "aria-label": "The engine's steps of the last 30 seconds" });
  const said = el("p", { class: "hint", "aria-live": "off" });
  const legend = el("p", { class: "legend" }, ...MODES.map((mode) => el("span", { class: `mode ${mode}`, text: mode })),
    el("span", { class: "mode prompt", text: "lighter: tokens of prompts" }),
    el("span", { class: "mode switch", text: "a switch of the weights" }));
  let frame = 0;

  function draw() {
    const box = canvas.getBoundingClientRect();
    const ratio = devicePixelRatio || 1;
    canvas.width = Math.round(box.width * ratio);
    canvas.height = Math.round(box.height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const until = Date.now() / 1000 + clock;
    const x = (time) => box.width * (1 - (until - time) / SPAN);
    const visible = steps.filter((step) => step.ended > until - SPAN);
    const most = visible.reduce((sofar, step) => Math.max(sofar, step.tokens / step.steps), 8);
    const y = (tokens) => (box.height - 18) * Math.sqrt(tokens / most);
    pen.fillStyle = style.getPropertyValue("--faint");
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.font = "11px system-ui, sans-serif";
    for (let back = 0; back <= SPAN; back += 10) {
      const at = Math.round(box.width * (1 - back / SPAN)) - 0.5;
      pen.beginPath();
      pen.moveTo(at, 0);
      pen.lineTo(at, box.height - 16);
      pen.stroke();
      pen.textAlign = back === 0 ? "right" : back === SPAN ? "left" : "center";
      pen.fillText(back === 0 ? "now" : `${back} s`, at, box.height - 3);
    }
    const base = box.height - 16;
    for (const step of visible) {
      pen.fillStyle = style.getPropertyValue(`--mode-${step.mode}`) || style.getPropertyValue("--faint");
      const pieces = piecesOf(step, 2 * SPAN / box.width);
      const density = pieces ? 1 : step.seconds / (step.ended - step.began);  // gaps too narrow to see make it paler
      const read = y(step.tokens / step.steps);
      const decoded = y((step.tokens - step.prefill_tokens) / step.steps);
      for (const [began, ended] of pieces ?? [[step.began, step.ended]]) {
        const left = x(began);
        const width = Math.max(1.5, x(ended) - left - 0.5);
        pen.globalAlpha = 0.45 * density;
        pen.fillRect(left, base - read, width, read);
        pen.globalAlpha = density;
        pen.fillRect(left, base - decoded, width, decoded);
      }
      pen.globalAlpha = 1;
      if (!step.switched) continue;
      pen.fillStyle = style.getPropertyValue("--bad");
      pen.fillRect(x(step.began), 0, 1.5, 5);
    }
    frame = requestAnimationFrame(draw);
  }

  return {
    node: el("div", { class: "strip" }, canvas, legend, said),
    add(list, serverTime) {
      clock = serverTime - Date.now() / 1000;
      steps = [...steps, ...list].slice(-KEPT);
      const last = steps.at(-1);
      const idle = last ? serverTime - last.ended : 0;
      const since = idle > IDLE ? `Idle for ${duration(idle)}. ` : "";
      said.textContent = last ? since + described(last) : "No step so far: nothing was asked.";
    },
    forget() { steps = []; },
    start() { cancelAnimationFrame(frame); draw(); },
    stop() { cancelAnimationFrame(frame); replace(said); },
  };
}
