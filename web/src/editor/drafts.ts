// Drafts: unsaved text, stored in this browser until it is saved. A draft survives a reload, a closed window or tab, and
// a crash.
//
// While a text is open, its draft is in the session storage of this tab. When the window or the page is closed, it is
// also written to local storage, for every tab, under the same key. A draft that does not fit stays in memory until the
// page is closed.

const LARGEST = 1 << 20;
const PAUSE = 500;

const inMemory = new Map<string, string>();
const open = new Set<Draft>();

export function find(key: string): string | undefined {
  const kept = read(() => sessionStorage.getItem(key)) ?? read(() => localStorage.getItem(key));
  return inMemory.get(key) ?? (kept || undefined);
}

export function forget(key: string): void {
  inMemory.delete(key);
  read(() => sessionStorage.removeItem(key));
  read(() => localStorage.removeItem(key));
}

/** The draft of one text. `head` is a JSON object that is kept with it. */
export class Draft {
  #timer = 0;
  readonly #text: () => string;
  readonly #key: string;
  head: string;

  constructor(key: string, head: string, text: () => string) {
    this.#key = key;
    this.head = head;
    this.#text = text;
    open.add(this);
  }

  /** Stores the draft once the person pauses typing. */
  changed(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#write([sessionStorage]), PAUSE);
  }

  /** Deletes the draft: the text is saved. */
  drop(): void {
    this.#end();
    forget(this.#key);
  }

  /** Stores the draft for every tab: the window or the page is being closed. */
  leave(): void {
    this.#end();
    this.#write([sessionStorage, localStorage]);
  }

  #end(): void {
    clearTimeout(this.#timer);
    open.delete(this);
  }

  #write(storages: Storage[]): void {
    const json = JSON.stringify({ ...JSON.parse(this.head), text: this.#text() });
    const kept = json.length <= LARGEST && storages.every((storage) => write(storage, this.#key, json));
    if (kept) inMemory.delete(this.#key);
    else inMemory.set(this.#key, json);
  }
}

function leaveAll(): void {
  for (const draft of [...open]) {
    draft.leave();
    // The page may come back from the browser's cache.
    open.add(draft);
  }
}

addEventListener("pagehide", leaveAll);
// Sent by `crash.ts` when the desktop has crashed; the editors still have their text.
addEventListener("choir-crash", leaveAll);
// Sent by the desktop at sign-out, after which no draft may be left.
addEventListener("choir-sign-out", () => {
  open.clear();
  inMemory.clear();
});

function read<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    // Without access to storage, drafts are kept in memory only.
    return undefined;
  }
}

function write(storage: Storage, key: string, text: string): boolean {
  return read(() => (storage.setItem(key, text), true)) ?? false;
}
