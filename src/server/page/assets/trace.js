// Rows of `valora bench trace --json`: the fields they vary, and the lines they form.

const AXES = {
  rate: "requests per second", skewness: "share of the most popular adapter", adapters: "adapters", cameras: "cameras",
  skills: "skills per chunk", replicas: "servers",
};
export const MODES = ["unmerged", "merged", "mixture"];
const MOST_ROWS = 5000;

export const MEASURES = [
  { title: "Average token latency", unit: "ms per token", value: (row) => 1e3 * row.token_latency_seconds },
  { title: "99th percentile of the time to the first token", unit: "seconds", value: (row) => row.ttft_seconds?.p99 },
  { title: "Throughput", unit: "requests per second", value: (row) => row.requests_per_second, highIsGood: true },
  { title: "Requests whose first token came in time", unit: "%", value: (row) => 100 * row.attainment, most: 102, highIsGood: true },
];

// Returns the rows of a file. Throws an Error that says what is wrong with it.
export function rowsOf(text) {
  let rows = null;
  try {
    rows = JSON.parse(text);
  } catch (fault) {
    throw new Error(`This file is not JSON: ${fault.message}`);
  }
  if (Array.isArray(rows)) rows = rows.map((row) => ({ skills: 0, ...row }));  // older files have no skills
  const fits = Array.isArray(rows) && rows.length > 0 && rows.length <= MOST_ROWS && rows.every((row) =>
    typeof row?.policy === "string" && MEASURES.every(({ value }) => Number.isFinite(value(row))) && Object.keys(AXES).every((field) => Number.isFinite(row[field])));
  if (!fits) throw new Error("This file is not what valora bench trace --json prints.");
  return rows;
}

function values(rows, field) {
  return [...new Set(rows.map((row) => row[field]))].sort((a, b) => a - b);
}

// True if the value of `other` determines the value of `field`.
function follows(rows, field, other) {
  return values(rows, other).every((value) => values(rows.filter((row) => row[other] === value), field).length === 1);
}

// Returns [field of the axis, field with one panel per value]; null where there is none.
function swept(rows) {
  const counts = Object.fromEntries(Object.keys(AXES).map((field) => [field, values(rows, field).length]));
  let fields = Object.keys(AXES).filter((field) => counts[field] > 1).sort((a, b) => (a === "rate") - (b === "rate") || counts[b] - counts[a]);
  if (fields.length > 1 && fields.includes("rate") && follows(rows, "rate", fields[0])) fields = fields.filter((field) => field !== "rate");
  if (fields.length > 2) throw new Error(`The points of this file differ in ${fields.join(", ")}; a chart has two of them at most.`);
  fields.sort((a, b) => counts[b] - counts[a]);
  return [fields[0] ?? null, fields[1] ?? null];
}

// A row's position in its sweep: "requests per second 3, adapters 8, "
export function pointOf(rows, row) {
  return swept(rows).filter(Boolean).map((field) => `${AXES[field]} ${row[field]}, `).join("");
}

// The panels of a file: {title, axis: text or null, lines(measure): [{name, points: [[x, y]]}], best first}.
export function panelsOf(rows) {
  const [axis, other] = swept(rows);
  return (other ? values(rows, other) : [null]).map((value) => {
    const mine = other ? rows.filter((row) => row[other] === value) : rows;
    const mean = (points) => points.reduce((sum, [, y]) => sum + y, 0) / points.length;
    return {
      title: other ? `${AXES[other]}: ${value}` : "",
      axis: axis ? AXES[axis] : null,
      lines: ({ value: measured, highIsGood }) => [...new Set(mine.map((row) => row.policy))].map((name) => ({
        name, points: mine.filter((row) => row.policy === name).map((row) => [axis ? row[axis] : 0, measured(row)]).sort((a, b) => a[0] - b[0]),
      })).sort((a, b) => (highIsGood ? -1 : 1) * (mean(a.points) - mean(b.points))),
    };
  });
}
