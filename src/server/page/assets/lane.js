// One answer on the page: its text, boxes or labels, measures, and what can be done with it.
import { tokensPerSecond } from "./answers.js";
import { boxesIn, drawBars, drawBoxes } from "./boxes.js";
import { button, el, named, replace } from "./dom.js";
import { seconds } from "./format.js";

const FINISHES = { length: "cut at the most tokens", stopped: "stopped", tool_calls: "asks for a tool" };

function measures(answer, running) {
  const parts = [];
  if (answer.ttft !== null) parts.push(`first token ${seconds(answer.ttft)}`);
  const rate = tokensPerSecond(answer);
  if (rate !== null) parts.push(`${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s`);
  if (answer.usage) parts.push(`${answer.usage.prompt_tokens} + ${answer.usage.completion_tokens} tokens`);
  if (answer.seconds !== null && !running) parts.push(`${seconds(answer.seconds)} in all`);
  if (FINISHES[answer.finish]) parts.push(FINISHES[answer.finish]);
  return parts.join(" · ");
}

function callNode(call) {
  return el("details", { class: "call", open: true }, el("summary", {}, "Calls ", named(call.name)), el("pre", { text: call.arguments, tabIndex: 0 }));
}

// actions: {isLast, stop, retry, continue, code}; only the last question is asked again. Returns {node, update(running)}.
export function makeLane(answer, turn, actions) {
  const text = el("div", { class: "answer-text", dir: "auto" });
  const extra = el("div", { class: "extra" });
  const fault = el("p", { class: "fault", role: "alert", hidden: true });
  const measured = el("p", { class: "hint measures" });
  const said = el("p", { class: "seen-by-readers", "aria-live": "polite" });
  const controls = el("div", { class: "row controls" });
  const picture = turn.media.filter((medium) => medium.kind === "image").length === 1 ? turn.media.find((medium) => medium.kind === "image") : null;
  let boxesShown = "", controlsShown = "";

  function drawExtra() {
    const nodes = [];
    if (answer.labels.length) nodes.push(drawBars(answer.labels));
    if (picture) {
      const found = boxesIn(answer.text, answer.asked?.response_format?.type === "boxes");
      if (found.boxes.length) nodes.push(drawBoxes(picture.url, found));
    }
    nodes.push(...answer.calls.filter(Boolean).map(callNode));
    const state = JSON.stringify([answer.labels, answer.text, answer.calls]);
    if (state === boxesShown) return;
    boxesShown = state;
    replace(extra, ...nodes);
  }

  function update(running) {
    text.textContent = answer.text;
    text.hidden = answer.text === "" && !running;
    node.setAttribute("aria-busy", String(running));
    node.classList.toggle("running", running);
    fault.hidden = !answer.error;
    fault.textContent = answer.error ?? "";
    measured.textContent = measures(answer, running);
    if (!running) {
      drawExtra();
      said.textContent = answer.error ? "" : `${answer.model} answered: ${answer.text.slice(0, 2000)}`;
    }
    const done = !running && answer.asked;
    const again = done && actions.isLast();
    const goesOn = again && answer.text && !answer.calls.length && !answer.labels.length;
    const state = [running, done, again, goesOn].map(Boolean).join();
    if (state === controlsShown) return;  // a button that is pressed or focused stays
    controlsShown = state;
    replace(controls,
      running ? button("Stop", actions.stop, { class: "small" }) : null,
      again ? button("Retry", actions.retry, { class: "quiet small" }) : null,
      goesOn ? button("Continue", actions.continue, { class: "quiet small" }) : null,
      done ? button("Code", actions.code, { class: "quiet small", "aria-label": "Copy the request as curl, Python or JavaScript" }) : null);
  }

  const node = el("article", { class: "lane", "aria-label": `Answer of ${answer.model}` },
    el("h2", {}, named(answer.model)), text, extra, fault, measured, controls, said);
  return { node, update };
}
