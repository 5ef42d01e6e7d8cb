// The terminal module: xterm.js behind a handle.
//
// Output arrives as bytes, and xterm.js decodes it, so a character may be split between two chunks. Every chunk is
// acknowledged when it was parsed, so that the sender can limit how far it is ahead.

import { FitAddon } from "@xterm/addon-fit";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { Terminal, type ITheme } from "@xterm/xterm";

import { fontReady, nonce, token } from "./page";
import { withNonce } from "./strict-style";

const FONT_SIZE = 13;
const SCROLLBACK = 5000;

export interface Options {
  /** The accessible name. */
  label?: string;
  fontSize?: number;
  /** Whether a key is a shortcut of the desktop, which the terminal ignores. */
  reserved?: (event: KeyboardEvent) => boolean;
}

export interface Handle {
  /** Shows output, then calls `done` with the number of bytes. */
  write(bytes: Uint8Array, done?: (shown: number) => void): void;
  /**
   * The same for output that was shown before, such as after a reload. Such output may contain queries to the terminal.
   * They were answered the first time; an answer now would be typed into another program.
   */
  replay(bytes: Uint8Array, done?: (shown: number) => void): void;
  /** Input: typed or pasted text, and answers of the terminal to queries. */
  onData(callback: (text: string) => void): void;
  onResize(callback: (columns: number, rows: number) => void): void;
  onTitle(callback: (title: string) => void): void;
  columns(): number;
  rows(): number;
  /** Fits rows and columns to the element; also done whenever its size changes. */
  fit(): void;
  /** Reads the tokens of the theme again. */
  setTheme(): void;
  focus(): void;
  clear(): void;
  /** Clears the screen, for output that starts again from the beginning. */
  reset(): void;
  /** The screen and its scrollback as text. */
  text(): string;
  dispose(): void;
}

export async function mount(element: HTMLElement, options: Options = {}): Promise<Handle> {
  const fontFamily = token(element, "--font-mono", "monospace");
  const fontSize = options.fontSize ?? FONT_SIZE;
  await Promise.all([fontReady(`${fontSize}px ${fontFamily}`), fontReady(`bold ${fontSize}px ${fontFamily}`)]);

  const terminal = new Terminal({
    fontFamily,
    fontSize,
    lineHeight: 1.25,
    scrollback: SCROLLBACK,
    cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
    macOptionIsMeta: true,
    minimumContrastRatio: 4.5,
    theme: theme(element),
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(new WebLinksAddon(openLink));
  terminal.attachCustomKeyEventHandler((event) => handleKey(terminal, event, options));
  withNonce(nonce(), () => terminal.open(element));
  if (options.label && terminal.textarea) terminal.textarea.setAttribute("aria-label", options.label);

  const refit = () => {
    if (element.clientWidth > 0 && element.clientHeight > 0) fit.fit();
  };
  const sizes = new ResizeObserver(oncePerFrame(refit));
  sizes.observe(element);
  refit();

  // Answers are produced while a chunk is parsed, and chunks are parsed in order.
  let replaying = false;

  return {
    replay: (bytes, done) => {
      terminal.write("", () => (replaying = true));
      terminal.write(bytes, () => {
        replaying = false;
        done?.(bytes.length);
      });
    },
    write: (bytes, done) => terminal.write(bytes, () => done?.(bytes.length)),
    onData: (callback) => void terminal.onData((data) => void (replaying || callback(data))),
    onResize: (callback) => void terminal.onResize(({ cols, rows }) => callback(cols, rows)),
    onTitle: (callback) => void terminal.onTitleChange(callback),
    columns: () => terminal.cols,
    rows: () => terminal.rows,
    fit: refit,
    setTheme: () => void (terminal.options.theme = theme(element)),
    focus: () => terminal.focus(),
    clear: () => terminal.clear(),
    reset: () => terminal.reset(),
    text: () => textOf(terminal),
    dispose: () => {
      sizes.disconnect();
      terminal.dispose();
    },
  };
}

/** True if the terminal handles the key. */
function handleKey(terminal: Terminal, event: KeyboardEvent, options: Options): boolean {
  const command = event.ctrlKey || event.metaKey;
  if (command && !event.shiftKey && !event.altKey && event.code === "KeyK") return false;
  if (options.reserved?.(event)) return false;
  if (event.ctrlKey && event.shiftKey && event.code === "KeyC" && terminal.hasSelection()) {
    if (event.type === "keydown") void navigator.clipboard.writeText(terminal.getSelection());
    event.preventDefault();
    return false;
  }
  // The browser pastes into the terminal's text area itself.
  return !(event.ctrlKey && event.shiftKey && event.code === "KeyV");
}

function openLink(event: MouseEvent, address: string): void {
  if (event.ctrlKey || event.metaKey) window.open(address, "_blank", "noopener,noreferrer");
}

function oncePerFrame(act: () => void): () => void {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      act();
    });
  };
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;

function theme(element: Element): ITheme {
  const read = (name: string, otherwise: string) => token(element, `--term-${name}`, otherwise);
  const theme: ITheme = {
    background: read("bg", "#0d1017"),
    foreground: read("fg", "#e6e8ee"),
    cursor: read("cursor", "#e6e8ee"),
    cursorAccent: read("bg", "#0d1017"),
    selectionBackground: read("selection", "#3a4a7a"),
  };
  for (const name of COLOURS) {
    const bright = `bright${name[0]?.toUpperCase()}${name.slice(1)}` as keyof ITheme;
    const plain = token(element, `--term-${name}`, "");
    const light = token(element, `--term-bright-${name}`, "");
    if (plain) theme[name] = plain;
    if (light) (theme as Record<string, string>)[bright] = light;
  }
  return theme;
}

function textOf(terminal: Terminal): string {
  const buffer = terminal.buffer.active;
  const lines: string[] = [];
  for (let row = 0; row < buffer.length; row += 1) lines.push(buffer.getLine(row)?.translateToString(true) ?? "");
  return lines.join("\n").trimEnd();
}
