// Builds bodies of /v1/chat/completions from a conversation and settings.

const MOST_LABELS = 20;  // the server's default limit on alternatives

function contentOf(turn) {
  if (turn.media.length === 0) return turn.text;
  const parts = turn.media.map((medium) => (medium.kind === "video"
    ? { type: "video_url", video_url: { url: medium.url } }
    : { type: "image_url", image_url: { url: medium.url } }));
  return turn.text ? [...parts, { type: "text", text: turn.text }] : parts;
}

// Tool calls and their results as messages.
function callsOf(answer) {
  return (answer.before ?? []).flatMap(({ text, calls }) => [
    { role: "assistant", content: text, tool_calls: calls.map(({ id, name, arguments: given }) => ({ id, type: "function", function: { name, arguments: given } })) },
    ...calls.map(({ id, result }) => ({ role: "tool", tool_call_id: id, content: result })),
  ]);
}

// A model that was added later has no answer in earlier turns: the first answer stands in.
function answerOf(turn, model) {
  return turn.answers.find((answer) => answer.model === model && answer.text) ?? turn.answers.find((answer) => answer.text);
}

function messagesOf(turns, model, system) {
  const messages = system ? [{ role: "system", content: system }] : [];
  turns.forEach((turn, at) => {
    messages.push({ role: "user", content: contentOf(turn) });
    if (at + 1 === turns.length) return;
    const answer = answerOf(turn, model);
    if (answer) messages.push(...callsOf(answer), { role: "assistant", content: answer.text });
  });
  return messages;
}

// The answer form of the model's task, if it applies to this turn.
function formOf(entry, turn, fields) {
  if (!entry || fields.response_format || fields.tools) return {};
  const pictures = turn.media.filter((medium) => medium.kind === "image").length;
  if (entry.boxes && pictures === 1 && turn.media.length === 1) return { response_format: { type: "boxes" } };
  if (!entry.head && entry.labels.length && !entry.boxes) return { response_format: { type: "labels" } };
  return {};
}

// turns: up to and including the one to answer; answer: the answer to that turn, with its earlier
// calls. entry: from the catalog, or null.
export function bodyOf({ turns, answer, entry, settings, continued }) {
  const { model } = answer;
  const fields = settings.fields();
  const turn = turns.at(-1);
  const head = entry?.head && !fields.response_format && !fields.tools;
  const body = { model, messages: [...messagesOf(turns, model, settings.system()), ...callsOf(answer)], ...fields };
  if (settings.taskForm()) Object.assign(body, formOf(entry, turn, fields));
  if (head) Object.assign(body, { logprobs: true, top_logprobs: Math.min(MOST_LABELS, entry.headLabels.length) });
  if (continued) {
    body.messages.push({ role: "assistant", content: continued });
    Object.assign(body, { continue_final_message: true, add_generation_prompt: false });
  }
  return { ...body, stream: true, stream_options: { include_usage: true } };
}
