// The pictures and clips with questions that this server offers to try.
import { json, request } from "./api.js";
import { button, el, named, nameText, replace } from "./dom.js";
import { mediumOf, preview } from "./media.js";

let asked = null;

// [{model, question, name, type, bytes, path}]; empty if the server offers none.
export function list() {
  asked ??= json("/ui/samples", { ask: false }).then((given) => given.data, () => {
    asked = null;  // a later try may have the key, or a server that is up
    return [];
  });
  return asked;
}

const media = new Map();  // path -> promise of the medium

function mediumAt(sample) {
  if (!media.has(sample.path)) {
    const loading = request(sample.path, { ask: false }).then(async (response) => mediumOf(new File([await response.blob()], sample.name, { type: sample.type })));
    loading.catch(() => media.delete(sample.path));
    media.set(sample.path, loading);
  }
  return media.get(sample.path);
}

// Buttons, one for each sample; onpick(sample, medium).
export function sampleButtons(samples, onpick) {
  const items = samples.map((sample) => {
    const frame = el("span", { class: "sample-picture" });
    const loaded = mediumAt(sample);
    loaded.then((medium) => replace(frame, preview(medium, { controls: false, alt: "", tabIndex: -1, "aria-hidden": "true" })), () => {});
    return el("li", {}, el("button", {
      type: "button", class: "sample", "aria-label": `Try ${nameText(sample.model)} with ${nameText(sample.name)}: ${nameText(sample.question, 200)}`,
      onclick: () => loaded.then((medium) => onpick(sample, medium), () => {}),
    }, frame, el("span", { class: "sample-text" }, el("strong", {}, named(sample.model, 24)), named(sample.question, 60))));
  });
  return el("ul", { class: "samples", "aria-label": "Samples" }, ...items);
}

// One sample of each model, for a first look.
export function firstOfEach(samples, most) {
  const seen = new Set();
  return samples.filter(({ model }) => !seen.has(model) && seen.add(model)).slice(0, most);
}

// Lets the user choose among all samples.
export function chooseSample(samples, onpick) {
  const dialog = el("dialog", { class: "samples-dialog", "aria-label": "Samples" });
  dialog.append(el("div", { class: "stack" }, el("h2", { text: "Samples" }),
    sampleButtons(samples, (sample, medium) => { dialog.close(); onpick(sample, medium); }),
    el("div", { class: "row end" }, button("Close", () => dialog.close()))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
