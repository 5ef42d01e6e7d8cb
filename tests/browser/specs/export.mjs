import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { png } from "../fixtures.mjs";
import { choir, Computer, get, guest, open, picture, put, putBytes, ready, signIn, story, until } from "../lib.mjs";

story("export and import", {}, async (here, step) => {
  const page = await signIn(here);
  const image = png(300, 300, [9, 99, 199]);
  const large = "0123456789abcdef".repeat(8192);
  await put(page, "poem.txt", "first\n");
  await put(page, "poem.txt", "first\nsecond\n");
  await put(page, "deep/large.txt", large);
  await putBytes(page, "deep/blue.png", image);
  const settings = await open(page, "settings");
  await settings.getByRole("button", { name: "Storage" }).click();
  const archive = join(here.computer.data, "everything.zip");

  await step("everything is exported as one archive", async () => {
    const download = page.waitForEvent("download");
    await settings.getByRole("button", { name: "Export everything" }).click();
    const file = await download;
    assert.equal(file.suggestedFilename(), "choir-export.zip");
    await file.saveAs(archive);
    assert.equal(readFileSync(archive).subarray(0, 4).toString("latin1"), "PK\x03\x04");
  });

  await step("the command line adopts it, log and all, and finds it whole", async () => {
    const copy = join(here.computer.data, "copy");
    choir(["init", copy, "--user", "owner"]);
    choir(["-C", copy, "import", archive]);
    choir(["-C", copy, "verify"]);
    assert.equal(choir(["-C", copy, "cat", "poem.txt"]).toString(), "first\nsecond\n");
    assert.equal(readFileSync(join(copy, "deep/large.txt"), "utf8"), large);
    assert.deepEqual(readFileSync(join(copy, "deep/blue.png")), image);
    assert.match(choir(["-C", copy, "log", "--path", "poem.txt", "--all"]).toString(), /create[^]*edit/i);
  });

  await step("an archive that is imported brings the files that are not there, and the import is undone", async (t) => {
    const second = await Computer.start();
    t.after(() => second.remove());
    const other = await guest(here);
    t.after(() => other.context().close());
    await other.goto(second.link);
    await ready(other);
    await other.locator("#tour-skip").click();
    const hers = await open(other, "settings");
    await hers.getByRole("button", { name: "Storage" }).click();
    const chooser = other.waitForEvent("filechooser");
    await hers.getByRole("button", { name: "Import…" }).click();
    await (await chooser).setFiles(archive);
    await until(() => get(other, "poem.txt"), "first\nsecond\n");
    assert.equal(await get(other, "deep/large.txt"), large);
    const toast = other.locator(".toast", { hasText: "Imported" });
    await toast.waitFor();
    await picture(other, "imported");
    await toast.getByRole("button", { name: "Undo" }).click();
    await until(() => get(other, "poem.txt"), 404);
  });

  async function choose(file) {
    const chooser = page.waitForEvent("filechooser");
    const answer = page.waitForResponse("**/api/v1/import*");
    await settings.getByRole("button", { name: "Import…" }).click();
    await (await chooser).setFiles(file);
    return (await answer).status();
  }

  await step("files that differ are not overwritten: the import is refused as a whole", async () => {
    await put(page, "poem.txt", "third\n");
    assert.equal(await choose(archive), 409);
    await page.locator(".toast.bad", { hasText: "import into another folder" }).waitFor();
    assert.equal(await get(page, "poem.txt"), "third\n");
  });

  await step("the same archive is chosen again, for a folder", async () => {
    await settings.getByLabel("Folder to import into").fill("from/laptop");
    assert.equal(await choose(archive), 200);
    await until(() => get(page, "from/laptop/poem.txt"), "first\nsecond\n");
    assert.equal(await get(page, "from/laptop/deep/large.txt"), large);
    assert.equal(await get(page, "poem.txt"), "third\n");
    await picture(page, "imported-into");
  });

  await step("what is no archive is refused in words", async () => {
    await choose({ name: "no.zip", mimeType: "application/zip", buffer: Buffer.from("not a zip") });
    await page.locator(".toast.bad", { hasText: /archive|export/i }).waitFor();
    await picture(page, "import-refused");
  });
});
