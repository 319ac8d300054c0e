// The conversation: questions, each with the answers of all chosen models side by side.
import { ask, emptyAnswer, takeResults } from "./answers.js";
import { key } from "./api.js";
import * as catalog from "./catalog.js";
import { showCode } from "./code.js";
import { button, el, replace } from "./dom.js";
import { makeLane } from "./lane.js";
import { preview } from "./media.js";
import { bodyOf, isAskedAlone } from "./requests.js";

// hooks: {saved(conversation), edit(turn), busy(boolean), say(text)}
export function makeTurns(settings, hooks) {
  const node = el("div", { class: "turns" });
  let conversation = null;
  const running = new Map();  // answer -> AbortController
  const lanes = new Map();  // answer -> its lane on the page

  async function run(turn, answer, lane, continued) {
    const asked = conversation;
    const control = new AbortController();
    running.set(answer, control);
    hooks.busy(true);
    lane.update(true);
    let body;
    try {
      const turns = asked.turns.slice(0, asked.turns.indexOf(turn) + 1);
      const entry = catalog.find(answer.model);
      answer.alone = turns.length > 1 && isAskedAlone(entry);
      body = bodyOf({ turns, answer, entry, settings, continued });
    } catch (fault) {
      answer.error = fault.message;
      return ended(answer, lane);
    }
    let drawn = false;  // redraws at most once per animation frame
    const changed = () => {
      if (drawn) return;
      drawn = true;
      requestAnimationFrame(() => { drawn = false; if (running.has(answer)) lane.update(true); });
    };
    await ask(answer, body, { signal: control.signal, changed });
    ended(answer, lane);
    return hooks.saved(asked);
  }

  function ended(answer, lane) {
    running.delete(answer);
    lane.update(false);
    hooks.busy(running.size > 0);
  }

  function laneOf(turn, answer) {
    const lane = makeLane(answer, turn, {
      isLast: () => turn === conversation.turns.at(-1),
      stop: () => running.get(answer)?.abort(),
      retry: () => { Object.assign(answer, emptyAnswer(answer.model, answer.question)); run(turn, answer, lane); },
      results: (results) => { takeResults(answer, results); run(turn, answer, lane); },
      continue: () => run(turn, answer, lane, answer.text),
      code: () => showCode(answer.asked, key() !== ""),
    });
    lanes.set(answer, lane);
    lane.update(running.has(answer));
    return lane;
  }

  function drawTurn(turn) {
    const drawn = turn.answers.map((answer) => laneOf(turn, answer));
    const question = el("div", { class: "question" },
      el("div", { class: "question-media" }, ...turn.media.map((medium) => preview(medium))),
      el("p", { class: "question-text", dir: "auto", text: turn.text || (turn.answers.some((answer) => answer.question) ? "Each its own question" : "") }),
      button("Edit", () => { stopAll(); hooks.edit(turn); }, { class: "quiet small", "aria-label": "Edit this question; what follows it goes" }));
    node.append(el("section", { class: "turn" }, question, el("div", { class: "lanes" }, ...drawn.map((lane) => lane.node))));
  }

  function draw() {
    replace(node);
    lanes.clear();
    for (const turn of conversation.turns) drawTurn(turn);
  }
  function stopAll() {
    for (const control of running.values()) control.abort();
  }

  return {
    node,
    stopAll,
    show(next) {
      stopAll();
      conversation = next;
      draw();
    },
    // Sends the question to all models at once; questions: of models that are asked another one.
    send({ text, media, models, questions }) {
      const turn = { text, media, answers: models.map((model) => emptyAnswer(model, questions?.get(model) ?? null)) };
      conversation.turns.push(turn);
      for (const [answer, lane] of lanes) lane.update(running.has(answer));  // the earlier ones are no longer last
      drawTurn(turn);
      for (const answer of turn.answers) run(turn, answer, lanes.get(answer));
    },
    // Removes this turn and all later ones.
    cut(turn) {
      conversation.turns.splice(conversation.turns.indexOf(turn));
      draw();
    },
  };
}
