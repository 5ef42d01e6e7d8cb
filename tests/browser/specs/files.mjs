import assert from "node:assert/strict";

import { get, open, picture, put, signIn, story, until } from "../lib.mjs";

story("files", {}, async (here, step) => {
  const page = await signIn(here);
  const files = await open(page, "files");
  const row = (name) => files.locator(`[data-path="${name}"]`);

  await step("a new file is named at once and holds that name", async () => {
    await files.getByRole("button", { name: "New file" }).first().click();
    const field = files.locator(".rows input");
    await field.waitFor();
    await field.fill("notes.md");
    await field.press("Enter");
    await row("notes.md").waitFor();
    await until(() => get(page, "notes.md"), "");
  });

  await step("a file is renamed by keyboard", async () => {
    await row("notes.md").click();
    await page.keyboard.press("F2");
    const field = files.locator(".rows input");
    await field.fill("renamed.md");
    await field.press("Enter");
    await row("renamed.md").waitFor();
    assert.equal(await get(page, "notes.md"), 404);
  });

  await step("a file that was deleted comes back with Undo in the toast", async () => {
    await put(page, "renamed.md", "# Kept\n");
    await row("renamed.md").click();
    await page.keyboard.press("Delete");
    await until(() => row("renamed.md").count(), 0);
    await page.locator(".toast", { hasText: "Deleted" }).getByRole("button", { name: "Undo" }).click();
    await row("renamed.md").waitFor();
    assert.equal(await get(page, "renamed.md"), "# Kept\n");
  });

  await step("the same by keyboard, and redo", async () => {
    await row("renamed.md").click();
    await page.keyboard.press("Delete");
    await until(() => row("renamed.md").count(), 0);
    await page.keyboard.press("Control+z");
    await row("renamed.md").waitFor();
    await page.keyboard.press("Control+Shift+z");
    await until(() => row("renamed.md").count(), 0);
    await page.keyboard.press("Control+z");
    await row("renamed.md").waitFor();
  });

  await step("what another program writes appears by itself", async () => {
    await put(page, "from-outside.txt", "hello");
    await row("from-outside.txt").waitFor();
  });

  await step("Markdown is previewed, and search finds words in files", async () => {
    await row("renamed.md").click();
    await files.getByRole("heading", { name: "Kept" }).waitFor();
    await picture(page, "files");
    await files.getByRole("searchbox").fill("hello");
    await files.locator(".found", { hasText: "from-outside.txt" }).waitFor();
    await files.getByRole("searchbox").fill("");
  });

  await step("a file that was chosen is uploaded", async () => {
    const chooser = page.waitForEvent("filechooser");
    await files.getByRole("button", { name: /Upload/ }).first().click();
    await (await chooser).setFiles({ name: "up.txt", mimeType: "text/plain", buffer: Buffer.from("uploaded") });
    await row("up.txt").waitFor();
    assert.equal(await get(page, "up.txt"), "uploaded");
  });

  await step("HTML that somebody wrote is never a page of ours", async () => {
    await put(page, "page.html", "<script>document.title = 'ran'</script>");
    const answer = await page.evaluate(async () => {
      const answer = await fetch("/api/v1/content?path=page.html");
      return [answer.headers.get("content-security-policy"), answer.headers.get("x-content-type-options"), answer.headers.get("content-type")];
    });
    assert.match(answer[0], /sandbox/);
    assert.equal(answer[1], "nosniff");
    assert.doesNotMatch(answer[2], /html/);
  });
});
