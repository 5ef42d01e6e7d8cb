// The viewer: one file of the workspace, shown by its kind. A kind that this file does not name is shown as a sentence.

import { addressOf, bytesOf, NotShown, textOf } from "./viewer/file";
import { highlight } from "./viewer/highlight";
import { mountImage } from "./viewer/image";
import { renderMarkdown } from "./viewer/markdown";
import { mountNotebook } from "./viewer/notebook";
import { mountTable } from "./viewer/table";
import { mountTree } from "./viewer/tree";
import { WORDS } from "./viewer/words";

export type Kind = "markdown" | "code" | "image" | "audio" | "video" | "pdf" | "table" | "json" | "notebook";

export interface Options {
  /** The file in the workspace. */
  path: string;
  kind: Kind;
  /** The accessible name. */
  label: string;
  /** The text to render, if the caller has it; else the file is read. */
  text?: string;
}

export interface Handle {
  /** Called with the path of a file that a link leads to. */
  onOpen(callback: (path: string) => void): void;
  focus(): void;
  dispose(): void;
}

const LARGEST_TEXT = 5_000_000;
const LARGEST_PDF = 200_000_000;

export async function mount(element: HTMLElement, options: Options): Promise<Handle> {
  let open: (path: string) => void = () => {};
  let dispose = () => {};
  try {
    dispose = await show(element, options, (path) => open(path));
  } catch (error) {
    if (!(error instanceof NotShown)) throw error;
    const why = document.createElement("p");
    why.className = "quiet pad";
    why.setAttribute("role", "status");
    why.textContent = error.message;
    element.append(why);
    dispose = () => why.remove();
  }
  return {
    onOpen: (callback) => {
      open = callback;
    },
    focus: () => element.querySelector<HTMLElement>("[tabindex], video, audio")?.focus(),
    dispose,
  };
}

async function show(element: HTMLElement, options: Options, open: (path: string) => void): Promise<() => void> {
  const { path, kind, label } = options;
  switch (kind) {
    case "image":
      return mountImage(element, path, label);
    case "table":
      return mountTable(element, path, label);
    case "json":
      return mountTree(element, path, label);
    case "notebook":
      return mountNotebook(element, path, open);
    case "audio":
    case "video":
      return media(element, kind, path, label);
    case "pdf": {
      const bytes = new Uint8Array(await (await bytesOf(path, LARGEST_PDF, "200 MB")).arrayBuffer());
      const pages = document.createElement("div");
      pages.className = "part part-pdf scroll";
      pages.tabIndex = 0;
      element.append(pages);
      const { mount: mountPdf } = await import("./pdf");
      const pdf = await mountPdf(pages, { bytes, label }).catch(() => {
        pages.remove();
        throw new NotShown(WORDS.notShown);
      });
      return () => {
        pdf.dispose();
        pages.remove();
      };
    }
    case "markdown":
    case "code": {
      const text = options.text ?? (await textOf(path, LARGEST_TEXT, "5 MB"));
      const page = document.createElement("div");
      page.className = kind === "markdown" ? "read" : "code";
      if (options.text === undefined) {
        page.classList.add("scroll");
        page.tabIndex = 0;
      }
      element.append(page);
      if (kind === "markdown") await renderMarkdown(page, text, path, open);
      else {
        const block = document.createElement("pre");
        page.append(block);
        await highlight(block, text, path.slice(path.lastIndexOf(".") + 1));
      }
      return () => page.remove();
    }
  }
}

/** Sound and film are streamed: the browser asks for the ranges that it plays. */
function media(element: HTMLElement, kind: "audio" | "video", path: string, label: string): () => void {
  const player = document.createElement(kind);
  player.className = "player";
  player.controls = true;
  player.preload = "metadata";
  player.setAttribute("aria-label", label);
  player.addEventListener("error", () => {
    const why = document.createElement("p");
    why.className = "quiet pad";
    why.textContent = WORDS.notShown;
    player.replaceWith(why);
  });
  player.src = addressOf(path);
  element.append(player);
  return () => {
    player.pause();
    player.removeAttribute("src");
    element.replaceChildren();
  };
}
