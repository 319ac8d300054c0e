// Finds boxes in an answer and draws them over the picture.
import { labelBoxes } from "./box_labels.js";
import { el, svg, visible } from "./dom.js";

const MOST = 200;

function fromJson(text) {
  const value = JSON.parse(text);
  if (!Array.isArray(value)) return [];
  return value.filter((item) => Array.isArray(item?.box) && item.box.length === 4 && item.box.every(Number.isFinite))
    .map((item) => ({ label: item.label ?? "", corners: item.box, share: item.label_confidence ?? item.confidence }));
}

const NUMBER = "(-?\\d+(?:\\.\\d+)?)";
const LIST = new RegExp(`\\[\\s*${NUMBER}\\s*,\\s*${NUMBER}\\s*,\\s*${NUMBER}\\s*,\\s*${NUMBER}\\s*\\]`, "g");
const PAIRS = new RegExp(`(?:<ref>([^<]{0,200})</ref>)?<box>\\(${NUMBER},${NUMBER}\\),\\(${NUMBER},${NUMBER}\\)</box>`, "g");

// Returns [{label, corners: [x0, y0, x1, y1], share: its probability, if known}] as written in the answer, and whether they are in
// pixels.
export function boxesIn(text, inPixels) {
  if (text.length > 100000) return { boxes: [], inPixels };
  if (inPixels) {
    try {
      return { boxes: fromJson(text).slice(0, MOST), inPixels };
    } catch {
      return { boxes: [], inPixels };  // incomplete so far
    }
  }
  const boxes = [];
  for (const found of text.matchAll(PAIRS)) boxes.push({ label: found[1] ?? "", corners: found.slice(2, 6).map(Number) });
  if (boxes.length === 0) for (const found of text.matchAll(LIST)) boxes.push({ label: "", corners: found.slice(1, 5).map(Number) });
  return { boxes: boxes.filter(({ corners: [a, b, c, d] }) => c > a && d > b).slice(0, MOST), inPixels };
}

// Guesses the coordinate range of the picture from the largest number, since the answer does not
// state it.
function unitsOf(boxes, inPixels, width, height) {
  if (inPixels) return { x: width, y: height, text: "pixels" };
  const most = Math.max(...boxes.flatMap((box) => box.corners));
  const scale = most <= 1 ? 1 : most <= 100 ? 100 : most <= 1000 ? 1000 : null;
  return scale === null ? { x: width, y: height, text: "pixels" } : { x: scale, y: scale, text: scale === 1 ? "shares of the sides" : `${scale} to a side` };
}

function textOf(label, share) {
  const name = visible(String(label)).slice(0, 60);
  return share === undefined ? name : `${name} ${(100 * share).toFixed(0)} %`;
}

// The picture with the boxes drawn over it; they appear when the picture has loaded.
export function drawBoxes(url, { boxes, inPixels }) {
  const image = el("img", { src: url, alt: `The picture with ${boxes.length} ${boxes.length === 1 ? "box" : "boxes"}` });
  const caption = el("figcaption", { class: "hint" });
  const frame = el("div", { class: "boxed" }, image);
  image.addEventListener("load", () => {
    const { naturalWidth: width, naturalHeight: height } = image;
    frame.classList.toggle("small", width < 256);
    const units = unitsOf(boxes, inPixels, width, height);
    const over = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true", preserveAspectRatio: "none" });
    const kinds = [...new Set(boxes.map((box) => box.label))];
    const hue = (label, at) => `hue-${(kinds.length > 1 ? kinds.indexOf(label) : at) % 6}`;
    const shares = boxes.map(({ corners: [x0, y0, x1, y1] }) => [x0 / units.x, y0 / units.y, x1 / units.x, y1 / units.y]);
    boxes.forEach(({ label }, at) => {
      const [x0, y0, x1, y1] = shares[at];
      over.append(svg("rect", { x: x0 * width, y: y0 * height, width: (x1 - x0) * width, height: (y1 - y0) * height, class: `box ${hue(label, at)}` }));
    });
    frame.append(over);
    if (boxes.length > 1 || kinds[0])
      labelBoxes(frame, boxes.map(({ label, share }, at) => ({ text: textOf(label || at + 1, share), hue: hue(label, at), corners: shares[at] })));
    caption.textContent = `${boxes.length} ${boxes.length === 1 ? "box" : "boxes"}, in ${units.text}`;
  });
  return el("figure", { class: "boxes" }, frame, caption);
}

// A head's labels, likeliest first.
export function drawBars(labels) {
  return el("ul", { class: "bars", "aria-label": "Labels by probability" }, ...labels.map(({ label, share }) => {
    const meter = el("meter", { min: 0, max: 1, value: share, "aria-hidden": "true" });
    return el("li", {}, el("bdi", { class: "bar-name", text: visible(label).slice(0, 200) }), meter,
      el("span", { class: "bar-share", text: `${(100 * share).toFixed(1)} %` }));
  }));
}
