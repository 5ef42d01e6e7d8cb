import assert from "node:assert/strict";

import { anotherTab, get, open, picture, place, put, signIn, story, until } from "../lib.mjs";

story("two tabs of one computer", {}, async (here, step) => {
  const one = await signIn(here);
  const two = await anotherTab(here);

  await step("a window that opens in one opens in the other", async () => {
    const files = await open(one, "files");
    const same = two.locator('.win[data-app="files"]');
    await same.waitFor();
    const wanted = JSON.stringify(await place(files));
    await until(async () => JSON.stringify(await place(same)), wanted);
  });

  await step("a file that is made in one is listed in the other", async () => {
    await put(one, "shared.txt", "x");
    await two.locator('.win[data-app="files"] [data-path="shared.txt"]').waitFor();
    await picture(two, "second-tab");
  });

  await step("a tab that was offline for a while catches up, in order and once", async () => {
    await here.context.setOffline(true);
    await two.locator("#link:not(.live)").waitFor({ timeout: 30_000 }).catch(() => {});
    await here.context.setOffline(false);
    for (let count = 0; count < 20; count += 1) await put(one, `row-${count}.txt`, String(count));
    const names = two.locator('.win[data-app="files"] [data-path^="row-"]');
    await until(() => names.count(), 20, { within: 30_000 });
    assert.equal(await get(two, "row-19.txt"), "19");
  });

  await step("a window that closes in one closes in the other", async () => {
    await one.locator('.win[data-app="files"]').getByRole("button", { name: "Close" }).click();
    await until(() => two.locator('.win[data-app="files"]').count(), 0);
  });
});
