// The first script of the page: fetches and starts the desktop, and loads the other modules by name.
//
// The bundler replaces `choir:glue` with the output of wasm-bindgen, and the constants with hashed addresses.

import start from "choir:glue";

import { showCrashes } from "./crash";
import { styleThroughCssom } from "./strict-style";

declare const WASM: string;
declare const PARTS: Record<string, string>;

declare global {
  /** Loads a module by its name: `terminal`, `editor` or `viewer`. Called from Rust; each is loaded once. */
  var choirPart: (name: string) => Promise<unknown>;
}

globalThis.choirPart = async (name) => {
  const address = PARTS[name];
  if (!address) throw new Error(`there is no part named ${name}`);
  return import(address);
};

/** Resolves when the shell is painted. A hidden page has no frames, so it does not wait. */
async function firstFrame(): Promise<void> {
  if (document.hidden) return;
  await new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done)));
}

showCrashes();
styleThroughCssom();
// Expensive work waits for the shell: fetching and unpacking the desktop, and the wallpaper, which is slow to paint
// without a GPU.
await firstFrame();
const wasm = fetch(WASM);
document.documentElement.classList.add("painted");
void document.fonts.load("13px 'Inter Variable'");
await start({ module_or_path: wasm });
