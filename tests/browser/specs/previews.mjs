import assert from "node:assert/strict";

import { pdf, png, wav, webm } from "../fixtures.mjs";
import { open, picture, put, putBytes, signIn, story, until } from "../lib.mjs";

const TEAL = [0, 128, 128];
const BROKEN = ["broken.png", "broken.pdf", "broken.wav", "broken.webm"];

story("previews in Files", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "plain.txt", "one line\nand <b>another</b>\n");
  await put(page, "notes.md", "# Title\n\nSome *soft* words, a [link](https://example.org) and `code`.\n\n- one\n- two\n\n<script>globalThis.ran = true</script>\n");
  await putBytes(page, "teal.png", png(40, 20, TEAL));
  await putBytes(page, "pages.pdf", pdf(3, TEAL));
  for (const name of BROKEN) await putBytes(page, name, "something else");
  await putBytes(page, "tone.wav", wav(2));
  await putBytes(page, "film.webm", await webm(page));
  const files = await open(page, "files");

  async function preview(name) {
    await files.locator(`[data-path="${name}"]`).click();
    const shown = files.getByLabel(`Preview of ${name}`);
    await shown.waitFor();
    return shown;
  }

  await step("text is shown as it is", async () => {
    const shown = await preview("plain.txt");
    await until(() => shown.locator("pre").innerText(), (text) => text.includes("and <b>another</b>"));
  });

  await step("Markdown is shown as a page, and what it holds of HTML does nothing", async () => {
    const shown = await preview("notes.md");
    await shown.getByRole("heading", { name: "Title" }).waitFor();
    assert.equal(await shown.locator("em").innerText(), "soft");
    assert.deepEqual(await shown.locator("li").allInnerTexts(), ["one", "two"]);
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
  });

  await step("a picture is drawn in its size and colour", async () => {
    const image = (await preview("teal.png")).getByRole("img", { name: "teal.png" });
    await image.waitFor();
    const seen = await image.evaluate(async (element) => {
      await element.decode();
      const canvas = document.createElement("canvas");
      const pen = canvas.getContext("2d");
      pen.drawImage(element, 0, 0);
      return [element.naturalWidth, element.naturalHeight, ...pen.getImageData(5, 5, 1, 1).data.slice(0, 3)];
    });
    assert.deepEqual(seen, [40, 20, ...TEAL]);
    await picture(page, "preview-image");
  });

  await step("the pages of a PDF are drawn", async () => {
    const shown = await preview("pages.pdf");
    await until(() => shown.locator(".pdf-page").count(), 3);
    const canvas = shown.locator(".pdf-page canvas").first();
    await canvas.waitFor();
    const middle = () =>
      canvas.evaluate((element) => {
        const { width, height } = element;
        return [...element.getContext("2d").getImageData(width >> 1, height >> 1, 1, 1).data].slice(0, 3).join();
      });
    await until(middle, TEAL.join());
    await picture(page, "preview-pdf");
  });

  await step("a sound can be played to its end", async () => {
    const audio = (await preview("tone.wav")).locator("audio");
    await audio.waitFor();
    await until(() => audio.evaluate((element) => element.duration), 2);
    assert.equal(await audio.evaluate((element) => element.controls), true);
    await audio.evaluate((element) => {
      element.muted = true;
      element.currentTime = 1.9;
      return element.play();
    });
    await until(() => audio.evaluate((element) => element.ended), true);
  });

  await step("a film has a picture and moves", async () => {
    const video = (await preview("film.webm")).locator("video");
    await video.waitFor();
    await until(() => video.evaluate((element) => [element.videoWidth, element.videoHeight].join()), "64,48");
    await video.evaluate((element) => {
      element.muted = true;
      return element.play();
    });
    await until(() => video.evaluate((element) => element.currentTime), (time) => time > 0.1);
    await picture(page, "preview-video");
  });

  await step("what does not hold what its name promises is said so", async () => {
    for (const name of BROKEN) {
      const shown = await preview(name);
      await shown.getByText("cannot be shown here").waitFor();
    }
  });

  await step("a preview follows its file", async () => {
    await preview("plain.txt");
    await put(page, "plain.txt", "written anew\n");
    await files.getByLabel("Preview of plain.txt").getByText("written anew").waitFor();
  });
});
