import assert from "node:assert/strict";

import { get, open, picture, put, signIn, story, until } from "../lib.mjs";

story("files by keyboard, menu and mouse", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "draft.md", "one\ntwo\nthree\n");
  await put(page, "box/inside.txt", "x");
  const files = await open(page, "files");
  const row = (path) => files.locator(`[data-path="${path}"]`);
  const item = (name) => page.getByRole("menuitem", { name });

  await step("the folder above is one press away", async () => {
    await row("box").dblclick();
    await row("box/inside.txt").waitFor();
    await files.getByRole("button", { name: "Folder above" }).click();
    await row("draft.md").waitFor();
  });

  await step("a file is copied and pasted by keyboard, beside the first", async () => {
    await row("draft.md").click();
    await page.keyboard.press("Control+c");
    await page.keyboard.press("Control+v");
    await row("draft 2.md").waitFor();
    assert.equal(await get(page, "draft 2.md"), "one\ntwo\nthree\n");
    assert.equal(await get(page, "draft.md"), "one\ntwo\nthree\n");
  });

  await step("a file is copied by its menu and pasted into a folder by that of the folder", async () => {
    await row("draft 2.md").click({ button: "right" });
    await picture(page, "files-menu");
    await item("Copy Ctrl C").click();
    await row("box").dblclick();
    await row("box/inside.txt").waitFor();
    await files.getByRole("listbox", { name: "Files" }).click({ button: "right", position: { x: 60, y: 200 } });
    await item(/^Paste/).click();
    await row("box/draft 2.md").waitFor();
    assert.equal(await get(page, "box/draft 2.md"), "one\ntwo\nthree\n");
  });

  await step("a file that was cut is gone from where it was", async () => {
    await row("box/draft 2.md").click();
    await page.keyboard.press("Control+x");
    await page.keyboard.press("Backspace");
    await row("draft.md").waitFor();
    await row("draft 2.md").click();
    await page.keyboard.press("Delete");
    await until(() => row("draft 2.md").count(), 0);
    await page.keyboard.press("Control+v");
    await row("draft 2.md").waitFor();
    assert.equal(await get(page, "box/draft 2.md"), 404);
  });

  await step("a file that is dragged out of the window is downloaded by whoever it is dropped on", async () => {
    await page.evaluate(() => {
      const take = ({ dataTransfer }) => (globalThis.given = dataTransfer.getData("DownloadURL"));
      addEventListener("dragstart", take, { once: true });
    });
    // A browser under test has no desktop around it to drop on, so the hand lets go beside the window.
    await row("draft.md").hover();
    await page.mouse.down();
    await page.mouse.move(1300, 700, { steps: 5 });
    await page.mouse.up();
    const given = await page.evaluate(() => globalThis.given);
    const [, kind, name, url] = given.match(/^([^:]+):([^:]+):(.+)$/);
    assert.equal(kind, "application/octet-stream");
    assert.equal(name, "draft.md");
    assert.equal(new URL(url).origin, here.computer.address);
    const answer = await page.request.get(url);
    assert.match(answer.headers()["content-disposition"], /attachment.*draft\.md/);
    assert.equal(await answer.text(), "one\ntwo\nthree\n");
  });

  await step("a file is dragged into a folder, and Undo brings it back", async () => {
    await row("draft 2.md").dragTo(row("box"));
    await until(() => row("draft 2.md").count(), 0);
    await until(() => get(page, "box/draft 2.md"), "one\ntwo\nthree\n");
    await page.locator(".toast", { hasText: "into box" }).getByRole("button", { name: "Undo" }).click();
    await row("draft 2.md").waitFor();
  });

  await step("a file is dragged into a folder of the tree", async () => {
    const branch = files.getByRole("treeitem", { name: "box" });
    await row("draft 2.md").dragTo(branch);
    await until(() => get(page, "box/draft 2.md"), "one\ntwo\nthree\n");
    await until(() => row("draft 2.md").count(), 0);
  });

  await step("the versions of a file are listed with what has changed since", async () => {
    await put(page, "draft.md", "one\n2\nthree\n");
    await put(page, "draft.md", "one\n2\nthree\nfour\n");
    await row("draft.md").click({ button: "right" });
    await item("Versions").click();
    const versions = files.locator(".version");
    await until(() => versions.count(), 3);
    await versions.nth(0).click();
    await files.getByText("This is how it is now.").waitFor();
    await versions.nth(2).click();
    const diff = files.locator(".version-body .diff");
    await diff.waitFor();
    const lines = (kind) => diff.locator(kind).allInnerTexts().then((all) => all.map((line) => line.trim()));
    assert.deepEqual(await lines(".add"), ["+2", "+four"]);
    assert.deepEqual(await lines(".del"), ["-two"]);
    await picture(page, "versions");
  });

  await step("an older version is restored as a new one, and that is undone", async () => {
    await files.getByRole("button", { name: "Restore this version" }).click();
    await until(() => get(page, "draft.md"), "one\ntwo\nthree\n");
    await until(() => files.locator(".version").count(), 4);
    await page.locator(".toast", { hasText: "Restored" }).getByRole("button", { name: "Undo" }).click();
    await until(() => get(page, "draft.md"), "one\n2\nthree\nfour\n");
  });
});
