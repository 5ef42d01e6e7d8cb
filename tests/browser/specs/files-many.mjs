import assert from "node:assert/strict";

import { get, open, picture, post, put, signIn, story, until } from "../lib.mjs";

story("many files at once", {}, async (here, step) => {
  const page = await signIn(here);
  for (const name of ["part 10.txt", "part 9.txt", "alpha.md", "beta.md", "gamma.md"]) await put(page, name, `${name}\n`);
  await put(page, "large.bin", "x".repeat(5000));
  await post(page, "folders", { path: "into" });
  const files = await open(page, "files");
  const row = (name) => files.locator(`[data-path="${name}"]`);
  const selected = () => files.locator('[role=option][aria-selected="true"]').evaluateAll((rows) => rows.map((row) => row.dataset.path));
  const shown = () => files.locator("[role=option]").evaluateAll((rows) => rows.map((row) => row.dataset.path));
  await row("gamma.md").waitFor();

  /** How many operations on files the timeline has. */
  async function operations() {
    const answer = await page.request.get(`${here.computer.address}/api/v1/operations?family=file&limit=1000`);
    const { rows } = await answer.json();
    assert.ok(rows.length > 0);
    return rows.length;
  }

  await step("names are in the order in which people count, and a press on a heading sorts", async () => {
    const names = (await shown()).filter((name) => name.startsWith("part"));
    assert.deepEqual(names, ["part 9.txt", "part 10.txt"]);
    await files.getByRole("button", { name: "Sort by size" }).click();
    await until(async () => (await shown())[1], "large.bin");
    await files.getByRole("button", { name: "Sort by name" }).click();
    await until(async () => (await shown())[1], "alpha.md");
  });

  await step("Ctrl and Shift select more than one, and Ctrl-A selects all files and nothing else", async () => {
    await row("alpha.md").click();
    await row("gamma.md").click({ modifiers: ["Control"] });
    assert.deepEqual(await selected(), ["alpha.md", "gamma.md"]);
    await row("alpha.md").click();
    await row("gamma.md").click({ modifiers: ["Shift"] });
    assert.deepEqual(await selected(), ["alpha.md", "beta.md", "gamma.md"]);
    await picture(page, "files-many");
    await page.keyboard.press("Control+a");
    assert.equal((await selected()).length, (await shown()).length);
    assert.equal(await page.evaluate(() => String(getSelection())), "");
    await page.keyboard.press("Escape");
    assert.deepEqual(await selected(), []);
  });

  await step("the arrows with Shift select a range by keyboard", async () => {
    await row("alpha.md").click();
    await page.keyboard.press("Shift+ArrowDown");
    await page.keyboard.press("Shift+ArrowDown");
    assert.deepEqual(await selected(), ["alpha.md", "beta.md", "gamma.md"]);
    await page.keyboard.press("Shift+ArrowUp");
    assert.deepEqual(await selected(), ["alpha.md", "beta.md"]);
  });

  await step("typing goes to the name that begins so", async () => {
    await page.keyboard.press("Escape");
    await page.keyboard.type("gam");
    await until(async () => (await selected())[0], "gamma.md");
  });

  await step("what is deleted together comes back with one undo", async () => {
    await row("alpha.md").click();
    await row("gamma.md").click({ modifiers: ["Shift"] });
    await page.keyboard.press("Delete");
    await until(() => row("beta.md").count(), 0);
    const toast = page.locator(".toast", { hasText: "Deleted 3 items" });
    await toast.getByRole("button", { name: "Undo" }).click();
    for (const name of ["alpha.md", "beta.md", "gamma.md"]) await row(name).waitFor();
    assert.equal(await get(page, "beta.md"), "beta.md\n");
  });

  await step("several are cut and pasted into a folder as one operation", async () => {
    await row("alpha.md").click();
    await row("beta.md").click({ modifiers: ["Control"] });
    await page.keyboard.press("Control+x");
    await row("into").dblclick();
    await files.locator(".crumbs", { hasText: "into" }).waitFor();
    await files.locator("[role=listbox]").focus();
    await page.keyboard.press("Control+v");
    await row("into/alpha.md").waitFor();
    await row("into/beta.md").waitFor();
    await page.locator(".toast", { hasText: "Moved 2 items into into" }).getByRole("button", { name: "Undo" }).click();
    await until(() => row("into/beta.md").count(), 0);
  });

  await step("Back and Forward go where one was", async () => {
    await files.getByRole("button", { name: "Back", exact: true }).click();
    await row("gamma.md").waitFor();
    await files.getByRole("button", { name: "Forward", exact: true }).click();
    await until(() => row("gamma.md").count(), 0);
    await files.locator("[role=listbox]").focus();
    await page.keyboard.press("Alt+ArrowLeft");
    await row("gamma.md").waitFor();
  });

  await step("a new file gets the whole name that was typed, in one operation", async () => {
    const before = await operations();
    await files.getByRole("button", { name: "New file" }).first().click();
    await until(() => page.evaluate(() => document.activeElement.getAttribute("aria-label")), "New name");
    await page.keyboard.type("todo.md");
    await page.keyboard.press("Enter");
    await row("todo.md").waitFor();
    assert.equal(await row("todo.md.txt").count(), 0);
    assert.equal(await operations(), before + 1);
  });

  await step("what is wrong with a name is said beside it, and the name stays", async () => {
    await row("todo.md").click();
    await page.keyboard.press("F2");
    const field = files.getByLabel("New name");
    await field.fill("gamma.md");
    await page.keyboard.press("Enter");
    await files.locator(".problem", { hasText: "gamma.md is here already." }).waitFor();
    assert.equal(await field.inputValue(), "gamma.md");
    await field.fill("a/b");
    await page.keyboard.press("Enter");
    await files.locator(".problem", { hasText: "A name cannot contain a slash." }).waitFor();
    await picture(page, "files-naming");
    await page.keyboard.press("Escape");
    await row("todo.md").waitFor();
    assert.equal(await get(page, "a/b"), 404);
  });

  await step("twelve files are one upload, one operation and one toast", async () => {
    const before = await operations();
    const many = Array.from({ length: 12 }, (_, n) => ({ name: `photo ${n}.txt`, mimeType: "text/plain", buffer: Buffer.from(`photo ${n}`) }));
    await files.locator('input[type="file"]').setInputFiles(many);
    const toast = page.locator(".toast", { hasText: "Uploaded 12 items" });
    await toast.waitFor();
    await row("photo 11.txt").waitFor();
    assert.equal(await operations(), before + 1);
    assert.equal(await page.locator(".toast", { hasText: "Uploaded" }).count(), 1);
    await toast.getByRole("button", { name: "Undo" }).click();
    await until(() => row("photo 11.txt").count(), 0);
    await until(() => row("photo 0.txt").count(), 0);
  });
});
