// One model's answer: sends the request, reads the stream and measures it.
import { events, request } from "./api.js";
import { nameText } from "./dom.js";

// question: what this model alone was asked; null: the turn's text.
// {before, thought, text, calls, labels: [{label, share}], usage, ttft, seconds, finish, error, asked};
// before: earlier rounds of thought, text and calls, with the results that were sent back: [{thought,
// text, calls: [{id, name, arguments, result}]}]
export function emptyAnswer(model, question = null) {
  return { model, question, before: [], thought: "", text: "", calls: [], labels: [], usage: null, ttft: null, seconds: null, finish: null, error: null, asked: null };
}

function takeCalls(answer, deltas) {
  for (const delta of deltas) {
    const call = answer.calls[delta.index] ??= { id: "", name: "", arguments: "" };
    call.id ||= delta.id ?? "";
    call.name ||= delta.function?.name ?? "";
    call.arguments += delta.function?.arguments ?? "";
  }
}

// Moves the calls with their results into `before`; the answer continues after them.
export function takeResults(answer, results) {
  const calls = answer.calls.filter(Boolean).map((call, at) => ({ ...call, result: results[at] }));
  const before = [...answer.before ?? [], { thought: answer.thought, text: answer.text, calls }];
  Object.assign(answer, emptyAnswer(answer.model, answer.question), { before });
}

// A task head returns its label as one token without bytes; the alternatives list all its labels.
function takeLabels(answer, token) {
  answer.labels = token.top_logprobs.map(({ token: label, logprob }) => ({ label, share: Math.exp(logprob) }));
}

// Calls `changed` whenever the answer grows. Never throws: errors are put into answer.error.
export async function ask(answer, body, { signal, changed }) {
  const began = performance.now();
  const passed = () => (performance.now() - began) / 1000;
  answer.asked = body;
  answer.error = null;
  answer.finish = null;
  try {
    const response = await request("/v1/chat/completions", { method: "POST", body, signal });
    for await (const data of events(response)) {
      if (data === "[DONE]") break;
      const event = JSON.parse(data);
      if (event.error) throw new Error(nameText(event.error.message, 2000));
      if (event.usage) answer.usage = event.usage;
      const choice = event.choices?.[0];
      if (!choice) continue;
      answer.ttft ??= passed();
      answer.seconds = passed();
      answer.thought = (answer.thought ?? "") + (choice.delta?.reasoning ?? "");
      answer.text += choice.delta?.content ?? "";
      takeCalls(answer, choice.delta?.tool_calls ?? []);
      const token = choice.logprobs?.content?.[0];
      if (body.logprobs && token?.top_logprobs) takeLabels(answer, token);
      answer.finish = choice.finish_reason ?? answer.finish;
      changed();
    }
    if (!answer.finish) throw new Error("The connection ended before the answer did.");
  } catch (fault) {
    if (fault.name === "AbortError") answer.finish = "stopped";
    else answer.error = fault.message || "The answer was lost.";
    if (fault.status === 0) window.dispatchEvent(new Event("server-lost"));
  }
  answer.seconds = passed();
  changed();
}

export function tokensPerSecond(answer) {
  const tokens = answer.usage?.completion_tokens ?? 0;
  const passed = answer.seconds - answer.ttft;
  return tokens > 3 && passed > 0.02 ? (tokens - 1) / passed : null;  // else too short to measure
}
