// The inline part of Markdown: emphasis, code, links. Makes text nodes and a few known elements, in
// time linear in the text; what is not understood stays as it is written.
import { el } from "./dom.js";

const MOST_OPEN = 16;  // bounds how deep elements nest
const LONGEST_URL = 2000;
const PUNCTUATION = /[!-/:-@[-`{-~\u2010-\u205e\u3001-\u3003\u3008-\u3011]/;
const BARE = /https?:\/\/[^\s<>"'`]{1,2000}/y;
const POINTED = /<(https?:\/\/[^\s<>]{1,2000})>/y;

// The address of a link, or null: only whole addresses of the web are links.
export function safeUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}

function link(href, ...children) {
  return el("a", { href, target: "_blank", rel: "noopener noreferrer" }, ...children);
}

// Where each run of backticks ends and which later run closes it: start -> [end, close or null].
function codeSpans(text) {
  const runs = [...text.matchAll(/`+/g)].map((found) => [found.index, found[0].length]);
  const next = new Map();
  const seen = new Map();
  for (const [at, length] of runs.reverse()) {
    next.set(at, [at + length, seen.get(length) ?? null]);
    seen.set(length, at);
  }
  return next;
}

// The matching "]" of each "[", outside code and escapes.
function brackets(text, spans) {
  const pairs = new Map();
  const open = [];
  for (let at = 0; at < text.length; at += 1) {
    const span = text[at] === "`" ? spans.get(at) : null;
    if (text[at] === "\\") at += 1;
    else if (span) at = (span[1] === null ? span[0] : span[1] + span[0] - at) - 1;
    else if (text[at] === "[") open.push(at);
    else if (text[at] === "]" && open.length) pairs.set(open.pop(), at);
  }
  return pairs;
}

// An address without the title in quotes that may follow it.
function untitled(text) {
  const quote = text.at(-1);
  const begin = quote === '"' || quote === "'" ? text.lastIndexOf(quote, text.length - 2) : -1;
  return begin > 0 && blank(text[begin - 1]) ? text.slice(0, begin).trim() : text;
}

// "(address "title")" at this place: {href, end}, or null.
function destination(text, at) {
  if (text[at] !== "(") return null;
  let depth = 0;
  for (let end = at; end < text.length && end - at < LONGEST_URL; end += 1) {
    if (text[end] === "\n") return null;
    if (text[end] === "(") depth += 1;
    if (text[end] === ")") depth -= 1;
    if (depth > 0) continue;
    const inside = untitled(text.slice(at + 1, end).trim()).replace(/^<|>$/g, "");
    const href = /\s/.test(inside) ? null : safeUrl(inside);
    return href === null ? null : { href, end: end + 1 };
  }
  return null;
}

// A bare address without the punctuation that ends its sentence.
function trimmed(url) {
  let end = url.length;
  while (end > 0 && (".,;:!?*_~]}".includes(url[end - 1]) || (url[end - 1] === ")" && !url.slice(0, end).includes("(")))) end -= 1;
  return url.slice(0, end);
}

const blank = (char) => char === undefined || /\s/.test(char);
const mark = (char) => char !== undefined && PUNCTUATION.test(char);

// Whether a run of delimiters can open or close emphasis.
function flanks(char, before, after) {
  const left = !blank(after) && (!mark(after) || blank(before) || mark(before));
  const right = !blank(before) && (!mark(before) || blank(after) || mark(after));
  if (char !== "_") return { opens: left, closes: right };
  return { opens: left && (!right || mark(before)), closes: right && (!left || mark(after)) };
}

const ELEMENTS = { "~": { 2: "s" }, "*": { 1: "em", 2: "strong" }, _: { 1: "em", 2: "strong" } };

// Collects nodes; delimiters that find no partner become text.
class Writer {
  parts = [];  // nodes, and delimiters {char, count}
  open = [];  // indices of delimiters that may open
  text = "";

  flush() {
    if (this.text) this.parts.push(document.createTextNode(this.text));
    this.text = "";
  }
  push(node) {
    this.flush();
    this.parts.push(node);
  }
  delimiter(char, length, { opens, closes }) {
    let count = length;
    while (closes && count > 0) {
      const at = this.open.findLastIndex((index) => this.parts[index].char === char);
      if (at < 0) break;
      const opener = this.parts[this.open[at]];
      const used = Math.min(2, count, opener.count);
      const tag = ELEMENTS[char][used];
      if (!tag) break;
      this.flush();
      const inside = this.parts.splice(this.open[at] + 1).map((part) => this.nodeOf(part));
      this.open.length = at + 1;
      this.parts.push(el(tag, {}, ...inside));
      count -= used;
      opener.count -= used;
      if (opener.count === 0) {
        this.parts.splice(this.open[at], 1);
        this.open.length = at;
      }
    }
    if (count === 0) return;
    if (!opens || count > 3 || this.open.length >= MOST_OPEN) {
      this.text += char.repeat(count);
      return;
    }
    this.flush();
    this.open.push(this.parts.length);
    this.parts.push({ char, count });
  }
  nodeOf(part) {
    return part instanceof Node ? part : document.createTextNode(part.char.repeat(part.count));
  }
  nodes() {
    this.flush();
    return this.parts.map((part) => this.nodeOf(part));
  }
}

// Code keeps its spaces but for one on each side, which lets it begin with a backtick.
function codeText(text) {
  const line = text.replaceAll("\n", " ");
  return line.startsWith(" ") && line.endsWith(" ") && line.trim() !== "" ? line.slice(1, -1) : line;
}

// The nodes of a piece of text. inLink: no further links.
export function inline(text, inLink = false) {
  const spans = codeSpans(text);
  const pairs = brackets(text, spans);
  const out = new Writer();
  let at = 0;

  // Each reader takes what begins at `at` and moves on, or returns false.
  function code() {
    const [end, close] = spans.get(at) ?? [at + 1, null];
    if (close === null) out.text += text.slice(at, end);
    else out.push(el("code", { text: codeText(text.slice(end, close)) }));
    at = close === null ? end : close + (end - at);
    return true;
  }
  function linked() {
    const picture = text[at] === "!";
    const begin = picture ? at + 1 : at;
    const close = text[begin] === "[" ? pairs.get(begin) : undefined;
    const found = close === undefined || inLink ? null : destination(text, close + 1);
    if (!found) return false;
    const inside = text.slice(begin + 1, close);
    const label = picture ? [inside || found.href] : inline(inside, true);  // pictures of others are not loaded
    out.push(link(found.href, ...label));
    at = found.end;
    return true;
  }
  function pointed() {
    POINTED.lastIndex = at;
    const found = POINTED.exec(text);
    const href = found && !inLink ? safeUrl(found[1]) : null;
    if (href === null) return false;
    out.push(link(href, found[1]));
    at += found[0].length;
    return true;
  }
  function bare() {
    if (inLink || (at > 0 && /\w/.test(text[at - 1]))) return false;
    BARE.lastIndex = at;
    const found = BARE.exec(text);
    const url = found ? trimmed(found[0]) : "";
    const href = safeUrl(url);
    if (href === null) return false;
    out.push(link(href, url));
    at += url.length;
    return true;
  }
  function emphasis() {
    const char = text[at];
    let end = at;
    while (text[end] === char) end += 1;
    out.delimiter(char, end - at, char === "~" && end - at !== 2 ? {} : flanks(char, text[at - 1], text[end]));
    at = end;
    return true;
  }
  function escaped() {
    if (!mark(text[at + 1])) return false;
    out.text += text[at + 1];
    at += 2;
    return true;
  }
  const readers = { "`": code, "[": linked, "!": linked, "<": pointed, h: bare, "*": emphasis, _: emphasis, "~": emphasis, "\\": escaped };
  while (at < text.length) {
    if (readers[text[at]]?.()) continue;
    out.text += text[at];
    at += 1;
  }
  return out.nodes();
}
