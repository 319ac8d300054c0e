// Creates elements. Texts become text nodes, so nothing sent by a server or a model is parsed as
// markup.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name === "text") node.textContent = value;
    else if (name in node && !name.includes("-")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// A name from outside as part of a sentence or a label: truncated, without invisible characters.
export function nameText(text, most = 80) {
  const name = String(text);
  return visible(name.length > most ? name.slice(0, most - 1) + "…" : name);
}

// Shows a name from outside, with its own text direction.
export function named(text, most = 80) {
  const name = String(text);
  return el("bdi", { text: nameText(name, most), title: name.length > most ? nameText(name, 2000) : undefined });
}

// Replaces control and invisible characters, including those that change the text direction, with
// U+FFFD.
export function visible(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/gu,
    (found) => (found === "\n" || found === "\t" ? found : "\ufffd"));
}

export function button(text, onclick, properties = {}) {
  return el("button", { type: "button", text, onclick, ...properties });
}

export function field(text, input) {
  return el("label", { text }, input);
}

// Lets the browser save a blob as a file of this name.
export function saveAs(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

let fields = 0;
export function freshId(prefix) {
  fields += 1;
  return `${prefix}-${fields}`;
}

export function replace(parent, ...children) {
  parent.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}
