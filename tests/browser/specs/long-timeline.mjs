import assert from "node:assert/strict";

import { open, picture, signIn, story, until } from "../lib.mjs";
import { settings } from "../seed.mjs";

/** `ROWS=100000` for the figure in docs/performance.md; the spec has what can be made in a few seconds. */
const ROWS = Number(process.env.ROWS ?? 20_000);
const AT_MOST = 80;

story("a long timeline", {}, async (here, step) => {
  const began = performance.now();
  await settings(here.computer, ROWS);
  console.log(`${ROWS} operations made in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  const page = await signIn(here);
  const timeline = await open(page, "timeline");
  const list = timeline.getByRole("listbox", { name: "Operations, newest first" });
  const rows = timeline.locator(".op");
  const blank = timeline.locator(".op.blank");
  const top = () => list.evaluate((element) => element.scrollTop);
  const counted = async () => Number((await timeline.locator(".scrub-now").innerText()).replace(/\D/g, ""));

  await step("all are counted, and few are in the document", async () => {
    await until(counted, (count) => count >= ROWS, { within: 60_000 });
    await rows.first().waitFor();
    assert.ok((await rows.count()) <= AT_MOST, `${await rows.count()} rows`);
  });

  await step("scrolling through all of them keeps few in the document", async () => {
    const seen = await list.evaluate(async (element) => {
      const [frames, steps] = [[], 150];
      let most = 0;
      let last = performance.now();
      const end = element.scrollHeight - element.clientHeight;
      for (let step = 0; step <= steps; step += 1) {
        element.scrollTop = (end * step) / steps;
        const now = await new Promise(requestAnimationFrame);
        frames.push(now - last);
        last = now;
        most = Math.max(most, element.querySelectorAll(".op").length);
      }
      return { frames: frames.slice(2).toSorted((a, b) => a - b), most };
    });
    const at = (share) => seen.frames[Math.floor((seen.frames.length - 1) * share)].toFixed(1);
    console.log(`scrolling: ${seen.frames.length} frames, median ${at(0.5)} ms, 95% ${at(0.95)} ms, worst ${at(1)} ms`);
    assert.ok(seen.most <= AT_MOST, `${seen.most} rows`);
  });

  await step("at the end is the oldest", async () => {
    await list.evaluate((element) => (element.scrollTop = element.scrollHeight));
    await until(() => rows.last().innerText(), (text) => text.includes("Set up for"));
    await until(() => blank.count(), 0);
    const [frame, row] = [await list.boundingBox(), await rows.last().boundingBox()];
    assert.ok(Math.abs(frame.y + frame.height - row.y - row.height) <= 2, JSON.stringify([frame, row]));
    await picture(page, "timeline-oldest");
  });

  await step("rows in the middle are fetched when they are looked at, in their order", async () => {
    await list.evaluate((element) => (element.scrollTop = element.scrollHeight / 2));
    // All rows are read at one moment: those of the end stand there until the list has heard of the scrolling.
    const read = (rows) => rows.map((row) => Number(row.querySelector(".w")?.innerText.match(/to (\d+)$/)?.[1]));
    // A hundred are made at once, so neighbours may have changed places.
    const near = (number) => Math.abs(number - ROWS / 2) < 400;
    const numbers = await until(() => rows.evaluateAll(read), (numbers) => numbers.length > 0 && numbers.every(near));
    assert.ok(numbers[0] - numbers.at(-1) > -200, numbers.join());
  });

  await step("what happens meanwhile does not move the reader away", async () => {
    const [before, known] = [await top(), await counted()];
    await settings(here.computer, 3);
    await until(counted, (count) => count >= known + 3);
    await until(() => blank.count(), 0);
    assert.equal(await top(), before);
  });

  await step("words find a row among all", async () => {
    await timeline.getByLabel("Words in the row").fill("Welcome.md");
    await until(async () => (await rows.allInnerTexts()).join(), (text) => /^[^,]*Welcome\.md[^,]*$/.test(text));
  });
});
