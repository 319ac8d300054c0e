// Shows a request as a command or program that sends exactly that request.
import { address } from "./api.js";
import { copyText } from "./copy.js";
import { button, el } from "./dom.js";

function shell(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function python(value, indent = "") {
  const deeper = `${indent}    `;
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return value.length ? `[\n${value.map((item) => deeper + python(item, deeper)).join(",\n")}]` : "[]";
  if (typeof value === "object")
    return `{\n${Object.entries(value).map(([name, item]) => `${deeper}${JSON.stringify(name)}: ${python(item, deeper)}`).join(",\n")}}`;
  return JSON.stringify(value);
}

const KEY = "$VALORA_API_KEY";

const FORMS = {
  curl: (body, withKey) => [
    `curl -N ${shell(String(address("/v1/chat/completions")))} -H 'Content-Type: application/json'`,
    ...(withKey ? [`-H "Authorization: Bearer ${KEY}"`] : []), `-d @- <<'END'\n${JSON.stringify(body, null, 1)}\nEND`].join(" \\\n  "),
  Python: (body, withKey) => `import json, os, urllib.request

body = ${python(body)}
request = urllib.request.Request(
    ${JSON.stringify(String(address("/v1/chat/completions")))}, json.dumps(body).encode(),
    {"Content-Type": "application/json"${withKey ? ', "Authorization": "Bearer " + os.environ["VALORA_API_KEY"]' : ""}})
with urllib.request.urlopen(request) as answer:
    for line in answer:
        print(line.decode(), end="")
`,
  JavaScript: (body, withKey) => `const answer = await fetch(${JSON.stringify(String(address("/v1/chat/completions")))}, {
  method: "POST",
  headers: {"Content-Type": "application/json"${withKey ? ', Authorization: `Bearer ${process.env.VALORA_API_KEY}`' : ""}},
  body: JSON.stringify(${JSON.stringify(body, null, 2).replaceAll("\n", "\n  ")}),
});
for await (const text of answer.body.pipeThrough(new TextDecoderStream())) console.log(text);
`,
};

// Truncates media in the displayed code, which would otherwise bury the rest; the copied code is
// complete.
function shortened(text) {
  return text.replace(/(data:[a-z]+\/[a-z0-9.+-]+;base64,[A-Za-z0-9+/]{40})[A-Za-z0-9+/=]{80,}/g, "$1…");
}

export function showCode(body, withKey) {
  const shown = el("pre", { tabIndex: 0, "aria-label": "The request" });
  const said = el("span", { class: "hint", role: "status" });
  let text = "";
  const tabs = Object.keys(FORMS).map((name) => button(name, () => choose(name), { class: "small" }));
  function choose(name) {
    text = FORMS[name](body, withKey);
    shown.textContent = shortened(text);
    said.textContent = "";
    for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.textContent === name));
  }
  async function copy() {
    if (await copyText(text)) {
      said.textContent = "Copied, with the whole pictures.";
    } else {
      said.textContent = "The browser does not let this page copy; select the text instead.";
      shown.textContent = text;
    }
  }
  const dialog = el("dialog", { class: "code-dialog", "aria-label": "The request as code" });
  dialog.append(el("div", { class: "stack" }, el("div", { class: "row" }, el("h2", { class: "grow", text: "The request" }), ...tabs), shown,
    el("div", { class: "row end" }, said, button("Copy", copy, { class: "primary" }), button("Close", () => dialog.close()))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  choose("curl");
  dialog.showModal();
}
