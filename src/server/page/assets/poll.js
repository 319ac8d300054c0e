// Reads a list again and again while somebody looks at it.

// `read` shows what it reads, unless `ended()` by then; `failed` shows a fault. One read at a time, so that an older list
// never replaces a newer one. While a row has the keyboard focus, half as often: readers of screens would say it again.
export function makePoll(read, failed, every) {
  let timer = 0;
  let gone = false;
  let last = Promise.resolve();

  function later(waited = false) {
    clearTimeout(timer);
    if (gone) return;
    timer = setTimeout(() => {
      const busy = !waited && document.activeElement.closest("tbody");
      if (document.hidden || busy) later(true);
      else now();
    }, every);
  }
  async function readOnce() {
    if (gone) return;
    try {
      await read();
    } catch (fault) {
      if (!gone) failed(fault);
    }
    later();
  }
  function now() {
    clearTimeout(timer);
    last = last.then(readOnce);
    return last;
  }
  return { now, ended: () => gone, end() { gone = true; clearTimeout(timer); } };
}
