import assert from "node:assert/strict";

import { atRest, drag, LAPTOP, open, picture, place, signIn, story, until } from "../lib.mjs";

const { width: W, height: H } = LAPTOP;

story("windows snap to halves and quarters", {}, async (here, step) => {
  const page = await signIn(here);
  const window = await open(page, "files");
  const own = await atRest(window);
  const floor = await page.locator("#taskbar").evaluate((bar) => bar.getBoundingClientRect().top);

  async function pull(to) {
    const { x, y, width } = await atRest(window);
    await drag(page, { x: x + width / 3, y: y + 16 }, to);
    return atRest(window);
  }

  /** That a window fills the part of the screen that these sides name, up to a gap. */
  function fills(at, { left = 0, right = W, top = 0, bottom = floor }) {
    const slack = 16;
    const sides = [at.x - left, right - (at.x + at.width), at.y - top, bottom - (at.y + at.height)];
    assert.ok(sides.every((gap) => gap >= 0 && gap <= slack), `${JSON.stringify(at)} leaves ${sides}`);
  }

  const zones = [
    ["the left edge", "the left half", { x: 1, y: H / 2 }, { right: W / 2 }],
    ["the right edge", "the right half", { x: W - 2, y: H / 2 }, { left: W / 2 }],
    ["the top left corner", "that quarter", { x: 1, y: 12 }, { right: W / 2, bottom: floor / 2 }],
    ["the top right corner", "that quarter", { x: W - 2, y: 12 }, { left: W / 2, bottom: floor / 2 }],
    ["the bottom left corner", "that quarter", { x: 1, y: floor - 12 }, { right: W / 2, top: floor / 2 }],
    ["the bottom right corner", "that quarter", { x: W - 2, y: floor - 12 }, { left: W / 2, top: floor / 2 }],
    ["the top edge", "the screen", { x: W / 2, y: 0 }, {}],
  ];
  for (const [edge, part, to, sides] of zones) {
    await step(`dragged to ${edge}, a window fills ${part}`, async () => {
      fills(await pull(to), sides);
    });
    await step(`pulled away from ${edge}, it has its own size again`, async () => {
      const now = await pull({ x: W / 2 + 40, y: 320 });
      assert.deepEqual([now.width, now.height], [own.width, own.height]);
    });
  }

  await step("where it would go is shown before it is let go, and Escape takes the drag back", async () => {
    const before = await atRest(window);
    const shadow = page.locator("#snap");
    await page.mouse.move(before.x + before.width / 3, before.y + 16);
    await page.mouse.down();
    await page.mouse.move(W - 40, 400, { steps: 5 });
    await until(() => shadow.isVisible(), false);
    await page.mouse.move(W - 2, 400, { steps: 3 });
    await until(() => shadow.isVisible(), true);
    fills(await place(shadow), { left: W / 2 });
    await picture(page, "snap-preview");
    await page.keyboard.press("Escape");
    await until(() => shadow.isVisible(), false);
    await page.mouse.up();
    assert.deepEqual(await atRest(window), before);
  });

  await step("two halves lie side by side", async () => {
    await pull({ x: 1, y: H / 2 });
    const other = await open(page, "timeline");
    const { x, y, width } = await atRest(other);
    await drag(page, { x: x + width / 3, y: y + 16 }, { x: W - 2, y: H / 2 });
    const [one, two] = [await atRest(window), await atRest(other)];
    assert.ok(one.x + one.width <= two.x, JSON.stringify([one, two]));
    assert.deepEqual([one.y, one.height], [two.y, two.height]);
    await picture(page, "snap-halves");
  });
});
