// Builds bodies of /v1/chat/completions from a conversation and settings.

const MOST_LABELS = 20;  // the server's default limit on alternatives

function contentOf(turn, answer) {
  const text = answer?.question ?? turn.text;
  if (turn.media.length === 0) return text;
  const parts = turn.media.map((medium) => (medium.kind === "video"
    ? { type: "video_url", video_url: { url: medium.url } }
    : { type: "image_url", image_url: { url: medium.url } }));
  return text ? [...parts, { type: "text", text }] : parts;
}

// Tool calls and their results as messages.
function callsOf(answer) {
  return (answer.before ?? []).flatMap(({ thought, text, calls }) => [
    { role: "assistant", ...(thought ? { reasoning: thought } : {}), content: text, tool_calls: calls.map(({ id, name, arguments: given }) => ({ id, type: "function", function: { name, arguments: given } })) },
    ...calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
  ]);
}

// A model that was added later has no answer in earlier turns: the first answer stands in.
function answerOf(turn, model) {
  return turn.answers.find((answer) => answer.model === model && answer.text) ?? turn.answers.find((answer) => answer.text);
}

function messagesOf(earlier, turn, answer, system) {
  const messages = system ? [{ role: "system", content: system }] : [];
  for (const past of earlier) {
    const given = answerOf(past, answer.model);
    messages.push({ role: "user", content: contentOf(past, given) });
    if (given) messages.push(...callsOf(given), { role: "assistant", content: given.text });
  }
  return [...messages, { role: "user", content: contentOf(turn, answer) }, ...callsOf(answer)];
}

// A task was trained on single questions: earlier turns would change its answer, and heads and forms
// of answers do not take them.
export function isAskedAlone(entry) {
  return Boolean(entry && (entry.head || entry.boxes || entry.labels || entry.question));
}

// The answer form of the model's task, if it applies to this turn.
function formOf(entry, turn, fields) {
  if (!entry || fields.response_format || fields.tools) return {};
  const pictures = turn.media.filter((medium) => medium.kind === "image").length;
  if (entry.boxes && pictures === 1 && turn.media.length === 1) return { response_format: { type: "boxes", confidence: true } };
  if (!entry.head && entry.labels && !entry.boxes) return { response_format: { type: "labels" } };
  return {};
}

// turns: up to and including the one to answer; answer: the answer to that turn, with its earlier
// calls. entry: from the catalog, or null.
export function bodyOf({ turns, answer, entry, settings, continued }) {
  const fields = settings.fields();
  const turn = turns.at(-1);
  const head = entry?.head && !fields.response_format && !fields.tools;
  const earlier = isAskedAlone(entry) ? [] : turns.slice(0, -1);
  const body = { model: answer.model, messages: messagesOf(earlier, turn, answer, settings.system()), ...fields };
  if (settings.taskForm()) Object.assign(body, formOf(entry, turn, fields));
  if (head) Object.assign(body, { logprobs: true, top_logprobs: Math.min(MOST_LABELS, entry.headLabels) });
  if (continued) {
    body.messages.push({ role: "assistant", content: continued });
    Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  }
  return { ...body, stream: true, stream_options: { include_usage: true } };
}
