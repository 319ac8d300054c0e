// Places the labels of boxes at their boxes, where they hide each other least.
import { el } from "./dom.js";

function overlap(a, b) {
  const width = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
  const height = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
  return width > 0 && height > 0 ? width * height : 0;
}

// Places at the corners of a box, the best one first: above it, then inside, then below.
function places([x0, y0, x1, y1], { width, height }) {
  const rows = [y0 - height, y0, y1, y1 - height];
  return rows.flatMap((y) => [x0, x1 - width].map((x) => ({ x, y, width, height })));
}

function within(place, area) {
  const x = Math.max(0, Math.min(place.x, area.width - place.width));
  const y = Math.max(0, Math.min(place.y, area.height - place.height));
  return { ...place, x, y, moved: Math.abs(x - place.x) + Math.abs(y - place.y) };
}

// boxes: corners in pixels of the area; sizes: of their labels. Returns the upper left corner of each
// label. Each takes the first place that is free, or else the one that hides the least.
export function placesOf(boxes, sizes, area) {
  const taken = [];
  boxes.forEach((box, at) => {
    let best = null;
    for (const place of places(box, sizes[at]).map((wanted) => within(wanted, area))) {
      const cost = taken.reduce((sum, other) => sum + overlap(place, other), 0) + place.moved;
      if (best === null || cost < best.cost) best = { ...place, cost };
      if (cost === 0) break;
    }
    taken.push(best);
  });
  return taken;
}

// labels: [{text, hue: class, corners: in shares of the frame}]. They move when the frame's size changes.
export function labelBoxes(frame, labels) {
  const nodes = labels.map(({ text, hue }) => el("span", { class: `box-label ${hue}`, dir: "auto", text }));
  frame.append(...nodes);
  function place() {
    const area = { width: frame.clientWidth, height: frame.clientHeight };
    if (area.width === 0) return;
    const corners = labels.map(({ corners: [x0, y0, x1, y1] }) => [x0 * area.width, y0 * area.height, x1 * area.width, y1 * area.height]);
    placesOf(corners, nodes.map((node) => ({ width: node.offsetWidth, height: node.offsetHeight })), area).forEach(({ x, y }, at) => {
      nodes[at].style.setProperty("left", `${x}px`);
      nodes[at].style.setProperty("top", `${y}px`);
    });
  }
  new ResizeObserver(place).observe(frame);
}
