// Sampling settings, answer form and tools, stored in the browser.
import { el } from "./dom.js";

const KEPT = "valora.settings";
const NUMBERS = [
  ["temperature", "Temperature", { min: 0, max: 2, step: 0.05, placeholder: "the model's" }],
  ["top_p", "Top p", { min: 0, max: 1, step: 0.01, placeholder: "the model's" }],
  ["top_k", "Top k", { min: -1, step: 1, placeholder: "the model's" }],
  ["max_tokens", "Most tokens", { min: 1, step: 1, placeholder: "no limit" }],
  ["seed", "Seed", { step: 1, placeholder: "random" }],
  ["repetition_penalty", "Repetition penalty", { min: 0.1, max: 2, step: 0.05, placeholder: "1" }],
];
const FORMS = [["text", "free text"], ["form", "the task's: labels, boxes"], ["boxes", "boxes on the picture"], ["json", "any JSON"], ["schema", "a JSON schema"]];

function read() {
  try {
    return JSON.parse(localStorage.getItem(KEPT)) ?? {};
  } catch {
    return {};
  }
}

function parsed(text, what) {
  try {
    return JSON.parse(text);
  } catch (fault) {
    throw new Error(`${what} is not JSON: ${fault.message}`);
  }
}

export function makeSettings() {
  const values = { form: "form", temperature: "0", max_tokens: "256", ...read() };
  const save = (name, value) => {
    values[name] = value;
    localStorage.setItem(KEPT, JSON.stringify(values));
  };
  const bound = (tag, name, properties) => el(tag, {
    name, value: values[name] ?? "", oninput: (event) => save(name, event.target.value), ...properties,
  });
  const schema = el("label", { text: "JSON schema" }, bound("textarea", "schema", { rows: 5, class: "code", spellcheck: false, placeholder: '{"type": "object", …}' }));
  const form = el("select", { name: "form", onchange: () => { save("form", form.value); showSchema(); } },
    ...FORMS.map(([value, text]) => el("option", { value, text, selected: value === values.form })));
  const showSchema = () => { schema.hidden = form.value !== "schema"; };
  showSchema();

  const numbers = el("div", { class: "numbers" }, ...NUMBERS.map(([name, text, limits]) =>
    el("label", { text }, bound("input", name, { type: "number", inputMode: "decimal", ...limits }))));
  const node = el("div", { class: "settings" },
    el("label", { text: "System message" }, bound("textarea", "system", { rows: 2 })),
    numbers,
    el("label", { text: "Stop at (one per line)" }, bound("textarea", "stop", { rows: 1 })),
    el("label", { text: "Form of the answer" }, form), schema,
    el("label", { text: "Tools (a JSON list)" }, bound("textarea", "tools", { rows: 3, class: "code", spellcheck: false, placeholder: '[{"type": "function", "function": {"name": …}}]' })));

  // The settings as body fields. Throws an Error that says which setting cannot be parsed.
  function fields() {
    const out = {};
    for (const [name, text] of NUMBERS) {
      const given = (values[name] ?? "").trim();
      if (given === "") continue;
      if (Number.isNaN(Number(given))) throw new Error(`${text} is not a number.`);
      out[name] = Number(given);
    }
    const stops = (values.stop ?? "").split("\n").filter(Boolean);
    if (stops.length) out.stop = stops;
    if (values.form === "boxes") out.response_format = { type: "boxes", confidence: true };
    if (values.form === "json") out.response_format = { type: "json_object" };
    if (values.form === "schema")
      out.response_format = { type: "json_schema", json_schema: { name: "answer", schema: parsed(values.schema ?? "", "The JSON schema") } };
    if ((values.tools ?? "").trim()) out.tools = parsed(values.tools, "The list of tools");
    return out;
  }
  return { node, fields, system: () => (values.system ?? "").trim(), taskForm: () => values.form === "form" };
}
