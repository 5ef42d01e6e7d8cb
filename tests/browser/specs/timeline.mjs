import assert from "node:assert/strict";

import { confirm, get, open, picture, put, signIn, story, until } from "../lib.mjs";

story("timeline", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "poem.txt", "first\n");
  await put(page, "poem.txt", "first\nsecond\n");
  const timeline = await open(page, "timeline");
  const rows = timeline.locator(".op:not(.blank)");

  await step("what happened is listed, newest first", async () => {
    await until(() => rows.filter({ hasText: "poem.txt" }).count(), 2);
    await picture(page, "timeline");
  });

  await step("a row is undone, and the file is as it was", async () => {
    const row = rows.filter({ hasText: "poem.txt" }).first();
    await row.hover();
    await row.getByRole("button", { name: /^Undo/ }).click();
    await confirm(page, "Undo");
    await until(() => get(page, "poem.txt"), "first\n");
    await rows.filter({ hasText: "Undid “edit poem.txt”" }).waitFor();
  });

  await step("the undo is undone from its toast", async () => {
    await page.locator(".toast").getByRole("button", { name: "Redo" }).last().click();
    await until(() => get(page, "poem.txt"), "first\nsecond\n");
    await rows.filter({ hasText: "Redid “edit poem.txt”" }).waitFor();
  });

  await step("new rows arrive by themselves", async () => {
    await put(page, "later.txt", "x");
    await rows.filter({ hasText: "later.txt" }).first().waitFor();
  });

  await step("a row opens to its diff", async () => {
    await rows.filter({ hasText: "later.txt" }).first().click();
    await timeline.locator(".detail").waitFor();
    await picture(page, "timeline-detail");
  });

  await step("restore to here brings the workspace back", async () => {
    await put(page, "poem.txt", "spoilt\n");
    const row = rows.filter({ hasText: "later.txt" }).first();
    await row.hover();
    await row.getByRole("button", { name: "Restore to here" }).click();
    await confirm(page, "Restore");
    await until(() => get(page, "poem.txt"), "first\nsecond\n");
    assert.equal(await get(page, "later.txt"), "x");
  });
});
