// Copies text, also where the browser gives pages no clipboard: on plain http from another machine.
import { button } from "./dom.js";

function byCommand(text) {
  const focused = document.activeElement;
  const field = document.createElement("textarea");
  field.className = "seen-by-readers";
  field.value = text;
  (focused?.closest("dialog") ?? document.body).append(field);  // a dialog lets nothing outside have the focus
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}

// True if the text is on the clipboard.
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return byCommand(text);
  }
}

const SAID_FOR = 2000;  // milliseconds

// A button that copies what text() returns, and says for a moment whether it did.
export function copyButton(text, label) {
  const node = button("Copy", async () => {
    node.textContent = await copyText(text()) ? "Copied" : "Not copied";
    setTimeout(() => { node.textContent = "Copy"; }, SAID_FOR);
  }, { class: "quiet small", "aria-label": label });
  return node;
}
