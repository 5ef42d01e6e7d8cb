import assert from "node:assert/strict";

import { open, PHONE, picture, place, put, signIn, story, until } from "../lib.mjs";

story("the phone layout", { viewport: PHONE, isMobile: true, hasTouch: true }, async (here, step) => {
  const page = await signIn(here);

  await step("a window is a sheet over the whole width", async () => {
    await put(page, "note.md", "# Note\n");
    const files = await open(page, "files");
    await until(async () => (await place(files)).width, (width) => width >= PHONE.width - 2);
    await picture(page, "phone-files");
  });

  await step("nothing is wider than the screen", async () => {
    assert.deepEqual(await beyond(page), []);
  });

  await step("what can be pressed is large enough for a finger", async () => {
    const small = await page.locator("#taskbar button:visible").evaluateAll((all) =>
      all.filter((e) => e.getBoundingClientRect().height < 32).map((e) => e.getAttribute("aria-label") ?? e.textContent),
    );
    assert.deepEqual(small, []);
  });

  await step("an app replaces another and both are kept", async () => {
    await open(page, "settings");
    await picture(page, "phone-settings");
    assert.equal(await page.locator(".win").count(), 2);
    assert.deepEqual(await beyond(page), []);
  });
});

/** What is cut off at the right of the screen. Only the list of apps and that of pages are meant to scroll sideways. */
function beyond(page) {
  return page.locator("#taskbar, #taskbar *, .win.front, .win.front *").evaluateAll((all, width) => {
    const isCut = (part) => part.checkVisibility() && part.getBoundingClientRect().right > width + 1;
    const cut = all.filter((part) => isCut(part) && !part.closest(".apps, .rail"));
    return cut.map((part) => part.outerHTML.slice(0, 100));
  }, PHONE.width);
}
