// Colours code that is only read, with the grammars of the editor.

import { language } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { classHighlighter, highlightCode } from "@lezer/highlight";

import { languageOf } from "../editor/languages";

/** Longer code is shown without colours. */
const LONGEST = 200_000;

/** What people write behind the fence of a code block, where it is not the ending of a file. */
const ENDINGS: Record<string, string> = {
  javascript: "js",
  typescript: "ts",
  python: "py",
  rust: "rs",
  shell: "sh",
  console: "sh",
  markdown: "md",
};

/** Fills an element with code, coloured once its grammar is loaded. */
export async function highlight(element: HTMLElement, code: string, languageName: string): Promise<void> {
  element.textContent = code;
  if (code.length > LONGEST) return;
  const ending = ENDINGS[languageName.toLowerCase()] ?? languageName;
  const state = EditorState.create({ extensions: await languageOf(`code.${ending}`) });
  const parser = state.facet(language)?.parser;
  if (!parser) return;
  const pieces = document.createDocumentFragment();
  highlightCode(
    code,
    parser.parse(code),
    classHighlighter,
    (text, classes) => {
      if (!classes) return pieces.append(text);
      const span = document.createElement("span");
      span.className = classes;
      span.textContent = text;
      pieces.append(span);
    },
    () => pieces.append("\n"),
  );
  element.replaceChildren(pieces);
}
