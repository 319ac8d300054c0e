// The form that loads an adapter from a folder on the server or on this computer.
import { request, upload } from "./api.js";
import { el, field, nameText } from "./dom.js";
import { bytes, seconds } from "./format.js";

const FILES = ["adapter_config.json", "adapter_model.safetensors", "valora.json"];

// Picks an adapter's files out of the chosen folder. Throws an Error if they are incomplete or too
// large.
function chosenFiles(input, limit) {
  const files = FILES.map((name) => [...input.files].filter((file) => file.name === name));
  const many = FILES.find((_, at) => files[at].length > 1);
  if (many) throw new Error(`There are several files ${many} in this folder; choose the folder of one adapter.`);
  const missing = FILES.slice(0, 2).find((_, at) => files[at].length === 0);
  if (missing) throw new Error(`This folder has no ${missing}.`);
  const found = files.flat();
  const size = found.reduce((sum, file) => sum + file.size, 0);
  if (size > limit) throw new Error(`These files have ${bytes(size)}; the server accepts at most ${bytes(limit)}.`);
  return found;
}

// uploadLimit: bytes, or null if the server accepts no uploads. after(): called when an adapter has
// been loaded.
export function makeLoadForm(uploadLimit, after) {
  const name = el("input", { name: "lora_name", required: true, spellcheck: false, autocomplete: "off" });
  const path = el("input", { name: "lora_path", required: true, spellcheck: false, autocomplete: "off", placeholder: "a folder on the server" });
  const files = el("input", { type: "file", webkitdirectory: true, multiple: true });
  const pathField = field("Folder", path);
  const filesField = field("Folder of this computer", files);
  const pinned = el("input", { type: "checkbox" });
  const replaces = el("input", { type: "checkbox" });
  const said = el("p", { role: "status" });
  const passed = el("span", { class: "hint", "aria-hidden": "true" });
  const progress = el("progress", { hidden: true, "aria-label": "Loading" });
  const submit = el("button", { type: "submit", class: "primary", text: "Load" });

  const fromHere = el("input", { type: "radio", name: "from", value: "here" });
  const fromServer = el("input", { type: "radio", name: "from", value: "server", checked: true });
  function choose() {
    pathField.hidden = fromHere.checked;
    filesField.hidden = !fromHere.checked;
    path.required = !fromHere.checked;
    files.required = fromHere.checked;
  }
  for (const from of [fromHere, fromServer]) from.addEventListener("change", choose);
  const source = uploadLimit === null ? null : el("fieldset", { class: "row" }, el("legend", { text: "From" }),
    el("label", { class: "check" }, fromServer, "the server"), el("label", { class: "check" }, fromHere, "this computer"));
  choose();

  const form = el("form", { class: "load-form", onsubmit: (event) => { event.preventDefault(); load(); } },
    source, field("Name", name), pathField, source ? filesField : null,
    el("label", { class: "check" }, pinned, "keep it in the pool (pinned)"), el("label", { class: "check" }, replaces, "replace the adapter of this name (a task of the manifest loses its question and its head)"),
    el("div", { class: "row" }, submit, progress, passed), said);

  function say(text, fault = false) {
    said.className = fault ? "fault" : "";
    said.textContent = text;
  }
  function showSent(sent, of) {
    if (sent >= of) return showReading();
    progress.max = of;
    progress.value = sent;
    passed.textContent = `${bytes(sent)} of ${bytes(of)}`;
    return undefined;
  }
  let readsSince = 0;  // 0: the server is not reading
  function showReading() {
    readsSince ||= performance.now();
    const past = (performance.now() - readsSince) / 1000;
    progress.removeAttribute("value");
    passed.textContent = past < 1 ? "the server is reading it" : `the server is reading it, ${Math.floor(past)} s`;
  }
  function tick() {
    if (readsSince) showReading();
  }
  async function send() {
    if (!fromHere.checked) {
      await request("/v1/load_lora_adapter", { method: "POST", body: { lora_name: name.value, lora_path: path.value, pinned: pinned.checked, load_inplace: replaces.checked } });
      return;
    }
    const found = chosenFiles(files, uploadLimit);
    const data = new FormData();
    data.append("lora_name", name.value);
    data.append("pinned", String(pinned.checked));
    data.append("load_inplace", String(replaces.checked));
    for (const file of found) data.append(file.name, file);
    await upload("/v1/upload_lora_adapter", data, showSent);
  }
  async function load() {
    const began = performance.now();
    submit.disabled = true;
    progress.hidden = false;
    say(fromHere.checked ? "Uploading…" : "Loading…");
    readsSince = 0;
    if (!fromHere.checked) showReading();
    const ticks = setInterval(tick, 1000);
    try {
      await send();
      say(`Loaded ${nameText(name.value)} in ${seconds((performance.now() - began) / 1000)}.`);
      after();
    } catch (fault) {
      say(fault.message, true);
    }
    clearInterval(ticks);
    submit.disabled = false;
    progress.hidden = true;
    passed.textContent = "";
  }
  const open = el("details", { class: "sheet" }, el("summary", { text: "Load an adapter" }), form);
  return {
    node: open,
    replace(row) {
      open.open = true;
      name.value = row.name;
      path.value = row.path ?? "";
      pinned.checked = row.pinned;
      replaces.checked = true;
      (fromHere.checked ? files : path).focus();
    },
  };
}
