// Formats numbers for people.

export function count(value) {
  if (value < 10000) return String(Math.round(value));
  const units = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const [size, unit] = units.find(([size]) => value >= size);
  return `${(value / size).toPrecision(3)} ${unit}`;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at + 1 < units.length) {
    value /= 1024;
    at += 1;
  }
  return `${value >= 100 || at === 0 ? Math.round(value) : value.toPrecision(3)} ${units[at]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 120) return `${value.toPrecision(3)} s`;
  if (value < 7200) return `${Math.round(value / 60)} min`;
  if (value < 172800) return `${Math.round(value / 3600)} h`;
  return `${Math.round(value / 86400)} days`;
}

export function share(part, whole) {
  return whole > 0 ? `${(100 * part / whole).toFixed(part === whole ? 0 : 1)} %` : "–";
}

export function ago(time, now = Date.now() / 1000) {
  if (!time) return "never";
  const passed = Math.max(0, now - time);
  return passed < 2 ? "now" : `${duration(passed)} ago`;
}

// In whole seconds, or greater units.
export function duration(value) {
  return seconds(Math.round(value)).replace(/\.0+ /, " ");
}
