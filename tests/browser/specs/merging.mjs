import assert from "node:assert/strict";

import { get, open, openFile, picture, put, signIn, story, until } from "../lib.mjs";

const TEXT = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n";

story("editor merges three ways", {}, async (here, step) => {
  const page = await signIn(here);
  const files = await open(page, "files");

  /** An editor whose first line the person has changed, while somebody else changed the file. */
  async function diverge(name, theirs, line = 1) {
    await put(page, name, TEXT);
    const editor = await openFile(page, files, name);
    await editor.locator(".cm-line").nth(line - 1).click();
    await page.keyboard.press("End");
    await page.keyboard.type(" of mine");
    await put(page, name, theirs);
    await editor.getByRole("alert").waitFor();
    return editor;
  }

  await step("changes to different lines are merged by themselves and saved", async () => {
    const editor = await diverge("apart.txt", TEXT.replace("six", "six of theirs"));
    await editor.getByRole("alert").getByRole("button", { name: "Merge" }).click();
    const both = "one of mine\ntwo\nthree\nfour\nfive\nsix of theirs\nseven\n";
    await until(() => get(page, "apart.txt"), both);
    await until(() => editor.locator(".cm-content").innerText(), (text) => text.includes("six of theirs"));
    await until(() => editor.getByRole("alert").count(), 0);
    assert.equal(await editor.locator(".clash").count(), 0);
    await page.locator(".toast", { hasText: "Merged" }).waitFor();
  });

  // Line 4 by both, line 1 by the other only.
  const theirs = TEXT.replace("one", "one of theirs").replace("four", "four of theirs");

  await step("where both changed the same line, both and what was before are shown, and nothing is saved", async () => {
    const editor = await diverge("meet.txt", theirs, 4);
    await editor.getByRole("alert").getByRole("button", { name: "Merge" }).click();
    const clash = editor.getByRole("group", { name: "Changed by both" });
    await clash.waitFor();
    assert.equal(await clash.count(), 1);
    assert.equal(await clash.getByRole("button", { name: "Yours" }).locator("pre").innerText(), "four of mine");
    assert.equal(await clash.getByRole("button", { name: "In the file" }).locator("pre").innerText(), "four of theirs");
    await clash.getByText("Before").click();
    await clash.locator("details pre").getByText("four", { exact: true }).waitFor();
    assert.equal(await editor.getByRole("button", { name: "Save the merge" }).isDisabled(), true);
    assert.equal(await get(page, "meet.txt"), theirs);
    await picture(page, "merge");
    await editor.getByRole("button", { name: "Cancel" }).click();
    await until(() => editor.locator(".cm-content").innerText(), (text) => text.includes("four of mine"));
    assert.equal(await get(page, "meet.txt"), theirs);
  });

  const outcomes = [
    ["mine", ["Yours"], "one of theirs\ntwo\nthree\nfour of mine\nfive\nsix\nseven\n"],
    ["theirs", ["In the file"], theirs],
    ["both", ["Yours", "Keep both"], "one of theirs\ntwo\nthree\nfour of mine\nfour of theirs\nfive\nsix\nseven\n"],
  ];
  for (const [name, presses, saved] of outcomes) {
    await step(`the person keeps ${name}, and the other's change elsewhere stays`, async () => {
      const editor = await diverge(`${name}.txt`, theirs, 4);
      await editor.getByRole("alert").getByRole("button", { name: "Merge" }).click();
      const clash = editor.getByRole("group", { name: "Changed by both" });
      for (const press of presses) await clash.getByRole("button", { name: press }).click();
      await editor.getByRole("button", { name: "Save the merge" }).click();
      await until(() => get(page, `${name}.txt`), saved);
      await until(() => editor.locator("header.title .sp").innerText(), "");
      await until(() => editor.getByRole("alert").count(), 0);
    });
  }

  await step("a file that changes once more while the person chooses is not overwritten", async () => {
    const editor = await diverge("again.txt", theirs, 4);
    await editor.getByRole("alert").getByRole("button", { name: "Merge" }).click();
    const clash = editor.getByRole("group", { name: "Changed by both" });
    await clash.getByRole("button", { name: "Yours" }).click();
    const later = theirs.replace("seven", "seven, later");
    await put(page, "again.txt", later);
    await editor.getByRole("button", { name: "Save the merge" }).click();
    await editor.getByRole("alert").waitFor();
    assert.equal(await get(page, "again.txt"), later);
    await editor.getByRole("alert").getByRole("button", { name: "Merge" }).click();
    await until(() => get(page, "again.txt"), "one of theirs\ntwo\nthree\nfour of mine\nfive\nsix\nseven, later\n");
  });
});
