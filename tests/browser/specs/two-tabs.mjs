import assert from "node:assert/strict";

import { anotherTab, atRest, get, line, open, picture, place, put, signIn, story, until } from "../lib.mjs";

story("two tabs of one computer", {}, async (here, step) => {
  const one = await signIn(here);
  let wire;
  const two = await anotherTab(here, async (page) => (wire = await line(page)));
  const files = two.locator('.win[data-app="files"]');

  await step("a window that opens in one opens in the other, in the same place", async () => {
    // A browser does not animate a tab that nobody looks at.
    await one.bringToFront();
    const wanted = JSON.stringify(await atRest(await open(one, "files")));
    await two.bringToFront();
    await files.waitFor();
    await until(async () => JSON.stringify(await place(files)), wanted);
  });

  await step("a file that is made in one is listed in the other", async () => {
    await put(one, "shared.txt", "x");
    await files.locator('[data-path="shared.txt"]').waitFor();
    await picture(two, "second-tab");
  });

  await step("a tab that was offline says so, and catches up in order and once", async () => {
    const timeline = await open(two, "timeline");
    const rows = timeline.locator(".op:not(.blank)");
    await rows.filter({ hasText: "shared.txt" }).waitFor();
    const listed = async () => (await rows.allInnerTexts()).flatMap((text) => text.match(/row-\d+/) ?? []).join();
    await wire.cut();
    await two.locator(".banner:not([hidden])").waitFor();
    await picture(two, "offline");
    for (let count = 0; count < 20; count += 1) await put(one, `row-${count}.txt`, String(count));
    assert.equal(await files.locator('[data-path^="row-"]').count(), 0);
    assert.equal(await listed(), "");
    wire.mend();
    await until(() => files.locator('[data-path^="row-"]').count(), 20);
    await until(listed, Array.from({ length: 20 }, (_, index) => `row-${19 - index}`).join());
    await until(() => two.locator(".banner:not([hidden])").count(), 0);
    assert.equal(await get(two, "row-19.txt"), "19");
  });

  await step("what was done while offline is sent afterwards", async () => {
    await wire.cut();
    await two.locator("#link:not(.live)").waitFor();
    await two.locator('#taskbar button[data-app="settings"]').click();
    await two.locator('.win[data-app="settings"]').waitFor();
    wire.mend();
    await one.locator('.win[data-app="settings"]').waitFor();
  });

  await step("a window that closes in one closes in the other", async () => {
    await one.locator('.win[data-app="files"]').getByRole("button", { name: "Close", exact: true }).click();
    await until(() => files.count(), 0);
  });
});
