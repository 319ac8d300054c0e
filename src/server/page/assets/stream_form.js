// The form that begins a stream: a camera's address or this browser's camera, and standing skills.
import { json } from "./api.js";
import { hasCamera, openCamera, pushCamera } from "./browser_camera.js";
import * as catalog from "./catalog.js";
import { el, field } from "./dom.js";
import { makePicker } from "./picker.js";

const CONDITIONS = {
  "": { title: "no event", when: () => null },
  changes: { title: "the answer changes", when: () => ({ changes: true }) },
  label: { title: "the answer is", when: (text) => ({ label: text }) },
  contains: { title: "the answer contains", when: (text) => ({ contains: text }) },
  boxes: { title: "there is a box of", when: (text) => ({ boxes: text ? { label: text } : {} }), optional: true },
};

// A task's own form of answers, which conditions read.
function skillOf(name, question, when) {
  const entry = catalog.find(name);
  const skill = { model: name };
  if (question) skill.question = question;
  else if (entry?.base) throw new Error(`${name} needs a question.`);
  if (entry?.boxes || when?.boxes) skill.response_format = { type: "boxes" };
  else if (entry?.labels && !entry.head) skill.response_format = { type: "labels" };
  if (when) skill.event = { when };
  return skill;
}

// begun(stream): called with the new stream.
export function makeStreamForm(begun) {
  const name = el("input", { name: "stream_name", spellcheck: false, autocomplete: "off", maxLength: 200 });
  const source = el("input", { name: "source", required: true, spellcheck: false, autocomplete: "off", placeholder: "rtsp://camera/stream, http://…, file://…" });
  const question = el("input", { name: "question", autocomplete: "off", placeholder: "each task its own" });
  const fps = el("input", { name: "fps", type: "number", min: 0.1, max: 30, step: 0.1, value: 1, required: true });
  const most = el("input", { name: "max_tokens", type: "number", min: 1, max: 4096, value: 32, required: true });
  const kind = el("select", { name: "event" }, ...Object.entries(CONDITIONS).map(([value, { title }]) => el("option", { value, text: title })));
  const word = el("input", { name: "word", autocomplete: "off", "aria-label": "Word of the event" });
  const fromUrl = el("input", { type: "radio", name: "source_kind", checked: true });
  const fromCamera = el("input", { type: "radio", name: "source_kind" });
  const sourceField = field("Address of the camera or the video", source);
  const wordField = field("Label or text", word);
  const said = el("p", { role: "status" });
  const picker = makePicker(() => {});
  const submit = el("button", { type: "submit", class: "primary", text: "Begin" });

  function choose() {
    sourceField.hidden = fromCamera.checked;
    source.required = !fromCamera.checked;
    const needsWord = !["", "changes"].includes(kind.value);
    wordField.hidden = !needsWord;
    word.required = needsWord && !CONDITIONS[kind.value].optional;
  }
  for (const control of [fromUrl, fromCamera, kind]) control.addEventListener("change", choose);
  choose();

  function bodyOf() {
    const when = CONDITIONS[kind.value].when(word.value.trim());
    if (picker.chosen().length === 0) throw new Error("Choose at least one model.");
    const body = {
      source: fromCamera.checked ? "push" : source.value.trim(), fps: Number(fps.value), max_tokens: Number(most.value), temperature: 0,
      skills: picker.chosen().map((model) => skillOf(model, question.value.trim(), when)),
    };
    if (name.value.trim()) body.name = name.value.trim();
    return body;
  }
  async function begin() {
    said.className = "";
    said.textContent = "";
    submit.disabled = true;
    let media = null;
    try {
      await catalog.get();
      const body = bodyOf();
      if (fromCamera.checked) media = await openCamera();
      const stream = await json("/v1/streams", { method: "POST", body });
      if (media) await pushCamera(stream.id, media, body.fps);
      form.closest("details").open = false;
      begun(stream);
    } catch (fault) {
      for (const track of media?.getTracks() ?? []) track.stop();
      said.className = "fault";
      said.textContent = fault.name === "NotAllowedError" ? "This page has no access to a camera." : fault.message;
    }
    submit.disabled = false;
  }

  const form = el("form", { class: "load-form", onsubmit: (event) => { event.preventDefault(); begin(); } },
    hasCamera ? el("fieldset", { class: "row" }, el("legend", { text: "From" }),
      el("label", { class: "check" }, fromUrl, "an address"), el("label", { class: "check" }, fromCamera, "this browser's camera")) : null,
    sourceField, field("Name", name), el("div", { class: "wide" }, picker.node), field("Question", question),
    field("Frames per second, at most", fps), field("Tokens of an answer, at most", most), field("Event if", kind), wordField,
    el("div", { class: "row" }, submit), said);
  return el("details", { class: "sheet" }, el("summary", { text: "Begin a stream" }), form);
}
