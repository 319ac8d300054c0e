// Stores conversations in the browser's IndexedDB.

const NAME = "valora";
const STORE = "conversations";
const MOST = 200;

let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const asked = indexedDB.open(NAME, 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore(STORE, { keyPath: "id" });
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
  return opened;
}

async function run(mode, work) {
  const database = await open();
  return new Promise((resolve, reject) => {
    const transaction = database.transaction(STORE, mode);
    const asked = work(transaction.objectStore(STORE));
    transaction.oncomplete = () => resolve(asked?.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

// {id, title, changed, models, turns: [{text, media, answers}]}
export function fresh() {
  const id = `${Date.now().toString(36)}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(36)}`;
  return { id, title: "", changed: Date.now(), models: [], turns: [] };
}

export async function all() {
  const list = await run("readonly", (store) => store.getAll());
  return list.sort((a, b) => b.changed - a.changed);
}

export async function save(conversation) {
  conversation.changed = Date.now();
  await run("readwrite", (store) => store.put(structuredClone(conversation)));
  for (const old of (await all()).slice(MOST)) await remove(old.id);
}

export function remove(id) {
  return run("readwrite", (store) => store.delete(id));
}

export function exported(conversation) {
  return new Blob([JSON.stringify(conversation, null, 1)], { type: "application/json" });
}
