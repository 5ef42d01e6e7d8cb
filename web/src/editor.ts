// The editor module: CodeMirror 6 behind a handle.

import { Compartment, EditorState, Prec, Transaction, type Extension } from "@codemirror/state";
import { EditorView, keymap } from "@codemirror/view";

import { Draft, find, forget } from "./editor/drafts";
import { languageOf } from "./editor/languages";
import { look } from "./editor/look";
import { setup, wraps } from "./editor/setup";

export interface Options {
  text: string;
  /** Decides the language; may be empty for a text without a name. */
  path: string;
  readOnly?: boolean;
  dark?: boolean;
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
  /** Line and column of the cursor, from one. */
  onCursor(callback: (line: number, column: number) => void): void;
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
  const [language, theme, access] = [new Compartment(), new Compartment(), new Compartment()];
  let path = options.path;
  let changed = () => {};
  let save = () => {};
  let moved = (_line: number, _column: number) => {};
  let draft: Draft | undefined;

  const extensions = (grammar: Extension, dark: boolean, readOnly: boolean): Extension => [
    Prec.high(keymap.of([{ key: "Mod-s", preventDefault: true, run: () => (save(), true) }])),
    setup(path || "Text"),
    wraps(path) ? EditorView.lineWrapping : [],
    language.of(grammar),
    theme.of(look(dark)),
    access.of(accessOf(readOnly)),
    EditorView.updateListener.of((update) => {
      if (update.docChanged && !update.transactions.some((change) => change.annotation(Transaction.remote))) {
        changed();
        draft?.changed();
      }
      if (update.selectionSet || update.docChanged) {
        const head = update.state.selection.main.head;
        const line = update.state.doc.lineAt(head);
        moved(line.number, head - line.from + 1);
      }
    }),
  ];
  let [dark, readOnly] = [options.dark ?? false, options.readOnly ?? false];
  const stateOf = (text: string, grammar: Extension) =>
    EditorState.create({ doc: text, extensions: [extensions(grammar, dark, readOnly), lineEnds(text)] });
  const view = new EditorView({ state: stateOf(options.text, []), parent: element });
  let grammar: Extension = [];

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
      view.setState(stateOf(text, grammar));
      view.dispatch({ selection: { anchor: Math.min(head, view.state.doc.length) } });
      view.scrollDOM.scrollTop = top;
    },
    setPath: (next) => {
      path = next;
      void loadLanguage();
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
    onCursor: (callback) => void (moved = callback),
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

function accessOf(readOnly: boolean): Extension {
  return [EditorState.readOnly.of(readOnly), EditorView.editable.of(!readOnly)];
}

/** Files with Windows line endings keep them. */
function lineEnds(text: string): Extension {
  const lines = text.split("\n").length - 1;
  const windows = text.split("\r\n").length - 1;
  return lines > 0 && lines === windows ? EditorState.lineSeparator.of("\r\n") : [];
}
