// The features of CodeMirror that the editor uses.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput } from "@codemirror/language";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import {
  crosshairCursor,
  drawSelection,
  dropCursor,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSpecialChars,
  keymap,
  lineNumbers,
  rectangularSelection,
} from "@codemirror/view";

import { nonce } from "../page";

export function setup(label: string): Extension {
  return [
    EditorView.cspNonce.of(nonce()),
    EditorView.contentAttributes.of({ "aria-label": label }),
    lineNumbers(),
    foldGutter(),
    history(),
    highlightSpecialChars(),
    highlightActiveLine(),
    highlightActiveLineGutter(),
    highlightSelectionMatches(),
    drawSelection(),
    dropCursor(),
    rectangularSelection(),
    crosshairCursor(),
    bracketMatching(),
    closeBrackets(),
    indentOnInput(),
    search({ top: true }),
    EditorState.allowMultipleSelections.of(true),
    // Escape, then Tab, leaves the editor by keyboard.
    keymap.of([
      ...closeBracketsKeymap,
      ...defaultKeymap,
      ...searchKeymap,
      ...historyKeymap,
      ...foldKeymap,
      indentWithTab,
    ]),
  ];
}

/** Wraps prose at the edge of the window, but not code. */
export function wraps(path: string): boolean {
  return /\.(md|markdown|txt)$/i.test(path) || !/\.[^/]+$/.test(path);
}
