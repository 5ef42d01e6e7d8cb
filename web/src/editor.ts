// The editor module: CodeMirror 6 behind a handle.

import { gotoLine } from "@codemirror/search";
import { Compartment, EditorState, Prec, Transaction, type Extension, type Text } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";

import { Draft, find, forget } from "./editor/drafts";
import { languageName, languageOf } from "./editor/languages";
import { look } from "./editor/look";
import { setup, wraps } from "./editor/setup";

export interface Options {
  text: string;
  /** The text in the file, if it is known; see {@link Handle.setSaved}. */
  saved?: string;
  /** Decides the language; may be empty for a text without a name. */
  path: string;
  readOnly?: boolean;
  dark?: boolean;
}

/** What the status bar shows about the text. */
export interface Status {
  /** Line and column of the cursor, from one. */
  line: number;
  column: number;
  /** How many characters are selected. */
  selected: number;
  /** Empty for plain text. */
  language: string;
  lineEnding: string;
  wraps: boolean;
}

export interface Handle {
  getText(): string;
  /** Replaces the text without calling `onChange`. The editor's undo history starts again. */
  setText(text: string): void;
  setPath(path: string): void;
  setReadOnly(readOnly: boolean): void;
  setTheme(dark: boolean): void;
  /** Called when the person changes the text. */
  onChange(callback: () => void): void;
  /** Called when the person saves, with Ctrl or Cmd and S. */
  onSave(callback: () => void): void;
  /** Called with the status now, and whenever it changes. */
  onStatus(callback: (status: Status) => void): void;
  /** The text that the file holds; nothing if it is not known. */
  setSaved(text: string | undefined): void;
  /** Whether the text is the one that the file holds. */
  isSaved(): boolean;
  setWraps(wraps: boolean): void;
  /** Asks for a line and goes there. */
  goToLine(): void;
  /** Keeps the text as a draft under a key, together with a JSON object, until {@link dropDraft} or the end. */
  keepDraft(key: string, head: string): void;
  /** Deletes the draft: the text is saved. */
  dropDraft(): void;
  focus(): void;
  dispose(): void;
}

/** The draft under a key, as JSON. */
export function findDraft(key: string): string | undefined {
  return find(key);
}

export function forgetDraft(key: string): void {
  forget(key);
}

export async function mount(element: HTMLElement, options: Options): Promise<Handle> {
  const [language, theme, access, wrapping] = Array.from({ length: 4 }, () => new Compartment()) as Compartments;
  let path = options.path;
  let changed = () => {};
  let save = () => {};
  let told = (_status: Status) => {};
  let wrapped = wraps(path);
  let ending = endingOf(options.text);
  let draft: Draft | undefined;

  const extensions = (grammar: Extension, dark: boolean, readOnly: boolean): Extension => [
    Prec.high(
      keymap.of([
        { key: "Mod-s", preventDefault: true, run: () => (save(), true) },
        // F3 finds the next match.
        { key: "Ctrl-g", preventDefault: true, run: gotoLine },
      ]),
    ),
    setup(path || "Text"),
    wrapping.of(wrapped ? EditorView.lineWrapping : []),
    language.of(grammar),
    theme.of(look(dark)),
    access.of(accessOf(readOnly)),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((change) => change.annotation(Transaction.remote))) {
        changed();
        draft?.changed();
      }
      if (update.selectionSet || update.docChanged) {
        told(status(update.state));
      }
    }),
  ];
  let [dark, readOnly] = [options.dark ?? false, options.readOnly ?? false];
  const status = (state: EditorState): Status => {
    const { head } = state.selection.main;
    const line = state.doc.lineAt(head);
    const selected = state.selection.ranges.reduce((sum, { from, to }) => sum + to - from, 0);
    const [language, column] = [languageName(path), head - line.from + 1];
    return { line: line.number, column, selected, language, lineEnding: ending, wraps: wrapped };
  };
  const stateOf = (text: string, grammar: Extension) =>
    EditorState.create({ doc: text, extensions: [extensions(grammar, dark, readOnly), lineEnds(text)] });
  const view = new EditorView({ state: stateOf(options.text, []), parent: element });
  let grammar: Extension = [];
  let saved: Text | undefined = options.saved === undefined ? undefined : view.state.toText(options.saved);

  const loadLanguage = async () => {
    const wanted = path;
    const found = await languageOf(wanted);
    if (wanted !== path) return;
    grammar = found;
    view.dispatch({ effects: language.reconfigure(found) });
  };
  void loadLanguage();

  return {
    getText: () => view.state.sliceDoc(),
    setText: (text) => {
      const head = Math.min(view.state.selection.main.head, text.length);
      const top = view.scrollDOM.scrollTop;
      ending = endingOf(text);
      view.setState(stateOf(text, grammar));
      view.dispatch({ selection: { anchor: Math.min(head, view.state.doc.length) } });
      view.scrollDOM.scrollTop = top;
    },
    setPath: (next) => {
      path = next;
      void loadLanguage();
      told(status(view.state));
    },
    setReadOnly: (next) => {
      readOnly = next;
      view.dispatch({ effects: access.reconfigure(accessOf(next)) });
    },
    setTheme: (next) => {
      dark = next;
      view.dispatch({ effects: theme.reconfigure(look(next)) });
    },
    onChange: (callback) => void (changed = callback),
    onSave: (callback) => void (save = callback),
    onStatus: (callback) => {
      told = callback;
      told(status(view.state));
    },
    setSaved: (text) => {
      saved = text === undefined ? undefined : view.state.toText(text);
      if (text === undefined) return;
      ending = endingOf(text);
      told(status(view.state));
    },
    isSaved: () => saved !== undefined && view.state.doc.eq(saved),
    setWraps: (next) => {
      wrapped = next;
      view.dispatch({ effects: wrapping.reconfigure(next ? EditorView.lineWrapping : []) });
      told(status(view.state));
    },
    goToLine: () => void gotoLine(view),
    keepDraft: (key, head) => {
      if (draft) draft.head = head;
      else draft = new Draft(key, head, () => view.state.sliceDoc());
    },
    dropDraft: () => {
      draft?.drop();
      draft = undefined;
    },
    focus: () => view.focus(),
    dispose: () => {
      draft?.leave();
      view.destroy();
    },
  };
}

type Compartments = [Compartment, Compartment, Compartment, Compartment];

function accessOf(readOnly: boolean): Extension {
  return [EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly)];
}

/** Files with Windows line endings keep them. */
function lineEnds(text: string): Extension {
  return endingOf(text) === "CRLF" ? EditorState.lineSeparator.of("\r\n") : [];
}

function endingOf(text: string): "LF" | "CRLF" | "LF, CRLF" {
  const lines = text.split("\n").length - 1;
  const windows = text.split("\r\n").length - 1;
  if (windows === 0) return "LF";
  return lines === windows ? "CRLF" : "LF, CRLF";
}
