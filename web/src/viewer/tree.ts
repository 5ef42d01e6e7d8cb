// JSON as a tree: a branch is filled when it is opened, and a long one in portions.

import { NotShown, textOf } from "./file";
import { WORDS } from "./words";

const LARGEST = 50_000_000;
/** Entries of a branch that are shown at once. */
const PORTION = 200;

export async function mountTree(element: HTMLElement, path: string, label: string): Promise<() => void> {
  const text = await textOf(path, LARGEST, "50 MB");
  const tree = document.createElement("div");
  tree.className = "json scroll";
  tree.tabIndex = 0;
  tree.setAttribute("aria-label", label);
  tree.setAttribute("role", "group");
  for (const [index, value] of documents(text, path).entries()) tree.append(node(index === 0 ? "" : String(index), value, true));
  element.append(tree);
  return () => tree.remove();
}

/** One value; a file with one value per line has several. */
function documents(text: string, path: string): unknown[] {
  if (text.trim() === "") throw new NotShown(WORDS.empty);
  try {
    if (!/\.(jsonl|ndjson)$/i.test(path)) return [JSON.parse(text)];
    return [text.split("\n").filter((line) => line.trim() !== "").map((line) => JSON.parse(line) as unknown)];
  } catch (error) {
    throw new NotShown(WORDS.notJson(error instanceof Error ? error.message : String(error)));
  }
}

function entriesOf(value: object): [string, unknown][] {
  return Array.isArray(value) ? value.map((item, index) => [String(index), item]) : Object.entries(value);
}

function node(key: string, value: unknown, open: boolean): HTMLElement {
  if (typeof value !== "object" || value === null) {
    const line = document.createElement("div");
    line.className = "json-leaf";
    line.append(...name(key), leaf(value));
    return line;
  }
  const entries = entriesOf(value);
  const branch = document.createElement("details");
  const summary = document.createElement("summary");
  const count = document.createElement("span");
  count.className = "json-count";
  count.textContent = Array.isArray(value) ? `[ ${WORDS.items(entries.length)} ]` : `{ ${WORDS.items(entries.length)} }`;
  summary.append(...name(key), count);
  branch.append(summary);
  branch.addEventListener("toggle", () => {
    if (branch.open && branch.children.length === 1) fill(branch, entries, 0);
  });
  if (open) {
    fill(branch, entries, 0);
    branch.open = true;
  }
  return branch;
}

function fill(branch: HTMLElement, entries: [string, unknown][], from: number): void {
  const end = Math.min(from + PORTION, entries.length);
  branch.append(...entries.slice(from, end).map(([key, value]) => node(key, value, false)));
  if (end === entries.length) return;
  const more = document.createElement("button");
  more.type = "button";
  more.className = "btn small";
  more.textContent = WORDS.more(entries.length - end);
  more.addEventListener("click", () => {
    more.remove();
    fill(branch, entries, end);
  });
  branch.append(more);
}

function name(key: string): Node[] {
  if (key === "") return [];
  const span = document.createElement("span");
  span.className = "json-key";
  span.textContent = key;
  return [span, document.createTextNode(": ")];
}

function leaf(value: unknown): HTMLElement {
  const span = document.createElement("span");
  span.className = typeof value === "string" ? "tok-string" : typeof value === "number" ? "tok-number" : "tok-bool";
  span.textContent = JSON.stringify(value);
  return span;
}
