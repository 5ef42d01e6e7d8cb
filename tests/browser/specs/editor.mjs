import assert from "node:assert/strict";

import { get, open, openFile, PHONE, picture, put, ready, signIn, story, until } from "../lib.mjs";

story("editor", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "main.rs", "fn main() {}\n");
  const files = await open(page, "files");
  const editor = await openFile(page, files, "main.rs");
  const text = () => editor.locator(".cm-content").first().innerText();
  const state = editor.locator("header.title .sp");
  const alert = editor.getByRole("alert");

  await step("the file is shown with its colours", async () => {
    assert.match(await text(), /fn main\(\) \{\}/);
    // A coloured word is a span of its own.
    await editor.locator(".cm-line span", { hasText: "fn" }).first().waitFor();
  });

  await step("what was typed is marked, then saved by Ctrl-S", async () => {
    await editor.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("// one");
    await until(() => state.innerText(), "Not saved");
    await page.keyboard.press("Control+s");
    await until(() => get(page, "main.rs"), "fn main() {}\n// one");
    await until(() => state.innerText(), "");
    await picture(page, "editor");
  });

  await step("a clean editor follows the file", async () => {
    await put(page, "main.rs", "fn main() {}\n// two\n");
    await until(text, (now) => now.includes("// two"));
    assert.equal(await alert.count(), 0);
  });

  await step("changes that were not saved survive a reload", async () => {
    await editor.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("// mine");
    const kept = () => page.evaluate(() => Object.entries(sessionStorage));
    await until(kept, (all) => all.some(([key, text]) => key.startsWith("draft:") && text.includes("// mine")));
    await page.reload();
    await ready(page);
    await until(text, (now) => now.includes("// mine"));
    await until(() => state.innerText(), "Not saved");
  });

  await step("a file that changed underneath is not overwritten", async () => {
    await put(page, "main.rs", "fn main() {}\n// theirs\n");
    await alert.waitFor();
    await editor.locator(".cm-content").click();
    const answered = page.waitForResponse((answer) => answer.request().method() === "PUT");
    await page.keyboard.press("Control+s");
    assert.equal((await answered).status(), 409);
    assert.equal(await get(page, "main.rs"), "fn main() {}\n// theirs\n");
    await picture(page, "editor-stale");
  });

  await step("a merge keeps both", async () => {
    await alert.getByRole("button", { name: "Merge" }).click();
    await editor.getByRole("button", { name: "Keep both" }).click();
    await editor.getByRole("button", { name: "Save the merge" }).click();
    await until(() => get(page, "main.rs"), "fn main() {}\n// two\n// mine\n// theirs\n");
    await until(() => alert.count(), 0);
  });

  await step("an untitled text asks for its path", async () => {
    await page.locator('#taskbar button[data-app="editor"]').click({ button: "middle" });
    const untitled = page.locator('.win[data-app="editor"]').last();
    await untitled.locator(".cm-content").click();
    await page.keyboard.type("a list");
    await page.keyboard.press("Control+s");
    const name = untitled.getByLabel("Save as").last();
    await name.fill("lists/first.md");
    await name.press("Enter");
    await until(() => get(page, "lists/first.md"), "a list");
    await until(() => untitled.locator(".status").innerText(), (now) => /Saved/.test(now) && /Markdown/.test(now), { within: 5_000 });
  });

  await step("line ends of Windows stay", async () => {
    await put(page, "dos.txt", "one\r\ntwo\r\n");
    const dos = await openFile(page, files, "dos.txt");
    await dos.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("three");
    await page.keyboard.press("Control+s");
    await until(() => get(page, "dos.txt"), "one\r\ntwo\r\nthree");
  });

  await step("closing a window with unsaved text keeps it, however soon", async () => {
    await openFile(page, files, "main.rs");
    for (const pause of [0, 60, 300, 700]) {
      await editor.locator(".cm-content").click();
      await page.keyboard.press("Control+End");
      await page.keyboard.type(`// closed after ${pause}\n`);
      await page.waitForTimeout(pause);
      await editor.getByRole("button", { name: "Close", exact: true }).click();
      await page.locator(".toast", { hasText: "unsaved changes" }).last().getByRole("button", { name: "Reopen" }).click();
      await until(text, (now) => now.includes(`// closed after ${pause}`));
      await until(() => state.innerText(), "Not saved");
    }
    assert.equal(await page.locator("#crash").count(), 0);
  });

  await step("unsaved text of a closed window is there when its file is opened again", async () => {
    await editor.getByRole("button", { name: "Close", exact: true }).click();
    await page.locator(".toast", { hasText: "unsaved changes" }).last().waitFor();
    await openFile(page, files, "main.rs");
    await until(text, (now) => now.includes("// closed after 700"));
  });

  await step("a draft that cannot be read is reported and kept", async () => {
    await put(page, "odd.txt", "in the file\n");
    await page.evaluate(async () => {
      const { user } = await (await fetch("/api/v1/me")).json();
      sessionStorage.setItem(`draft:${user}:file:odd.txt`, '{"text":"of another version"}');
    });
    const odd = await openFile(page, files, "odd.txt");
    await until(() => odd.locator(".cm-content").innerText(), (now) => now.includes("in the file"));
    await page.locator(".toast", { hasText: "could not be read" }).waitFor();
    const kept = await page.evaluate(() => Object.entries(localStorage));
    assert.ok(kept.some(([key, text]) => key.includes("odd.txt:unreadable") && text.includes("of another version")));
    await odd.getByRole("button", { name: "Close", exact: true }).click();
  });

  await step("closing a window while it saves saves", async () => {
    await put(page, "quick.txt", "one\n");
    const quick = await openFile(page, files, "quick.txt");
    await quick.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("two");
    const slowly = async (route) => {
      await new Promise((done) => setTimeout(done, 500));
      await route.continue();
    };
    await page.route("**/content?path=quick.txt&base**", slowly);
    await page.keyboard.press("Control+s");
    await quick.getByRole("button", { name: "Close", exact: true }).click();
    await until(() => get(page, "quick.txt"), "one\ntwo");
    await page.unroute("**/content?path=quick.txt&base**", slowly);
    assert.equal(await page.locator("#crash").count(), 0);
  });

  await step("undoing back to the saved text is saved again, and the status bar says where the cursor is", async () => {
    await put(page, "bar.rs", "fn bar() {}\n// second\n");
    const bar = await openFile(page, files, "bar.rs");
    const status = bar.locator(".status");
    const saved = status.locator(".saved");
    await until(() => saved.innerText(), "Saved");
    await bar.locator(".cm-content").click();
    await page.keyboard.press("Control+Home");
    await page.keyboard.type("x");
    await until(() => saved.innerText(), "Not saved");
    await until(() => status.innerText(), (now) => /1:2/.test(now) && /Rust/.test(now) && /UTF-8/.test(now) && /LF/.test(now));
    await page.keyboard.press("Control+z");
    await until(() => saved.innerText(), "Saved");
    await until(() => bar.locator("header.title .sp").innerText(), "");
    await page.keyboard.press("Shift+ArrowRight");
    await until(() => status.innerText(), (now) => now.includes("1 selected"));
    await page.keyboard.press("Control+g");
    const line = bar.locator(".cm-goto-line input");
    await line.fill("2");
    await line.press("Enter");
    await until(() => status.innerText(), (now) => now.includes("2:1"));
    await picture(page, "editor-status");
  });

  await step("a save while the server is away is queued, and sent when it is back with what was typed since", async () => {
    const bar = await openFile(page, files, "bar.rs");
    const saved = bar.locator(".status .saved");
    await bar.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await here.computer.stop("SIGKILL");
    await page.keyboard.type("// away");
    await page.keyboard.press("Control+s");
    await until(() => saved.innerText(), "Saves when the server is back");
    assert.equal(await page.locator(".toast", { hasText: "Not saved" }).count(), 0);
    await page.keyboard.type(", and more");
    await until(() => saved.innerText(), "Saves when the server is back");
    await page.locator(".banner:not([hidden])").waitFor();
    await picture(page, "editor-queued");
    await here.computer.restart();
    await page.locator("#link.live").waitFor();
    await until(() => get(page, "bar.rs"), "fn bar() {}\n// second\n// away, and more");
    await until(() => saved.innerText(), "Saved");
    assert.equal(await bar.getByRole("alert").count(), 0);
  });

  await step("a phone can save without a keyboard shortcut", async () => {
    const bar = await openFile(page, files, "bar.rs");
    await bar.locator(".cm-content").click();
    await page.keyboard.press("Control+End");
    await page.keyboard.type("!");
    await page.setViewportSize(PHONE);
    await bar.locator(".status").getByRole("button", { name: "Save" }).click();
    await until(() => get(page, "bar.rs"), "fn bar() {}\n// second\n// away, and more!");
    await picture(page, "editor-phone");
  });
});
