// One answer on the page: its thought, folded, its text, boxes or labels, measurements and controls.
import { tokensPerSecond } from "./answers.js";
import { boxesIn, drawBars, drawBoxes } from "./boxes.js";
import { copyButton } from "./copy.js";
import { button, el, named, nameText, replace } from "./dom.js";
import { seconds } from "./format.js";
import { makeMarkdown } from "./markdown.js";

const FINISHES = { length: "cut at the most tokens", stopped: "stopped", tool_calls: "asks for a tool" };

function measures(answer, running) {
  const parts = [];
  if (answer.ttft !== null) parts.push(`first token ${seconds(answer.ttft)}`);
  const rate = tokensPerSecond(answer);
  if (rate !== null) parts.push(`${rate.toFixed(rate < 10 ? 1 : 0)} tokens/s`);
  if (answer.usage) parts.push(`${answer.usage.prompt_tokens} + ${answer.usage.completion_tokens} tokens`);
  if (answer.seconds !== null && !running) parts.push(`${seconds(answer.seconds)} in all`);
  if (answer.alone) parts.push("asked without the earlier questions");
  if (FINISHES[answer.finish]) parts.push(FINISHES[answer.finish]);
  return parts.join(" · ");
}

function callNode(call) {
  const result = call.result === undefined ? null : el("pre", { text: call.result, tabIndex: 0, "aria-label": `Result of ${nameText(call.name)}` });
  return el("details", { class: "call", open: true }, el("summary", {}, "Calls ", named(call.name)), el("pre", { text: call.arguments, tabIndex: 0 }), result);
}

// Keeps its node, so that a reader's folding and place stay.
function makeThought() {
  const heading = el("summary");
  const text = el("div", { class: "thought-text", dir: "auto" });
  const node = el("details", { class: "thought", hidden: true }, heading, text);
  return {
    node,
    draw(thought, goesOn) {
      node.hidden = thought === "";
      heading.textContent = goesOn ? "Thinks…" : "Thought";
      if (text.textContent !== thought) text.textContent = thought;
    },
  };
}

function roundNode({ thought, text, calls }) {
  const folded = thought ? makeThought() : null;
  folded?.draw(thought, false);
  const said = el("div", { class: "answer-text", dir: "auto" });
  makeMarkdown(said)(text, false);
  return el("div", { class: "round" }, folded ? folded.node : null, text ? said : null, ...calls.map(callNode));
}

// Labels, boxes and JSON are data, not Markdown.
function isPlain(answer) {
  return answer.labels.length > 0 || Boolean(answer.asked?.response_format);
}

// A field for the result of each call, because the page itself does not run tools.
function resultsForm(calls, send) {
  const fields = calls.map((call) => el("textarea", { rows: 2, required: true, class: "code", spellcheck: false, name: call.name, placeholder: "what the tool gave back" }));
  return el("form", { class: "results", onsubmit: (event) => { event.preventDefault(); send(fields.map((field) => field.value)); } },
    ...fields.map((field, at) => el("label", {}, "Result of ", named(calls[at].name, 40), field)),
    el("div", { class: "row" }, el("button", { type: "submit", class: "small", text: calls.length === 1 ? "Send the result" : "Send the results" })));
}

// actions: {isLast, stop, retry, continue, code, results}; only the last question can be retried.
// Returns {node, update(running)}.
export function makeLane(answer, turn, actions) {
  const before = el("div", { class: "extra" });
  const thought = makeThought();
  const text = el("div", { class: "answer-text", dir: "auto" });
  const drawText = makeMarkdown(text);
  const extra = el("div", { class: "extra" });
  const fault = el("p", { class: "fault", role: "alert", hidden: true });
  const measured = el("p", { class: "hint measures" });
  const said = el("p", { class: "seen-by-readers", "aria-live": "polite" });
  const controls = el("div", { class: "row controls" });
  const picture = turn.media.filter((medium) => medium.kind === "image").length === 1 ? turn.media.find((medium) => medium.kind === "image") : null;
  let boxesShown = "", controlsShown = "", roundsShown = 0;

  function drawExtra() {
    const nodes = [];
    if (answer.labels.length) nodes.push(drawBars(answer.labels));
    if (picture) {
      const found = boxesIn(answer.text, answer.asked?.response_format?.type === "boxes");
      if (found.boxes.length) nodes.push(drawBoxes(picture.url, found));
    }
    const calls = answer.calls.filter(Boolean);
    nodes.push(...calls.map(callNode));
    const asksForResults = calls.length > 0 && !answer.error && actions.isLast();
    if (asksForResults) nodes.push(resultsForm(calls, actions.results));
    const state = JSON.stringify([answer.labels, answer.text, answer.calls, asksForResults]);
    if (state === boxesShown) return;
    boxesShown = state;
    replace(extra, ...nodes);
  }

  function drawBefore() {
    const rounds = answer.before ?? [];
    if (rounds.length === roundsShown) return;
    roundsShown = rounds.length;
    replace(before, ...rounds.map(roundNode));
  }

  function update(running) {
    drawBefore();
    thought.draw(answer.thought ?? "", running && answer.text === "");
    drawText(answer.text, isPlain(answer));
    text.hidden = answer.text === "" && !running;
    node.setAttribute("aria-busy", String(running));
    node.classList.toggle("running", running);
    fault.hidden = !answer.error;
    fault.textContent = answer.error ?? "";
    measured.textContent = measures(answer, running);
    if (running && !answer.text) replace(extra);
    if (running) boxesShown = "";
    if (!running) {
      drawExtra();
      said.textContent = answer.error ? "" : `${nameText(answer.model)} answered: ${answer.text.slice(0, 2000)}`;
    }
    const done = !running && answer.asked;
    const again = done && actions.isLast();
    const goesOn = again && answer.text && !answer.calls.length && !answer.labels.length;
    const state = [running, done, again, goesOn, answer.text].map(Boolean).join();
    if (state === controlsShown) return;  // keeps a pressed or focused button in place
    controlsShown = state;
    replace(controls,
      running ? button("Stop", actions.stop, { class: "small" }) : null,
      again ? button("Retry", actions.retry, { class: "quiet small" }) : null,
      goesOn ? button("Continue", actions.continue, { class: "quiet small" }) : null,
      done && answer.text ? copyButton(() => answer.text, "Copy the answer") : null,
      done ? button("Code", actions.code, { class: "quiet small", "aria-label": "Copy the request as curl, Python or JavaScript" }) : null);
  }

  const node = el("article", { class: "lane", "aria-label": `Answer of ${nameText(answer.model)}` },
    el("h2", {}, named(answer.model)), answer.question ? el("p", { class: "own-question", dir: "auto", text: answer.question }) : null, before, thought.node, text, extra, fault, measured, controls, said);
  return { node, update };
}
