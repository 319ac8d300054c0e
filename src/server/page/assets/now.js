// Shows the server's current activity from the events of /v1/stats.
import { stats } from "./api.js";
import { el, named, nameText, replace } from "./dom.js";
import { ago, bytes, count, seconds, share } from "./format.js";
import { makeStrip } from "./strip.js";

const BLOCKS = [["adapters", "adapters"], ["running", "KV in use"], ["history", "history"], ["invalid", "KV without its adapter"], ["free", "free"]];

function figures(list) {
  return el("dl", { class: "figures" }, ...list.filter(Boolean).map(([name, value, more]) =>
    el("div", {}, el("dt", { text: name }), el("dd", {}, value, more ? el("span", { class: "hint", text: ` ${more}` }) : null))));
}

function sheet(title, ...children) {
  return el("section", { class: "sheet panel", "aria-label": title }, el("h2", { text: title }), ...children);
}

function requests(now, rates) {
  const { running, waiting } = now.requests;
  return sheet("Requests", figures([
    ["Running", count(running)],
    ["Waiting", count(waiting.capacity), "for a place in the batch"],
    ["Being prepared", count(waiting.preparing), "media, text, form"],
    ["Generated", `${count(now.totals.generated_tokens)} tokens`, rates ? `${count(rates.generated)} per second` : ""],
    ["Prompts", `${count(now.totals.prompt_tokens)} tokens`, rates ? `${count(rates.prompt)} per second` : ""],
    ["Preempted", count(now.totals.preemptions)],
  ]));
}

function refusals(now) {
  const answers = Object.entries(now.totals.http_answers);
  const of = (test) => answers.filter(([status]) => test(Number(status))).reduce((sum, [, n]) => sum + n, 0);
  return sheet("Answers of the server", figures([
    ["Good", count(of((status) => status < 400))],
    ["Refused, too many", count(of((status) => status === 429)), "429"],
    ["Refused, not available", count(of((status) => status === 503)), "503"],
    ["Refused for what they ask", count(of((status) => status >= 400 && status < 499 && status !== 429)), "other 4xx"],
    ["Left by their clients", count(of((status) => status === 499))],
    ["Early aborts", count(now.totals.early_aborts), "would have been late"],
  ]));
}

function pool(now) {
  const { blocks, swap } = now.memory;
  const size = (n) => bytes(n * now.memory.block_bytes);
  const bar = el("div", { class: "stacked", role: "img", "aria-label": BLOCKS.map(([name, text]) => `${text} ${size(blocks[name])}`).join(", ") },
    ...BLOCKS.filter(([name]) => blocks[name] > 0).map(([name]) => {
      const part = el("span", { class: `part kind-${name}` });
      part.style.flexGrow = String(blocks[name]);
      return part;
    }));
  const legend = el("ul", { class: "legend" }, ...BLOCKS.map(([name, text]) =>
    el("li", {}, el("span", { class: `part kind-${name}`, "aria-hidden": "true" }), `${text} ${size(blocks[name])}`, el("span", { class: "hint", text: ` ${share(blocks[name], blocks.total)}` }))));
  const loads = now.memory.adapter_loads;
  return sheet(`Memory pool, ${size(blocks.total)}`, bar, legend, figures([
    ["Adapters in the pool", count(now.memory.adapters)],
    ["Loads of adapters", count(loads.moves), loads.moves ? `${seconds(loads.seconds / loads.moves)} each` : ""],
    ["Adapters that left", count(now.memory.adapters_left)],
    swap.total ? ["Swap space", `${size(swap.used)} of ${size(swap.total)}`] : null,
  ]));
}

function modes(now) {
  const steps = now.steps;
  return sheet("Modes", figures([
    ["Mode of the last step", steps.mode],
    ["Switches", count(steps.switches)],
    ["Merges", count(steps.merges)],
    ["Time of both", seconds(steps.merge_seconds), share(steps.merge_seconds, steps.seconds)],
    ["Steps", count(steps.count), steps.count ? `${seconds(steps.seconds / steps.count)} each` : ""],
    ["Outside the model", share(steps.overhead_seconds, steps.seconds), "of their time"],
  ]));
}

function hits(now) {
  const row = (name, { queries, hits: found }) => [name, share(found, queries), `of ${count(queries)}`];
  return sheet("Found in a cache", figures([
    row("Prompt tokens", now.hits.prefix_tokens), row("Adapters in the pool", now.hits.adapters),
    row("Prepared pictures", now.hits.media), row("Visual embeddings", now.hits.visuals),
  ]));
}

function latencyRow(name, latency, targets, attainment) {
  const cell = (kind) => {
    const times = latency[kind];
    const target = targets?.[kind];
    const reached = attainment?.[kind];
    return el("td", { class: "number" }, times ? `${seconds(times.p50)} / ${seconds(times.p99)}` : "–",
      target ? el("span", { class: "hint", text: ` target ${seconds(target)}${reached === null ? "" : `, met by ${(100 * reached).toFixed(0)} %`}` }) : null);
  };
  return el("tr", {}, el("th", { scope: "row" }, named(name, 40)), el("td", { class: "number", text: count(latency.answers) }), cell("ttft"), cell("tpot"), cell("e2e"));
}

function latencies(now) {
  const titles = ["", "Answers", "First token p50 / p99", "Each further p50 / p99", "Whole answer p50 / p99"];
  return sheet("Latencies of the last answers", el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Latencies" }, el("table", {},
    el("thead", {}, el("tr", {}, ...titles.map((text, at) => el(at ? "th" : "td", { scope: at ? "col" : undefined, class: at ? "number" : "", text })))),
    el("tbody", {}, latencyRow("all", now.latency), ...now.applications.map((application) => latencyRow(application.name, application.latency, application.targets, application.attainment))))));
}

function machine(now, rates) {
  const { process: used, model } = now;
  return sheet("Process", figures([
    ["Model", named(model.architecture, 40), `${count(model.parameters)} parameters, ${model.dtype}, ${model.device}`],
    ["Weights", bytes(model.weight_bytes)],
    used ? ["Memory", bytes(used.resident_bytes), "resident"] : null,
    used && rates ? ["CPU", `${rates.cpu.toFixed(2)} cores`] : null,
    used ? ["Started", ago(used.started, now.time)] : null,
    ["Version", now.version],
  ]));
}

// Rate over the last seconds, from counters that only grow.
function rateOf(list) {
  const [first, last] = [list[0], list.at(-1)];
  if (list.length < 2 || last.at === first.at) return null;
  const passed = last.at - first.at;
  return {
    generated: (last.generated - first.generated) / passed, prompt: (last.prompt - first.prompt) / passed,
    cpu: (last.cpu - first.cpu) / passed,
  };
}

export function show(main) {
  const strip = makeStrip();
  const state = el("p", { class: "notice", role: "status", text: "Connecting…" });
  const panels = el("div", { class: "panels" });
  const control = new AbortController();
  let samples = [];

  function draw(now) {
    samples = [...samples, {
      at: performance.now() / 1000, generated: now.totals.generated_tokens, prompt: now.totals.prompt_tokens, cpu: now.process?.cpu_seconds ?? 0,
    }].slice(-6);
    const rates = rateOf(samples);
    strip.add(now.steps.last, now.steps.last.at(-1)?.ended > now.time ? now.steps.last.at(-1).ended : now.time);
    state.hidden = now.state === "ready";
    state.textContent = now.reason ? nameText(now.reason, 500) : `The server is ${now.state}.`;
    replace(panels, requests(now, rates), pool(now), modes(now), hits(now), refusals(now), machine(now, rates), latencies(now));
  }
  async function follow() {
    let ask = true;
    while (!control.signal.aborted) {
      try {
        for await (const now of stats(control.signal, ask)) draw(now);
        throw new Error("The server ended the connection.");
      } catch (fault) {
        if (control.signal.aborted) return;
        ask = fault.status !== 401;  // asks again only when the user returns
        state.hidden = false;
        state.textContent = `${fault.message} Trying again…`;
        samples = [];
        strip.forget();
        window.dispatchEvent(new Event("server-lost"));
      }
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }

  main.append(el("div", { class: "data" }, el("h1", { text: "Now" }), state, sheet("Steps of the engine", strip.node), panels,
    el("p", { class: "hint" }, el("a", { href: "#charts", text: "Charts" }), " of what valora bench trace measured, from its files.")));
  strip.start();
  follow();
  return () => { control.abort(); strip.stop(); };
}
