import assert from "node:assert/strict";

import { open, openFile, picture, put, ready, signIn, story, until } from "../lib.mjs";

// The only place where a trap is made on purpose.
story("crash", { mayCrash: true }, async (here, step) => {
  const page = await signIn(here);
  await put(page, "notes.md", "one\n");
  const files = await open(page, "files");
  const editor = await openFile(page, files, "notes.md");

  await step("a crash of the desktop shows a screen, and what was typed a moment ago survives", async () => {
    await editor.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("typed just before");
    // What a panic in wasm comes to: a module whose only function is `unreachable`.
    await page.evaluate(() => {
      const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 5, 1, 3, 0, 0, 11];
      const trap = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports.f;
      setTimeout(() => trap());
    });
    const screen = page.getByRole("alertdialog", { name: "Something went wrong" });
    await screen.waitFor();
    await picture(page, "crash");
    await screen.getByRole("button", { name: "Reload" }).click();
    await ready(page);
    assert.equal(await page.locator("#crash").count(), 0);
    await until(() => editor.locator(".cm-content").innerText(), (text) => text.includes("typed just before"));
  });
});
