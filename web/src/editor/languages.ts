// The language of a file, by its name, and its grammar, which is loaded when the first such file is opened.

import { StreamLanguage, type StreamParser } from "@codemirror/language";
import type { Extension } from "@codemirror/state";

type Load = () => Promise<Extension>;

const javascript = (jsx: boolean, typescript: boolean): Load => async () =>
  (await import("@codemirror/lang-javascript")).javascript({ jsx, typescript });

const html: Load = async () => (await import("@codemirror/lang-html")).html();
const css: Load = async () => (await import("@codemirror/lang-css")).css();
const json: Load = async () => (await import("@codemirror/lang-json")).json();
const python: Load = async () => (await import("@codemirror/lang-python")).python();
const rust: Load = async () => (await import("@codemirror/lang-rust")).rust();
const yaml: Load = async () => (await import("@codemirror/lang-yaml")).yaml();
const toml: Load = async () => stream((await import("@codemirror/legacy-modes/mode/toml")).toml);
const shell: Load = async () => stream((await import("@codemirror/legacy-modes/mode/shell")).shell);
const diff: Load = async () => stream((await import("@codemirror/legacy-modes/mode/diff")).diff);
const markdown: Load = async () => {
  const { markdown, markdownLanguage } = await import("@codemirror/lang-markdown");
  return markdown({ base: markdownLanguage });
};

const BY_EXTENSION: Record<string, Load> = {
  js: javascript(false, false),
  mjs: javascript(false, false),
  cjs: javascript(false, false),
  jsx: javascript(true, false),
  ts: javascript(false, true),
  mts: javascript(false, true),
  tsx: javascript(true, true),
  json,
  html,
  htm: html,
  svg: html,
  xml: html,
  css,
  md: markdown,
  markdown,
  rs: rust,
  py: python,
  toml,
  lock: toml,
  yaml,
  yml: yaml,
  sh: shell,
  bash: shell,
  zsh: shell,
  diff,
  patch: diff,
};

const NAMES = new Map<Load | undefined, string>([
  [html, "HTML"],
  [css, "CSS"],
  [json, "JSON"],
  [python, "Python"],
  [rust, "Rust"],
  [yaml, "YAML"],
  [toml, "TOML"],
  [shell, "Shell"],
  [diff, "Diff"],
  [markdown, "Markdown"],
  ...["js", "mjs", "cjs", "jsx"].map((ext): [Load | undefined, string] => [BY_EXTENSION[ext], "JavaScript"]),
  ...["ts", "mts", "tsx"].map((ext): [Load | undefined, string] => [BY_EXTENSION[ext], "TypeScript"]),
]);

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1).toLowerCase();
}

function loadOf(path: string): Load | undefined {
  const name = nameOf(path);
  return BY_EXTENSION[name.slice(name.lastIndexOf(".") + 1)];
}

/** The name of the language of a path; empty for plain text. */
export function languageName(path: string): string {
  return NAMES.get(loadOf(path)) ?? "";
}

/** The grammar for a path; nothing if there is none or it cannot be loaded, and then the text has no highlighting. */
export async function languageOf(path: string): Promise<Extension> {
  const [name, load] = [nameOf(path), loadOf(path)];
  try {
    return (await load?.()) ?? [];
  } catch (error) {
    console.warn(`no grammar for ${name}`, error);
    return [];
  }
}

function stream<State>(parser: StreamParser<State>): Extension {
  return StreamLanguage.define(parser);
}
