// The look of the editor, from the desktop's design tokens, so that it follows the theme.

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--text-3)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.className, tags.namespace, tags.tagName], color: "var(--code-type)" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName), tags.macroName], color: "var(--code-call)" },
  { tag: [tags.propertyName, tags.attributeName, tags.labelName], color: "var(--code-name)" },
  { tag: tags.heading, color: "var(--text-1)", fontWeight: "650" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.link, tags.url], color: "var(--accent)", textDecoration: "underline" },
  { tag: tags.monospace, color: "var(--code-string)" },
  { tag: tags.inserted, color: "var(--ok)" },
  { tag: tags.deleted, color: "var(--bad)" },
  { tag: tags.invalid, color: "var(--bad)" },
]);

const spec = {
  "&": { height: "100%", color: "var(--text-1)", backgroundColor: "var(--surface-1)", fontSize: "var(--t-md)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--font-mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "var(--s-2) 0", caretColor: "var(--accent)" },
  ".cm-line": { padding: "0 var(--s-4) 0 var(--s-2)" },
  ".cm-gutters": { backgroundColor: "var(--surface-1)", color: "var(--text-3)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "3ch", padding: "0 var(--s-2) 0 var(--s-3)" },
  // The fold markers appear when the pointer is over the gutter.
  ".cm-foldGutter span": { opacity: "0", transition: "opacity var(--fast)" },
  ".cm-gutters:hover .cm-foldGutter span, .cm-foldGutter span[title^='Unfold']": { opacity: "1" },
  ".cm-activeLine": { backgroundColor: "color-mix(in oklch, var(--surface-2) 60%, transparent)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text-1)" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "color-mix(in oklch, var(--accent) 24%, transparent)",
  },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": {
    backgroundColor: "var(--accent-soft)",
    outline: "1px solid var(--line-2)",
  },
  ".cm-searchMatch": { backgroundColor: "var(--warn-soft)", outline: "1px solid var(--warn)" },
  ".cm-searchMatch-selected": { backgroundColor: "color-mix(in oklch, var(--warn) 40%, transparent)" },
  ".cm-panels": { backgroundColor: "var(--surface-2)", color: "var(--text-1)", fontFamily: "var(--font-ui)" },
  ".cm-panels.cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels.cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-textfield": {
    backgroundColor: "var(--surface-1)",
    border: "1px solid var(--line-2)",
    borderRadius: "var(--r-sm)",
    fontSize: "var(--t-md)",
    padding: "2px var(--s-2)",
  },
  ".cm-button": {
    background: "var(--surface-1)",
    border: "1px solid var(--line-2)",
    borderRadius: "var(--r-sm)",
    fontSize: "var(--t-sm)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--surface-1)",
    border: "1px solid var(--line)",
    borderRadius: "var(--r-sm)",
    boxShadow: "var(--shadow-2)",
  },
};

const light = EditorView.theme(spec, { dark: false });
const dark = EditorView.theme(spec, { dark: true });

export function look(isDark: boolean): Extension {
  return [isDark ? dark : light, syntaxHighlighting(colours)];
}
