// Lists the live streams of the key, shows one with its answers, and begins, pauses and ends them.
import { json, request } from "./api.js";
import { cameraOf, stopCamera } from "./browser_camera.js";
import { button, el, named, nameText, replace } from "./dom.js";
import { count, seconds } from "./format.js";
import { makePoll } from "./poll.js";
import { makeStreamForm } from "./stream_form.js";
import { makeStreamWatch, nameOfSkill, titleOf } from "./stream_watch.js";
import { makeTable } from "./table.js";

const EVERY = 2000;
const SHOWN = 100;

function stateNode(stream) {
  const text = cameraOf(stream.id) ? "this camera" : stream.state;
  return el("span", { class: `badge ${stream.state === "running" ? "accent" : ""}`, title: stream.reason ? nameText(stream.reason, 300) : undefined, text });
}

function columns(open, actions) {
  const number = (name, title, of, cell = of) => ({ name, title, number: true, value: of, cell: (row) => (typeof cell(row) === "number" ? count(cell(row)) : cell(row)) });
  return [
    { name: "id", title: "Stream", value: (row) => row.id, cell: (row) => button(nameText(titleOf(row), 40), () => open(row.id), { class: "quiet small name", "aria-label": `Watch ${nameText(titleOf(row))}` }) },
    { name: "state", title: "State", value: (row) => row.state, cell: stateNode },
    number("answered", "Frames answered", (row) => row.counts.answered),
    number("dropped", "Dropped", (row) => row.counts.dropped),
    number("lag", "Lag", (row) => row.counts.lag, (row) => (row.counts.answered ? seconds(row.counts.lag) : "–")),
    number("events", "Events", (row) => row.counts.events),
    { name: "skills", title: "Skills", value: (row) => row.skills.length, cell: (row) => named(row.skills.map(nameOfSkill).join(", "), 60) },
    { name: "actions", title: "Change", value: () => 0, cell: actions },
  ];
}

export function show(main) {
  const said = el("p", { role: "status" });
  const watch = makeStreamWatch();
  let rows = [];

  function say(text, fault = false) {
    said.className = fault ? "fault" : "hint";
    said.textContent = text;
  }
  async function change(row, path, method, text) {
    try {
      if (path !== "/resume") stopCamera(row.id);
      await request(`/v1/streams/${row.id}${path}`, { method });
      say(text);
    } catch (fault) {
      say(fault.message, true);
    }
    poll.now();
  }
  const actions = (row) => {
    const title = nameText(titleOf(row));
    const act = (text, path, method, done) => button(text, () => change(row, path, method, `${title} ${done}`), { class: "quiet small", "aria-label": `${text} ${title}` });
    return el("span", { class: "row" },
      row.state === "paused" ? act("Resume", "/resume", "POST", "goes on.") : act("Pause", "/pause", "POST", "is paused."),
      act("End", "", "DELETE", "has ended."));
  };
  function open(id) {
    const row = rows.find((other) => other.id === id);
    if (row) watch.open(row);
  }
  async function begun(stream) {
    say(`${nameText(titleOf(stream))} has begun.`);
    await poll.now();
    open(stream.id);
  }

  const table = makeTable("Streams", columns(open, actions), true);
  async function refresh() {
    rows = (await json(`/v1/streams?limit=${SHOWN}`)).data;
    if (poll.ended()) return;
    table.set(rows);
    if (!rows.some((row) => row.id === watch.shown())) watch.close();
    if (watch.shown() === null && rows.length === 1) open(rows[0].id);
    if (said.classList.contains("fault")) say("");
    if (said.textContent === "" && rows.length === 0) say("No streams yet.");
  }
  const poll = makePoll(refresh, (fault) => say(fault.message, true), EVERY);

  main.append(el("div", { class: "data" }, el("h1", { text: "Streams" }), said,
    el("div", {}, table.node, makeStreamForm(begun)), watch.node));
  poll.now();
  return () => { poll.end(); watch.close(); };
}
