// The first script of the page: fetches the desktop and starts it, and knows where the parts are.
//
// The bundler replaces `choir:glue` with what wasm-bindgen generated, and the constants with hashed addresses.

import start from "choir:glue";

import { showCrashes } from "./crash";
import { styleThroughCssom } from "./strict-style";

declare const WASM: string;
declare const PARTS: Record<string, string>;

declare global {
  /** Loads a part by its name: `terminal`, `editor` or `pdf`. Rust calls this; a module is loaded only once. */
  var choirPart: (name: string) => Promise<unknown>;
}

globalThis.choirPart = async (name) => {
  const address = PARTS[name];
  if (!address) throw new Error(`there is no part named ${name}`);
  return import(address);
};

/** Until the shell is on the screen; a page that nobody looks at has no frames, and does not wait for one. */
async function firstFrame(): Promise<void> {
  if (document.hidden) return;
  await new Promise<void>((done) => requestAnimationFrame(() => setTimeout(done)));
}

showCrashes();
styleThroughCssom();
// What is dear waits for the shell: to fetch and unpack the desktop, and the wallpaper, the most there is to paint where
// there is no GPU.
await firstFrame();
const wasm = fetch(WASM);
document.documentElement.classList.add("painted");
void document.fonts.load("13px 'Inter Variable'");
await start({ module_or_path: wasm });
