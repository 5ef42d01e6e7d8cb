// Rows and columns of a CSV file. Only the visible rows are in the page, so that a hundred thousand scroll; the file is
// read in slices, so that the page answers meanwhile.

import Papa from "papaparse";

import { bytesOf } from "./file";
import { WORDS } from "./words";

const LARGEST = 200_000_000;
/** Bytes that are read before the page gets its turn. */
const SLICE = 256 << 10;
const ROW_HEIGHT = 26;
/** Rows above and below the visible ones. */
const SPARE = 8;
/** Browsers limit the height of an element to about 33 million pixels. */
const MOST_ROWS = 1_000_000;
/** Rows of each slice that decide how wide the columns are. */
const SAMPLE = 200;
/** The narrowest and the widest column, in characters. */
const NARROWEST = 6;
const WIDEST = 40;

type Row = string[];

export async function mountTable(element: HTMLElement, path: string, label: string): Promise<() => void> {
  const file = await bytesOf(path, LARGEST, "200 MB");
  const table = new Table(label);
  element.append(table.frame);
  const stop = read(file, path, (rows) => table.add(rows), (failure) => table.end(failure));
  return () => {
    stop();
    table.dispose();
  };
}

function read(file: Blob, path: string, add: (rows: Row[]) => void, end: (failure?: string) => void): () => void {
  let stopped = false;
  Papa.parse<Row>(new File([file], path), {
    chunkSize: SLICE,
    delimiter: path.toLowerCase().endsWith(".tsv") ? "\t" : "",
    skipEmptyLines: "greedy",
    chunk: ({ data }, parser) => {
      if (stopped) return parser.abort();
      add(data);
    },
    complete: () => stopped || end(),
    error: (error) => end(error.message),
  });
  return () => {
    stopped = true;
  };
}

class Table {
  readonly frame = document.createElement("div");
  private readonly scroller = document.createElement("div");
  private readonly head = document.createElement("div");
  private readonly space = document.createElement("div");
  private readonly slab = document.createElement("div");
  private readonly status = document.createElement("div");
  private names: Row = [];
  private rows: Row[] = [];
  /** The longest texts that were seen, in characters. */
  private widths: number[] = [];
  private uneven = 0;
  private first = -1;
  private sorted: { column: number; down: boolean } | undefined;
  private done = false;
  private readonly sizes = new ResizeObserver(() => this.draw(true));

  constructor(label: string) {
    this.frame.className = "csv";
    this.scroller.className = "csv-rows";
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "table");
    this.scroller.setAttribute("aria-label", label);
    this.head.className = "csv-head";
    this.head.setAttribute("role", "row");
    this.space.className = "csv-space";
    this.space.setAttribute("role", "rowgroup");
    this.slab.className = "csv-slab";
    this.slab.setAttribute("role", "presentation");
    this.status.className = "csv-status";
    this.status.setAttribute("role", "status");
    this.space.append(this.slab);
    this.scroller.append(this.head, this.space);
    this.frame.append(this.scroller, this.status);
    this.scroller.addEventListener("scroll", () => this.draw(false), { passive: true });
    this.sizes.observe(this.scroller);
  }

  add(rows: Row[]): void {
    if (this.names.length === 0 && rows.length > 0) {
      this.names = rows[0] ?? [];
      rows = rows.slice(1);
      this.widths = this.names.map((name) => name.length + 2);
      this.nameColumns();
    }
    this.widen(rows);
    for (const row of rows) {
      if (this.rows.length >= MOST_ROWS) break;
      if (row.length !== this.names.length) this.uneven += 1;
      this.rows.push(row);
    }
    this.status.textContent = WORDS.reading(this.rows.length);
    this.space.style.height = `${this.rows.length * ROW_HEIGHT}px`;
    this.draw(true);
  }

  end(failure?: string): void {
    this.done = true;
    if (failure !== undefined || this.names.length === 0) {
      this.status.textContent = failure ?? WORDS.empty;
      return;
    }
    const parts = [WORDS.table(this.rows.length, this.names.length)];
    if (this.uneven > 0) parts.push(WORDS.uneven(this.uneven));
    if (this.rows.length >= MOST_ROWS) parts.push(WORDS.tooLarge(`${MOST_ROWS.toLocaleString()} rows`));
    this.status.textContent = parts.join(" · ");
    this.scroller.setAttribute("aria-rowcount", String(this.rows.length + 1));
  }

  dispose(): void {
    this.sizes.disconnect();
    this.frame.remove();
  }

  /** Widens the columns for some rows of a slice, evenly chosen. */
  private widen(rows: Row[]): void {
    for (let at = rows.length - 1; at >= 0; at -= Math.ceil(rows.length / SAMPLE)) {
      this.widths = this.widths.map((width, column) => Math.max(width, rows[at]?.[column]?.length ?? 0));
    }
    const columns = this.widths.map((width) => `${Math.min(Math.max(width, NARROWEST), WIDEST) + 4}ch`);
    this.frame.style.setProperty("--columns", columns.join(" "));
  }

  /** The headings, which sort. */
  private nameColumns(): void {
    this.head.replaceChildren(
      ...this.names.map((name, column) => {
        const cell = document.createElement("div");
        cell.setAttribute("role", "columnheader");
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = name || WORDS.column(column);
        button.addEventListener("click", () => this.sort(column));
        cell.append(button);
        return cell;
      }),
    );
  }

  /** Sorts by a column: numbers by value, the rest by the person's language; empty cells come last. */
  private sort(column: number): void {
    if (!this.done) return;
    const down = this.sorted?.column === column && !this.sorted.down;
    this.sorted = { column, down };
    const collator = new Intl.Collator(undefined, { numeric: true });
    const number = (text: string) => (text.trim() === "" ? Number.NaN : Number(text.replaceAll(",", "")));
    const keys = new Map(this.rows.map((row) => [row, { text: row[column] ?? "", value: number(row[column] ?? "") }]));
    const sign = down ? -1 : 1;
    this.rows.sort((one, two) => {
      const [a, b] = [keys.get(one), keys.get(two)];
      if (!a || !b) return 0;
      if ((a.text === "") !== (b.text === "")) return a.text === "" ? 1 : -1;
      if (!Number.isNaN(a.value) && !Number.isNaN(b.value)) return sign * (a.value - b.value);
      return sign * collator.compare(a.text, b.text);
    });
    for (const [index, cell] of [...this.head.children].entries()) {
      if (index === column) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.draw(true);
  }

  private draw(always: boolean): void {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - SPARE);
    // A few rows of scrolling stay within those that are drawn already.
    if (!always && Math.abs(first - this.first) < SPARE / 2) return;
    this.first = first;
    const count = Math.ceil(this.scroller.clientHeight / ROW_HEIGHT) + 2 * SPARE;
    const rows = this.rows.slice(first, first + count);
    this.slab.style.transform = `translateY(${first * ROW_HEIGHT}px)`;
    this.slab.replaceChildren(...rows.map((row, index) => this.row(row, first + index)));
  }

  private row(row: Row, index: number): HTMLElement {
    const line = document.createElement("div");
    line.className = "csv-row";
    line.setAttribute("role", "row");
    line.setAttribute("aria-rowindex", String(index + 2));
    for (let column = 0; column < Math.max(row.length, this.names.length); column += 1) {
      const text = row[column] ?? "";
      const cell = document.createElement("div");
      cell.setAttribute("role", "cell");
      cell.textContent = text;
      cell.title = text;
      if (text !== "" && !Number.isNaN(Number(text.replaceAll(",", "")))) cell.className = "number";
      line.append(cell);
    }
    return line;
  }
}

