// The chat view: models, settings, conversations, and the question field.
import * as catalog from "./catalog.js";
import { button, el, named, nameText, replace, saveAs } from "./dom.js";
import { makeFollow } from "./follow.js";
import { ago } from "./format.js";
import * as history from "./history.js";
import { isMedium, makeTray } from "./media.js";
import { makePicker } from "./picker.js";
import { isAskedAlone } from "./requests.js";
import * as samples from "./samples.js";
import { makeSettings } from "./settings.js";
import { makeTurns } from "./turns.js";

const NOTHING = "Ask about a picture, or anything…";
const MOST_SUGGESTED = 12;
const MOST_SAMPLES = 6;

let current = null;  // kept while other views are shown

// What each of these models is asked if the user writes nothing: its task's question, or else that of
// the first task. Empty if no model has a question.
function ownQuestions(models) {
  const found = models.map((name) => [name, catalog.find(name)?.question ?? ""]);
  const first = found.find(([, question]) => question)?.[1] ?? "";
  return first === "" ? new Map() : new Map(found.map(([name, question]) => [name, question || first]));
}

export function show(main) {
  const said = el("p", { class: "hint", role: "status", "aria-live": "polite" });
  const say = (text) => { said.textContent = text; };
  const settings = makeSettings();
  const tray = makeTray(say);
  const text = el("textarea", { rows: 2, placeholder: NOTHING, "aria-label": "Question" });
  const send = button("Ask", () => ask(), { class: "primary" });
  const stop = button("Stop", () => turns.stopAll(), { hidden: true });
  const empty = el("div", { class: "empty" });
  let filled = "";  // the question filled in from a task

  const own = el("ul", { class: "own", "aria-label": "Asked if nothing is written" });

  // One question of all chosen models is filled in; several are listed, and asked if none is written.
  function drawOwn() {
    const questions = ownQuestions(picker.chosen());
    const several = new Set(questions.values()).size > 1;
    own.hidden = !several || text.value.trim() !== "";
    replace(own, ...[...questions].map(([name, question]) => el("li", {}, el("strong", {}, named(name, 24)), " ", named(question, 120))));
    text.placeholder = several ? "Empty: each is asked its own question" : [...questions.values()][0] ?? NOTHING;
    return several ? "" : [...questions.values()][0] ?? "";
  }
  const picker = makePicker((chosen) => {
    if (current) current.models = chosen;
    const question = drawOwn();
    if (text.value === filled) text.value = question;
    filled = question;
    drawOwn();
  });
  const turns = makeTurns(settings, {
    say,
    busy: (busy) => { stop.hidden = !busy; },
    edit: (turn) => {
      text.value = turn.text;
      tray.set(turn.media);
      picker.set(turn.answers.map((answer) => answer.model));
      drawOwn();
      turns.cut(turn);
      drawEmpty();
      text.focus();
    },
    saved: (conversation) => history.save(conversation).then(drawHistory, () => say("The browser does not keep this conversation.")),
  });

  function drawEmpty() {
    empty.hidden = current.turns.length > 0;
  }
  async function ask() {
    const question = text.value.trim();
    const media = tray.media();
    let models = picker.chosen();
    const questions = question ? new Map() : ownQuestions(models);
    if (!question && questions.size === 0 && media.length === 0) return say("Write a question or add a picture.");
    if (models.length === 0) {
      try {
        models = [(await catalog.get()).base.name];
      } catch (fault) {
        return say(fault.message);
      }
      picker.set(models);
    }
    say("");
    const same = new Set(questions.values()).size === 1 ? [...questions.values()][0] : question;
    current.title ||= (same || [...questions.values()][0] || media[0].name).slice(0, 80);
    turns.send({ text: same, media, models, questions: same ? null : questions });
    tray.set(media);  // follow-up questions are often about the same picture
    text.value = "";
    filled = "";
    drawOwn();
    drawEmpty();
    return follow.follow();
  }

  function begin(conversation) {
    current = conversation;
    turns.show(current);
    const last = current.turns.at(-1);
    tray.set(last?.media ?? []);
    if (current.models.length) picker.set(current.models);
    drawEmpty();
    drawHistory();
    follow.follow();
  }

  const kept = el("ul", { class: "history", "aria-label": "Conversations" });
  async function drawHistory() {
    let list = [];
    try {
      list = await history.all();
    } catch { /* a private window may have no database */ }
    replace(kept, ...list.map((conversation) => el("li", { class: conversation.id === current.id ? "open" : "" },
      el("button", { type: "button", class: "quiet title", onclick: () => begin(conversation), "aria-current": conversation.id === current.id ? "true" : null },
        named(conversation.title || "untitled", 60), el("span", { class: "hint", text: ` ${ago(conversation.changed / 1000)}` })),
      button("×", () => history.remove(conversation.id).then(() => (conversation.id === current.id ? begin(history.fresh()) : drawHistory())),
        { class: "quiet small", "aria-label": `Delete the conversation ${nameText(conversation.title)}` }))));
    if (list.length === 0) kept.append(el("li", { class: "hint", text: "None so far. They stay in this browser." }));
  }
  function exportIt() {
    saveAs(history.exported(current), `valora-${current.id}.json`);
  }

  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    ask();
  });
  text.addEventListener("input", drawOwn);

  function pick(sample, medium) {
    tray.set([medium]);
    picker.set([sample.model]);
    text.value = sample.question;
    drawOwn();
    send.focus();
  }
  let toTry = [];
  const offered = button("Samples", () => samples.chooseSample(toTry, pick), { hidden: true });
  const composer = el("div", { class: "composer sheet" }, tray.list, own, tray.chooser, text,
    el("div", { class: "row" }, ...tray.buttons, offered, said, el("span", { class: "grow" }), stop, send));
  const follow = makeFollow(turns.node, composer, () => text.focus());
  composer.prepend(follow.node);

  const aside = el("aside", { class: "side" },
    el("details", { class: "sheet", open: innerWidth > 900 }, el("summary", { text: "Settings" }), settings.node),
    el("details", { class: "sheet", open: innerWidth > 900 }, el("summary", { text: "Conversations" }),
      el("div", { class: "row" }, button("New", () => { begin(history.fresh()); text.focus(); }), button("Export this one", exportIt, { class: "quiet" })), kept));
  main.append(el("h1", { class: "seen-by-readers", text: "Try the model and its adapters" }),
    el("div", { class: "try" }, el("div", { class: "talk" }, picker.node, empty, turns.node, composer), aside));

  const drop = (event) => {
    if (![...event.dataTransfer?.items ?? []].some((item) => item.kind === "file")) return;
    event.preventDefault();
    composer.classList.toggle("dropping", event.type === "dragover");
    if (event.type === "drop") tray.add(event.dataTransfer.files);
  };
  const paste = (event) => {
    const files = [...event.clipboardData?.files ?? []].filter(isMedium);
    if (files.length === 0) return;
    event.preventDefault();
    tray.add(files);
  };
  const control = new AbortController();
  for (const kind of ["dragover", "dragleave", "drop"]) main.addEventListener(kind, drop, { signal: control.signal });
  document.addEventListener("paste", paste, { signal: control.signal });

  const shelf = el("div", { class: "shelf" });
  async function drawSamples() {
    toTry = (await samples.list()).filter((sample) => catalog.find(sample.model));
    offered.hidden = toTry.length === 0;
    if (toTry.length === 0) return replace(shelf);
    const first = samples.firstOfEach(toTry, MOST_SAMPLES);
    return replace(shelf, el("p", { class: "lead", text: "Or try one of these:" }), samples.sampleButtons(first, pick));
  }
  function drawSuggestions(loaded) {
    const tasks = loaded.adapters.filter(isAskedAlone).slice(0, MOST_SUGGESTED);
    const names = tasks.length ? tasks : loaded.adapters.slice(0, MOST_SUGGESTED);
    replace(empty, el("p", { class: "lead", text: "Ask one model, or several adapters about the same picture." }),
      el("div", { class: "row" }, ...[loaded.base, ...names].map((entry) =>
        el("button", { type: "button", onclick: () => { picker.set([...picker.chosen(), entry.name]); text.focus(); } }, named(entry.name, 40)))));
    if (loaded.adapters.length > names.length)
      empty.append(el("p", { class: "hint", text: `${loaded.adapters.length} adapters are loaded: search above.` }));
    empty.append(shelf);
    drawSamples();
  }
  const fail = (fault) => replace(empty, el("p", { class: "fault", role: "alert", text: fault.message }));
  const forget = catalog.onChange(drawSuggestions);
  begin(current ?? history.fresh());
  catalog.get().then(drawSuggestions, fail);
  catalog.freshen();
  return () => { turns.stopAll(); forget(); control.abort(); follow.stop(); };
}
