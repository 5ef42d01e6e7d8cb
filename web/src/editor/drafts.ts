// Unsaved text, kept in this browser until it is saved: it survives a reload, its window, its tab and a crash.
//
// While a text is open, its draft belongs to this tab. When the window or the page goes away, it is left for every tab,
// under the same key. What the browser does not keep (too large, or no room) stays in memory for as long as the page.

const LARGEST = 1 << 20;
const PAUSE = 500;

const unkept = new Map<string, string>();
const open = new Set<Draft>();

export function find(key: string): string | undefined {
  const kept = read(() => sessionStorage.getItem(key)) ?? read(() => localStorage.getItem(key));
  return unkept.get(key) ?? (kept || undefined);
}

export function forget(key: string): void {
  unkept.delete(key);
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

  /** The person typed; it is kept when they pause. */
  changed(): void {
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#write([sessionStorage]), PAUSE);
  }

  /** The text is saved. */
  drop(): void {
    this.#end();
    forget(this.#key);
  }

  /** The window goes away, or the page does. */
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
    if (kept) unkept.delete(this.#key);
    else unkept.set(this.#key, json);
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
// Sent by `boot.ts` when the desktop has crashed: the text is still here.
addEventListener("choir-crash", leaveAll);
// Sent by the desktop: whoever signs out leaves nothing behind.
addEventListener("choir-sign-out", () => {
  open.clear();
  unkept.clear();
});

function read<T>(act: () => T): T | undefined {
  try {
    return act();
  } catch {
    // A browser that refuses storage keeps nothing.
    return undefined;
  }
}

function write(storage: Storage, key: string, text: string): boolean {
  return read(() => (storage.setItem(key, text), true)) ?? false;
}
