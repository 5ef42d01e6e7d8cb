import assert from "node:assert/strict";

import { anotherTab, open, put, signIn, story, until } from "../lib.mjs";

/** Long enough for every request that an event could cause. */
const QUIET = 1500;

story("a tab fetches only what changed", {}, async (here, step) => {
  const one = await signIn(here);
  const two = await anotherTab(here);
  const requests = [];
  two.on("request", (request) => {
    const { pathname, search } = new URL(request.url());
    if (pathname.startsWith("/api/")) requests.push(`${request.method()} ${pathname}${search}`);
  });

  /** What the second tab asks for while the first one puts a file. */
  async function whilePutting(path, seen) {
    await two.waitForTimeout(QUIET);
    requests.length = 0;
    await put(one, path, "x");
    await seen();
    await two.waitForTimeout(QUIET);
    return [...requests];
  }

  await step("nothing, if no window shows it", async () => {
    const unsaved = two.getByRole("button", { name: /since the last checkpoint/ });
    await put(one, "notes/first.txt", "x");
    await unsaved.waitFor();
    const asked = await whilePutting("unseen.txt", async () =>
      until(async () => Number((await unsaved.innerText()).trim()) > 1, true),
    );
    assert.deepEqual(asked, []);
  });

  const files = await open(two, "files");

  await step("its folder once, if Files shows it", async () => {
    const asked = await whilePutting("listed.txt", () => files.locator('[data-path="listed.txt"]').waitFor());
    assert.ok(asked.length <= 1, asked.join("\n"));
  });

  await step("the same deeper down, where the tree shows the folders above", async () => {
    await files.locator('[data-path="notes"]').dblclick();
    await files.locator('[data-path="notes/first.txt"]').waitFor();
    const asked = await whilePutting("notes/second.txt", () =>
      files.locator('[data-path="notes/second.txt"]').waitFor(),
    );
    assert.ok(asked.length <= 1, asked.join("\n"));
  });

  await step("nothing, if Files shows another folder", async () => {
    const asked = await whilePutting("elsewhere.txt", async () => {});
    assert.deepEqual(asked, []);
  });
});
