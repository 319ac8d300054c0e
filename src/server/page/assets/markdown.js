// Shows an answer's Markdown: paragraphs, headings, lists, quotes, tables and code. Blocks that did
// not change since the last update keep their nodes, so that streams cost little and a selection
// stays. Only text nodes and known elements are made: nothing in an answer becomes markup.
import { copyButton } from "./copy.js";
import { el, nameText } from "./dom.js";
import { inline } from "./markdown_inline.js";

const MOST_DEEP = 6;
const MOST_COLUMNS = 40;
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(\S.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])([ \t]{1,4})(\S.*)$/;
const DASHES = /^ {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/;

const indentOf = (line) => line.length - line.trimStart().length;
const isBlank = (line) => line.trim() === "";

// The fence that this line opens: {marks, language}, or null.
function fenceOf(line) {
  const found = FENCE.exec(line);
  const rest = found ? line.slice(found[0].length).trim() : "";
  return found === null || (found[1][0] === "`" && rest.includes("`")) ? null : { marks: found[1], language: rest.split(/\s/)[0] };
}

function closes(line, marks) {
  const given = line.trim();
  return given.length >= marks.length && given === marks[0].repeat(given.length);
}

// The cells of a table's line.
function cellsOf(line) {
  const inside = line.trim().replace(/^\|/, "").replace(/\\\|/g, "\u0000").replace(/\|$/, "");
  return inside.split("|").slice(0, MOST_COLUMNS).map((cell) => cell.replaceAll("\u0000", "|").trim());
}

function isTable(lines, at) {
  return lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DASHES.test(lines[at + 1]) &&
    cellsOf(lines[at]).length === cellsOf(lines[at + 1]).length;
}

const isOrdered = (item) => /\d/.test(item[2]);

// True if this line begins a block although no blank line is before it.
function begins(lines, at) {
  const line = lines[at];
  return fenceOf(line) !== null || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line) || isTable(lines, at);
}

// In a paragraph, a number with a dot begins a list only if it is 1: others may be part of a sentence.
function endsParagraph(lines, at) {
  const item = ITEM.exec(lines[at]);
  return isBlank(lines[at]) || (begins(lines, at) && !(item && isOrdered(item) && Number.parseInt(item[2], 10) !== 1));
}

function endOfFence(lines, at) {
  const { marks } = fenceOf(lines[at]);
  for (let end = at + 1; end < lines.length; end += 1) if (closes(lines[end], marks)) return end + 1;
  return lines.length;  // not yet closed
}

// An item goes on with indented lines, after blank ones too, and with lines that begin no block.
function endOfItem(lines, at) {
  let end = at + 1;
  while (end < lines.length) {
    const gap = isBlank(lines[end]);
    if (gap && (end + 1 >= lines.length || isBlank(lines[end + 1]) || indentOf(lines[end + 1]) < 2)) break;
    if (!gap && indentOf(lines[end]) < 2 && begins(lines, end)) break;
    end += 1;
  }
  return end;
}

function endOfList(lines, at) {
  const first = ITEM.exec(lines[at]);
  let end = endOfItem(lines, at);
  for (;;) {
    const next = end < lines.length && isBlank(lines[end]) ? end + 1 : end;
    const item = next < lines.length && !RULE.test(lines[next]) ? ITEM.exec(lines[next]) : null;
    if (!item || isOrdered(item) !== isOrdered(first)) return end;
    end = endOfItem(lines, next);
  }
}

function endWhile(lines, at, test) {
  let end = at + 1;
  while (end < lines.length && test(end)) end += 1;
  return end;
}

// The blocks of these lines: [{kind, lines}].
function blocksOf(lines) {
  const out = [];
  for (let at = 0; at < lines.length;) {
    if (isBlank(lines[at])) {
      at += 1;
      continue;
    }
    let kind = "paragraph", end = 0;
    if (fenceOf(lines[at])) [kind, end] = ["code", endOfFence(lines, at)];
    else if (HEADING.test(lines[at])) [kind, end] = ["heading", at + 1];
    else if (RULE.test(lines[at])) [kind, end] = ["rule", at + 1];
    else if (QUOTE.test(lines[at])) [kind, end] = ["quote", endWhile(lines, at, (next) => QUOTE.test(lines[next]))];
    else if (ITEM.test(lines[at])) [kind, end] = ["list", endOfList(lines, at)];
    else if (isTable(lines, at)) [kind, end] = ["table", endWhile(lines, at + 1, (next) => lines[next].includes("|") && !isBlank(lines[next]))];
    else end = endWhile(lines, at, (next) => !endsParagraph(lines, next));
    out.push({ kind, lines: lines.slice(at, end) });
    at = end;
  }
  return out;
}

function codeNode(lines) {
  const { marks, language } = fenceOf(lines[0]);
  const closed = lines.length > 1 && closes(lines.at(-1), marks);
  const text = lines.slice(1, closed ? -1 : undefined).join("\n");
  const name = nameText(language || "code", 30);
  return el("div", { class: "code-block" }, el("div", { class: "row code-head" }, el("span", { class: "hint grow", text: name }),
    copyButton(() => text, "Copy the code")), el("pre", { tabIndex: 0, "aria-label": `Code: ${name}` }, el("code", { text })));
}

function headingNode([line]) {
  const [, marks, rest] = HEADING.exec(line);
  return el(`h${Math.min(6, marks.length + 2)}`, { class: "answer-heading" }, ...inline(rest.trim().replace(/(?:^|[ \t])#{1,6}$/, "")));
}

function listNode(lines, depth) {
  const first = ITEM.exec(lines[0]);
  const items = [];
  for (let at = 0; at < lines.length;) {
    const end = endOfItem(lines, at);
    const item = ITEM.exec(lines[at]);
    const offset = item[1].length + item[2].length + item[3].length;
    const rest = lines.slice(at + 1, end).map((line) => line.slice(Math.min(offset, indentOf(line))));
    items.push(el("li", {}, ...nodesOf([item[4], ...rest], depth + 1)));
    at = end;
    while (at < lines.length && isBlank(lines[at])) at += 1;
  }
  if (!isOrdered(first)) return el("ul", {}, ...items);
  const start = Number.parseInt(first[2], 10);
  const node = el("ol", { start }, ...items);
  node.style.setProperty("padding-left", `${String(start + items.length).length + 2}ch`);  // room for the numbers
  return node;
}

function tableNode(lines) {
  const head = cellsOf(lines[0]);
  const sides = cellsOf(lines[1]).map((dashes) => (dashes.endsWith(":") ? (dashes.startsWith(":") ? "middle" : "number") : ""));
  const row = (tag, cells) => el("tr", {}, ...head.map((_, at) => el(tag, { class: sides[at], scope: tag === "th" ? "col" : undefined }, ...inline(cells[at] ?? ""))));
  return el("div", { class: "scroll", tabIndex: 0, role: "region", "aria-label": "Table" }, el("table", {},
    el("thead", {}, row("th", head)), el("tbody", {}, ...lines.slice(2).map((line) => row("td", cellsOf(line))))));
}

function nodeOf({ kind, lines }, depth) {
  if (depth > MOST_DEEP) return el("p", { text: lines.join("\n") });
  if (kind === "code") return codeNode(lines);
  if (kind === "heading") return headingNode(lines);
  if (kind === "rule") return el("hr");
  if (kind === "quote") return el("blockquote", {}, ...nodesOf(lines.map((line) => line.replace(QUOTE, "")), depth + 1));
  if (kind === "list") return listNode(lines, depth);
  if (kind === "table") return tableNode(lines);
  return el("p", {}, ...inline(lines.join("\n")));
}

function nodesOf(lines, depth) {
  return blocksOf(lines).map((block) => nodeOf(block, depth));
}

// Shows texts in `parent`. Returns update(text, plain); plain: as it is, without Markdown.
export function makeMarkdown(parent) {
  let shown = [];  // [{source, node}]

  function showBlocks(text) {
    const next = blocksOf(text.replace(/\r\n?/g, "\n").split("\n")).map((block, at) => {
      const source = `${block.kind}\n${block.lines.join("\n")}`;
      return shown[at]?.source === source ? shown[at] : { source, node: nodeOf(block, 0) };
    });
    const changed = next.findIndex((block, at) => block !== shown[at]);
    const from = changed < 0 ? next.length : changed;
    if (shown.length === 0) parent.replaceChildren();
    for (const { node } of shown.slice(from)) node.remove();
    parent.append(...next.slice(from).map(({ node }) => node));
    shown = next;
  }
  return (text, plain) => {
    parent.classList.toggle("plain", plain);
    if (!plain) return showBlocks(text);
    shown = [];
    if (parent.childElementCount > 0 || parent.textContent !== text) parent.textContent = text;
    return undefined;
  };
}
