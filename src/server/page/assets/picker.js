// The model picker: chips for the chosen models, and a search field with a list.
import * as catalog from "./catalog.js";
import { button, el, freshId, named, nameText, replace } from "./dom.js";

const MOST_CHOSEN = 6;

function badges(entry) {
  const list = [];
  if (entry.base) list.push("base");
  if (entry.pinned) list.push("pinned");
  if (entry.head) list.push(entry.headLabels ? `head, ${entry.headLabels} labels` : "head");
  else if (entry.labels) list.push(`${entry.labels} labels`);
  if (entry.boxes) list.push("boxes");
  return list.map((text) => el("span", { class: "badge", text }));
}

export function makePicker(onchange) {
  let chosen = [];
  let options = [];
  let active = -1;
  const listId = freshId("models");
  const chips = el("ul", { class: "chips", "aria-label": "Chosen models" });
  const list = el("ul", { class: "options", id: listId, role: "listbox", "aria-label": "Models", hidden: true });
  const note = el("p", { class: "seen-by-readers", role: "status" });
  const input = el("input", {
    type: "text", role: "combobox", placeholder: "Add a model: name, task or question…", autocomplete: "off", spellcheck: false,
    "aria-label": "Add a model", "aria-expanded": "false", "aria-controls": listId, "aria-autocomplete": "list",
  });

  function drawChips() {
    replace(chips, ...chosen.map((name) => el("li", { class: "chip" }, named(name, 40),
      button("×", () => remove(name), { class: "quiet small", "aria-label": `Remove ${nameText(name)}` }))));
  }
  function set(names) {
    chosen = [...new Set(names)].slice(0, MOST_CHOSEN);
    drawChips();
    onchange(chosen);
  }
  function remove(name) {
    set(chosen.filter((other) => other !== name));
    input.focus();
  }
  function toggle(entry) {
    set(chosen.includes(entry.name) ? chosen.filter((name) => name !== entry.name) : [...chosen, entry.name]);
    input.value = "";
    close();
  }
  function close() {
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }
  function mark(index) {
    active = index;
    [...list.querySelectorAll("[role=option]")].forEach((node, at) => {
      node.classList.toggle("active", at === active);
      if (at !== active) return;
      node.scrollIntoView({ block: "nearest" });
      input.setAttribute("aria-activedescendant", node.id);
    });
  }
  function draw() {
    const { found, total } = catalog.search(input.value);
    options = found;
    replace(list, ...found.map((entry, at) => el("li", {
      id: `${listId}-${at}`, role: "option", "aria-selected": String(chosen.includes(entry.name)),
      onmousedown: (event) => { event.preventDefault(); toggle(entry); },
    }, el("span", { class: "option-name" }, named(entry.name), " ", ...badges(entry)),
      entry.about || entry.question ? el("span", { class: "hint" }, named(entry.question || entry.about, 120)) : null)));
    if (total > found.length)
      list.append(el("li", { role: "presentation", class: "hint more", text: `${total - found.length} more: type to narrow the list` }));
    if (total === 0) list.append(el("li", { role: "presentation", class: "hint more", text: "No model has these words." }));
    note.textContent = `${total} models`;
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(found.length && input.value ? 0 : -1);
  }

  input.addEventListener("input", draw);
  async function open() {
    try {
      await catalog.get();
    } catch {
      return;  // the state of the server is shown already
    }
    if (document.activeElement === input) draw();
    if (await catalog.freshen() && !list.hidden && active < 0) draw();
  }
  input.addEventListener("focus", open);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return close();
    if (event.key === "Backspace" && input.value === "" && chosen.length) return remove(chosen.at(-1));
    if (event.key === "Enter" && active >= 0) {
      event.preventDefault();
      return toggle(options[active]);
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return undefined;
    event.preventDefault();
    if (list.hidden) return draw();
    const step = event.key === "ArrowDown" ? 1 : -1;
    return mark(options.length ? (active + step + options.length) % options.length : -1);
  });

  const node = el("div", { class: "picker" }, chips, el("div", { class: "search" }, input, list), note);
  return { node, set, chosen: () => chosen };
}
