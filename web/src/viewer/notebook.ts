// A Jupyter notebook: its cells in order, with the outputs that it holds. Nothing is run. Outputs that are pages of HTML are
// shown as the plain text that comes with them. The format: nbformat 4, as nbformat.readthedocs.io describes it.

import { NotShown, textOf } from "./file";
import { highlight } from "./highlight";
import { type Open, renderMarkdown } from "./markdown";
import { WORDS } from "./words";

const LARGEST = 50_000_000;

type Lines = string | string[];
interface Output {
  output_type?: string;
  text?: Lines;
  data?: Record<string, Lines | undefined>;
  traceback?: string[];
}
interface Cell {
  cell_type?: string;
  source?: Lines;
  execution_count?: number | null;
  outputs?: Output[];
}
interface Notebook {
  nbformat?: number;
  cells?: Cell[];
  metadata?: { language_info?: { name?: string } };
}

const joined = (lines: Lines | undefined) => (Array.isArray(lines) ? lines.join("") : (lines ?? ""));

export async function mountNotebook(element: HTMLElement, path: string, open: Open): Promise<() => void> {
  const text = await textOf(path, LARGEST, "50 MB");
  let notebook: Notebook;
  try {
    notebook = JSON.parse(text) as Notebook;
  } catch {
    throw new NotShown(WORDS.notNotebook);
  }
  if (!Array.isArray(notebook.cells)) throw new NotShown(WORDS.notNotebook);
  const page = document.createElement("div");
  page.className = "notebook read scroll";
  page.tabIndex = 0;
  const language = notebook.metadata?.language_info?.name ?? "python";
  element.append(page);
  for (const cell of notebook.cells) page.append(await show(cell, language, path, open));
  return () => page.remove();
}

async function show(cell: Cell, language: string, path: string, open: Open): Promise<HTMLElement> {
  const section = document.createElement("section");
  section.className = "cell";
  if (cell.cell_type === "markdown") {
    await renderMarkdown(section, joined(cell.source), path, open);
    return section;
  }
  const code = document.createElement("code");
  const block = document.createElement("pre");
  block.tabIndex = 0;
  block.append(code);
  section.append(block);
  if (cell.cell_type === "code") {
    if (cell.execution_count != null) block.dataset["count"] = `[${cell.execution_count}]`;
    await highlight(code, joined(cell.source), language);
  } else code.textContent = joined(cell.source);
  for (const output of cell.outputs ?? []) section.append(result(output));
  return section;
}

function result(output: Output): HTMLElement {
  for (const type of ["image/png", "image/jpeg", "image/gif"]) {
    const bytes = output.data?.[type];
    if (bytes === undefined) continue;
    const image = document.createElement("img");
    image.src = `data:${type};base64,${joined(bytes).replace(/\s/g, "")}`;
    image.alt = joined(output.data?.["text/plain"]);
    return image;
  }
  const block = document.createElement("pre");
  block.className = output.output_type === "error" ? "output bad" : "output";
  block.tabIndex = 0;
  const text = output.traceback?.join("\n") ?? (joined(output.text) || joined(output.data?.["text/plain"]));
  // Colours of a terminal.
  block.textContent = text.replace(/\u001b\[[0-9;]*m/g, "");
  return block;
}
