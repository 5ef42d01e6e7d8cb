// The PDF module: pages are canvases, drawn when they become visible and released when they are not.

import { GlobalWorkerOptions, getDocument, type PDFDocumentProxy, type RenderTask } from "pdfjs-dist";
import worker from "pdfjs-dist/build/pdf.worker.min.mjs?url";

GlobalWorkerOptions.workerSrc = worker;

/** The most pixels of a canvas, to limit memory. */
const LARGEST_CANVAS = 16_000_000;
/** Pixels between a page and the edges, both sides together. */
const MARGIN = 24;

export interface Options {
  /** The bytes of the file; the module takes ownership. */
  bytes: Uint8Array;
  /** The accessible name. */
  label?: string;
}

export interface Handle {
  pages(): number;
  /** 1 fits a page to the width of the element. */
  setZoom(zoom: number): void;
  dispose(): void;
}

export async function mount(element: HTMLElement, options: Options): Promise<Handle> {
  const task = getDocument({ data: options.bytes, isEvalSupported: false, enableXfa: false });
  const file = await task.promise;
  const list = document.createElement("div");
  list.className = "pdf-pages";
  list.setAttribute("role", "document");
  list.setAttribute("aria-label", options.label ?? "PDF");
  const pages = await placeholders(file, list);
  element.append(list);

  let zoom = 1;
  const width = () => Math.max(list.clientWidth - MARGIN, 1) * zoom;
  const visible = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const page = pages.find(({ frame }) => frame === entry.target);
        if (entry.isIntersecting) void page?.draw(width());
        else page?.clear();
      }
    },
    { root: element, rootMargin: "100% 0px" },
  );
  const layOut = () => {
    for (const page of pages) page.size(width());
    visible.disconnect();
    for (const page of pages) visible.observe(page.frame);
  };
  const sizes = new ResizeObserver(layOut);
  sizes.observe(element);
  layOut();

  return {
    pages: () => file.numPages,
    setZoom: (next) => {
      zoom = Math.min(Math.max(next, 0.25), 4);
      layOut();
    },
    dispose: () => {
      sizes.disconnect();
      visible.disconnect();
      for (const page of pages) page.clear();
      list.remove();
      void task.destroy();
    },
  };
}

/** One empty frame per page, in the size of the first; each gets its own size when it is drawn. */
async function placeholders(file: PDFDocumentProxy, list: HTMLElement): Promise<Page[]> {
  const first = (await file.getPage(1)).getViewport({ scale: 1 });
  return Array.from({ length: file.numPages }, (_, index) => {
    const page = new Page(file, index + 1, first.height / first.width);
    list.append(page.frame);
    return page;
  });
}

class Page {
  readonly frame = document.createElement("div");
  private canvas: HTMLCanvasElement | undefined;
  private drawing: RenderTask | undefined;
  private drawn = 0;

  constructor(
    private readonly file: PDFDocumentProxy,
    private readonly number: number,
    private shape: number,
  ) {
    this.frame.className = "pdf-page";
    this.frame.setAttribute("aria-label", `Page ${number}`);
  }

  size(width: number): void {
    this.frame.style.width = `${Math.floor(width)}px`;
    this.frame.style.height = `${Math.floor(width * this.shape)}px`;
  }

  async draw(width: number): Promise<void> {
    if (this.drawn === width) return;
    this.clear();
    this.drawn = width;
    const page = await this.file.getPage(this.number);
    if (this.drawn !== width) return;
    const natural = page.getViewport({ scale: 1 });
    this.shape = natural.height / natural.width;
    this.size(width);
    const largest = Math.sqrt(LARGEST_CANVAS / (natural.width * natural.height));
    const scale = Math.min((width / natural.width) * devicePixelRatio, largest);
    const viewport = page.getViewport({ scale });
    const canvas = document.createElement("canvas");
    canvas.width = Math.floor(viewport.width);
    canvas.height = Math.floor(viewport.height);
    this.canvas = canvas;
    this.frame.replaceChildren(canvas);
    this.drawing = page.render({ canvas, viewport });
    try {
      await this.drawing.promise;
    } catch (error) {
      // The page was scrolled away before it was drawn; `clear` cancelled it.
      if (!(error instanceof Error && error.name === "RenderingCancelledException")) throw error;
    }
  }

  clear(): void {
    this.drawing?.cancel();
    this.drawing = undefined;
    this.drawn = 0;
    // A canvas releases its memory only when its size is zero.
    if (this.canvas) this.canvas.width = this.canvas.height = 0;
    this.canvas = undefined;
    this.frame.replaceChildren();
  }
}
