// A moving strip of the last steps: a bar's height shows the step's tokens, its colour the mode.
import { el, replace } from "./dom.js";
import { seconds } from "./format.js";

const KEPT = 30 * 128;  // entries of 30 events
const SPAN = 30;  // seconds shown
const MODES = ["unmerged", "merged", "mixture"];

function described({ steps, tokens, sequences, adapters, mode, seconds: taken }) {
  const many = (count, name) => `${count} ${name}${count === 1 ? "" : "s"}`;
  return `Last ${steps === 1 ? "step" : `${steps} steps`}: ${many(tokens, "token")} of ${many(sequences, "sequence")}, ${many(adapters, "adapter")} besides the base, ${mode}, ${seconds(taken)}`;
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
      const left = x(step.began);
      const width = Math.max(1.5, x(step.ended) - left - 0.5);
      pen.fillStyle = style.getPropertyValue(`--mode-${step.mode}`) || style.getPropertyValue("--faint");
      pen.globalAlpha = 0.45;
      const read = y(step.tokens / step.steps);
      pen.fillRect(left, base - read, width, read);
      pen.globalAlpha = 1;
      const decoded = y((step.tokens - step.prefill_tokens) / step.steps);
      pen.fillRect(left, base - decoded, width, decoded);
      if (!step.switched) continue;
      pen.fillStyle = style.getPropertyValue("--bad");
      pen.fillRect(left, 0, 1.5, 5);
    }
    frame = requestAnimationFrame(draw);
  }

  return {
    node: el("div", { class: "strip" }, canvas, legend, said),
    add(list, serverTime) {
      clock = serverTime - Date.now() / 1000;
      steps = [...steps, ...list].slice(-KEPT);
      const last = steps.at(-1);
      said.textContent = last ? described(last) : "No step so far: nothing was asked.";
    },
    forget() { steps = []; },
    start() { cancelAnimationFrame(frame); draw(); },
    stop() { cancelAnimationFrame(frame); replace(said); },
  };
}
