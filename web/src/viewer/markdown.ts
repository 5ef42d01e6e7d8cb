// Markdown as GitHub renders it: tables, task lists, raw HTML where it is harmless, and maths.
//
// Nothing in a file may run or reach out: DOMPurify removes scripts, frames, forms and styles; images come from the
// workspace or from the file itself; links to the web open in a new tab, links to files open here.

import DOMPurify from "dompurify";
import { Marked } from "marked";
import katex from "marked-katex-extension";

import { relative, showPicture } from "./file";
import { highlight } from "./highlight";
import { WORDS } from "./words";

/** Opens another file of the workspace. */
export type Open = (path: string) => void;

// MathML is drawn by the browser itself, without fonts or inline styles.
const marked = new Marked(
  { gfm: true, renderer: { html: ({ text }) => withoutPolicyViolations(text) } },
  katex({ output: "mathml", throwOnError: false, nonStandard: true }),
);

const FORBIDDEN = ["style", "form", "button", "select", "textarea", "iframe", "object", "embed", "link", "meta", "base", "audio", "video", "svg"];

/** Renders a text; `path` is the file that it stands in, for links and images. */
export async function renderMarkdown(element: HTMLElement, text: string, path: string, open: Open): Promise<void> {
  const html = await marked.parse(frontMatterAsCode(text));
  const content = DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    FORBID_TAGS: FORBIDDEN,
    FORBID_ATTR: ["style", "srcset", "name"],
    // A name in a file must not shadow one of the page.
    SANITIZE_NAMED_PROPS: true,
  });
  for (const image of content.querySelectorAll("img")) placeImage(image, path);
  for (const link of content.querySelectorAll("a")) placeLink(link, path, open);
  for (const box of content.querySelectorAll("input")) {
    box.disabled = true;
    box.closest("li")?.classList.add("check-item");
  }
  for (const table of content.querySelectorAll("table")) {
    const frame = document.createElement("div");
    frame.className = "table-frame";
    frame.tabIndex = 0;
    table.replaceWith(frame);
    frame.append(table);
  }
  for (const [index, heading] of content.querySelectorAll("h1, h2, h3, h4, h5, h6").entries()) {
    heading.setAttribute("data-anchor", anchorOf(heading.textContent ?? String(index)));
  }
  const coloured: Promise<void>[] = [];
  for (const code of content.querySelectorAll<HTMLElement>("pre > code")) {
    const name = /language-([\w+#-]+)/.exec(code.className)?.[1];
    code.parentElement?.setAttribute("tabindex", "0");
    if (name) coloured.push(highlight(code, code.textContent ?? "", name));
  }
  element.replaceChildren(content);
  await Promise.all(coloured);
}

/**
 * HTML without handlers and inline styles. DOMPurify removes them, too, and it decides; but the page's policy already
 * reports them when it parses the text.
 */
function withoutPolicyViolations(html: string): string {
  return html.replace(/[\s"'/](?:on\w+|style)\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)/gi, " ");
}

/** Settings at the top of a file (`---`) would read as a heading. */
function frontMatterAsCode(text: string): string {
  return text.replace(/^---\r?\n([\s\S]*?)\r?\n---(?=\r?\n|$)/, "```yaml\n$1\n```");
}

/** The anchor of a heading, as GitHub makes it: lower case, spaces to hyphens, punctuation removed. */
function anchorOf(text: string): string {
  return text.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "").replace(/\s/g, "-");
}

function placeImage(image: HTMLImageElement, path: string): void {
  const source = image.getAttribute("src") ?? "";
  image.loading = "lazy";
  if (/^data:image\/(png|jpeg|gif|webp|avif);/i.test(source)) return;
  const local = /^[a-z][a-z0-9+.-]*:|^\/\//i.test(source) ? undefined : relative(path, source);
  if (local) {
    image.removeAttribute("src");
    // Its bytes are released when it is drawn; a picture that cannot be read stays its description.
    void showPicture(image, local).then(
      (release) => image.addEventListener("load", release, { once: true }),
      () => {},
    );
    return;
  }
  // A picture on the web would tell its server who reads this file, and when.
  const note = document.createElement("span");
  note.className = "remote-image";
  note.textContent = image.alt || WORDS.remoteImage(source);
  note.title = WORDS.remoteImage(source);
  image.replaceWith(note);
}

function placeLink(link: HTMLAnchorElement, path: string, open: Open): void {
  const target = link.getAttribute("href") ?? "";
  if (/^https?:\/\//i.test(target) || /^mailto:/i.test(target)) {
    link.target = "_blank";
    link.rel = "noopener noreferrer";
    return;
  }
  const anchor = target.startsWith("#") ? decodeURIComponent(target.slice(1)) : undefined;
  const file = anchor === undefined && !/^[a-z][a-z0-9+.-]*:|^\/\//i.test(target) ? relative(path, target) : undefined;
  if (anchor === undefined && file === undefined) {
    link.removeAttribute("href");
    return;
  }
  link.href = "#";
  link.addEventListener("click", (event) => {
    event.preventDefault();
    if (file !== undefined) return open(file);
    const page = link.closest(".read");
    page?.querySelector(`[data-anchor=${CSS.escape(anchor ?? "")}]`)?.scrollIntoView({ block: "start" });
  });
}
