// Lists the batches of the key: how far each is, how fast its rows are answered; cancels them and
// saves their files.
import { json, request } from "./api.js";
import { button, el, named, nameText, replace, saveAs } from "./dom.js";
import { ago, count, duration } from "./format.js";
import { makePoll } from "./poll.js";
import { makeTable } from "./table.js";

const EVERY = 2000;
const SHOWN = 100;
const RATE_OVER = 20;  // seconds of which the rate is shown
const ASKS = ["validating", "in_progress"];  // can be cancelled
const GOES_ON = [...ASKS, "finalizing", "cancelling"];

const doneOf = (batch) => batch.request_counts.completed + batch.request_counts.failed;
const endOf = (batch) => batch.completed_at ?? batch.cancelled_at ?? batch.expired_at ?? batch.failed_at;

// Rows per second: of the last seconds while a batch goes on, else of its whole time.
function makeRates() {
  const seen = new Map();  // id -> [[seconds, rows], …]
  return (batch, now) => {
    const done = doneOf(batch);
    if (!GOES_ON.includes(batch.status)) {
      seen.delete(batch.id);
      return endOf(batch) && batch.in_progress_at ? done / Math.max(1, endOf(batch) - batch.in_progress_at) : null;
    }
    const points = seen.get(batch.id) ?? [];
    points.push([now, done]);
    while (points.length > 2 && now - points[0][0] > RATE_OVER) points.shift();
    seen.set(batch.id, points);
    const [[since, before]] = points;
    return now > since ? (done - before) / (now - since) : null;
  };
}

const rateText = (rate) => (rate === null ? "–" : `${rate < 10 ? rate.toFixed(1) : count(rate)} /s`);

function progressNode(row) {
  const { total } = row.request_counts;
  if (total === 0) return "–";
  return el("span", { class: "row" }, el("progress", { max: total, value: doneOf(row), "aria-label": `Rows of ${row.id}` }), `${count(doneOf(row))} of ${count(total)}`);
}

function timeText(row) {
  if (!GOES_ON.includes(row.status)) return `ended ${ago(endOf(row))}`;
  const left = row.request_counts.total - doneOf(row);
  if (row.rate > 0 && left > 0) return `about ${duration(left / row.rate)} left`;
  return `until ${new Date(row.expires_at * 1000).toLocaleString()}`;
}

function faultText(row) {
  const fault = row.errors?.data[0];
  return fault ? nameText(`${fault.line ? `line ${fault.line}: ` : ""}${fault.message}`, 300) : undefined;
}

function columns(actions) {
  const number = (name, title, value, cell) => ({ name, title, number: true, value, cell });
  return [
    { name: "id", title: "Batch", value: (row) => row.id, cell: (row) => named(row.id, 40) },
    { name: "status", title: "Status", value: (row) => row.status, cell: (row) => el("span", { class: `badge ${GOES_ON.includes(row.status) ? "accent" : ""}`, title: faultText(row), text: row.status.replace("_", " ") }) },
    number("rows", "Rows", doneOf, progressNode),
    number("failed", "Errors", (row) => row.request_counts.failed, (row) => count(row.request_counts.failed)),
    number("rate", "Rate", (row) => row.rate ?? 0, (row) => rateText(row.rate)),
    { name: "time", title: "Time", value: (row) => endOf(row) ?? row.expires_at, cell: timeText },
    { name: "endpoint", title: "Endpoint", value: (row) => row.endpoint, cell: (row) => row.endpoint },
    { name: "actions", title: "Change", value: () => 0, cell: actions },
  ];
}

function sumsOf(rows) {
  const going = rows.filter((row) => GOES_ON.includes(row.status));
  const sum = (of) => going.reduce((total, row) => total + of(row), 0);
  return [
    ["Going on", count(going.length)],
    ["Rows left", count(sum((row) => row.request_counts.total - doneOf(row)))],
    ["Rate", rateText(going.some((row) => row.rate !== null) ? sum((row) => row.rate ?? 0) : null)],
    ["Ended", count(rows.length - going.length)],
  ];
}

export function show(main) {
  const said = el("p", { role: "status" });
  const sums = el("dl", { class: "totals", "aria-label": "Totals" });
  const rateOf = makeRates();

  function say(text, fault = false) {
    said.className = fault ? "fault" : "hint";
    said.textContent = text;
  }
  async function attempt(work, text) {
    try {
      await work();
      say(text);
    } catch (fault) {
      say(fault.message, true);
    }
  }
  const cancel = (row) => attempt(async () => {
    await request(`/v1/batches/${row.id}/cancel`, { method: "POST" });
    await poll.now();
  }, `${row.id} is being cancelled; rows that are answered are kept.`);
  const save = (row, file, kind) => attempt(async () => {
    saveAs(await (await request(`/v1/files/${file}/content`)).blob(), `${row.id}_${kind}.jsonl`);
  }, `Saved the ${kind} of ${row.id}.`);
  const small = (text, label, work) => button(text, work, { class: "quiet small", "aria-label": label });
  const actions = (row) => el("span", { class: "row" },
    ASKS.includes(row.status) ? small("Cancel", `Cancel ${row.id}`, () => cancel(row)) : null,
    row.output_file_id ? small("Answers", `Save the answers of ${row.id}`, () => save(row, row.output_file_id, "answers")) : null,
    row.error_file_id ? small("Errors", `Save the errors of ${row.id}`, () => save(row, row.error_file_id, "errors")) : null);

  const table = makeTable("Batches", columns(actions), true);
  async function refresh() {
    const list = await json(`/v1/batches?limit=${SHOWN}`);
    if (poll.ended()) return;
    const now = performance.now() / 1000;
    const rows = list.data.map((batch) => ({ ...batch, rate: rateOf(batch, now) }));
    table.set(rows);
    replace(sums, ...sumsOf(rows).map(([name, value]) => el("div", {}, el("dt", { text: name }), el("dd", { text: value }))));
    if (said.classList.contains("fault")) say("");
    if (said.textContent === "" && list.has_more) say(`The newest ${SHOWN}.`);
    if (said.textContent === "" && rows.length === 0) say("No batches yet. They are begun over the API: POST /v1/files, then POST /v1/batches.");
  }
  const poll = makePoll(refresh, (fault) => say(fault.message, true), EVERY);

  main.append(el("div", { class: "data" }, el("h1", { text: "Batches" }), said, sums, el("div", {}, table.node)));
  poll.now();
  return poll.end;
}
