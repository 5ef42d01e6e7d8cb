import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { get, open, picture, post, put, signIn, story, until } from "../lib.mjs";

story("undo where something changed since", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "one.txt", "red\ngreen\nblue\n");
  await put(page, "one.txt", "red\nGREEN\nblue\n");
  await put(page, "one.txt", "red\nyellow\nblue\n");
  const timeline = await open(page, "timeline");
  // Everything about the file, newest first: the rows of the three writes, then what the steps add above them.
  const rows = timeline.locator(".op:not(.blank)").filter({ hasText: "one.txt" });
  await until(() => rows.count(), 3);
  const older = await rows.nth(1).getAttribute("data-op");
  const row = timeline.locator(`[data-op="${older}"]`);
  const undone = row.locator(".chip", { hasText: "undone" });
  const dialog = page.getByRole("dialog", { name: /^(Undo|Redo)/ });
  const side = (name) => dialog.getByRole("button", { name });

  async function undo(row) {
    await row.hover();
    await row.getByRole("button", { name: /^(Undo|Redo)/ }).click();
    await dialog.getByText("Something changed since").waitFor();
  }

  await step("both sides are shown, today's is chosen, and nothing has changed yet", async () => {
    await undo(row);
    assert.match(await side(/Keep today's/).innerText(), /yellow/);
    assert.match(await side(/Take the other/).innerText(), /green/);
    assert.equal(await side(/Keep today's/).getAttribute("aria-pressed"), "true");
    assert.equal(await side(/Take the other/).getAttribute("aria-pressed"), "false");
    await picture(page, "conflict");
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await until(() => dialog.count(), 0);
    assert.equal(await get(page, "one.txt"), "red\nyellow\nblue\n");
  });

  await step("the other side is taken over today's", async () => {
    await undo(row);
    await side(/Take the other/).click();
    assert.equal(await side(/Take the other/).getAttribute("aria-pressed"), "true");
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await until(() => get(page, "one.txt"), "red\ngreen\nblue\n");
    await undone.waitFor();
    await page.locator(".toast", { hasText: "Undid" }).getByRole("button", { name: "Redo" }).click();
    await until(() => get(page, "one.txt"), "red\nyellow\nblue\n");
    await undone.waitFor({ state: "detached" });
  });

  await step("today's side is kept", async () => {
    await undo(row);
    await side(/Keep today's/).click();
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await until(() => dialog.count(), 0);
    await undone.waitFor();
    assert.equal(await get(page, "one.txt"), "red\nyellow\nblue\n");
  });

  await step("changes to other lines are merged without a question", async () => {
    await put(page, "two.txt", "a\nb\nc\nd\n");
    await put(page, "two.txt", "A\nb\nc\nd\n");
    await put(page, "two.txt", "A\nb\nc\nD\n");
    const two = timeline.locator(".op:not(.blank)").filter({ hasText: "two.txt" });
    await until(() => two.count(), 3);
    await two.nth(1).hover();
    await two.nth(1).getByRole("button", { name: /^Undo/ }).click();
    await dialog.locator(".change").waitFor();
    assert.equal(await dialog.getByText("Something changed since").count(), 0);
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await until(() => get(page, "two.txt"), "a\nb\nc\nD\n");
  });

  await step("what stays takes the other end of its move with it, and that is shown before", async () => {
    await put(page, "from.txt", "one\n");
    await post(page, "files/move", { from: "from.txt", to: "to.txt" });
    await post(page, "files/delete", { path: "to.txt" });
    await put(page, "to.txt", "two\n");
    const moved = timeline.locator(".op:not(.blank)").filter({ hasText: /from\.txt.*to\.txt/s });
    await undo(moved);
    await dialog.getByText("Nothing would change").waitFor();
    await side(/Take the other/).click();
    await dialog.locator(".foreseen .change", { hasText: "from.txt" }).waitFor();
    await picture(page, "conflict-foreseen");
    await side(/Keep today's/).click();
    await dialog.getByText("Nothing would change").waitFor();
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await moved.locator(".chip", { hasText: "undone" }).waitFor();
    assert.equal(await get(page, "to.txt"), "two\n");
    assert.equal(await get(page, "from.txt"), 404);
  });

  await step("a side is taken for a setting as it is for a file", async () => {
    for (const value of ["red", "green", "blue"]) {
      const action = { set_setting: { key: "spec.colour", value } };
      await post(page, "gestures", { command: randomUUID(), op: randomUUID(), action });
    }
    const rows = timeline.locator(".op:not(.blank)").filter({ hasText: "spec.colour" });
    await until(() => rows.count(), 3);
    await undo(rows.nth(1));
    assert.match(await side(/Keep today's/).innerText(), /blue/);
    await side(/Take the other/).click();
    await dialog.getByRole("button", { name: "Undo", exact: true }).click();
    await until(() => page.evaluate(async () => {
      const { settings } = await (await fetch("/api/v1/state")).json();
      return Object.fromEntries(settings)["spec.colour"];
    }), "red");
  });
});
