import assert from "node:assert/strict";

import {
  atRest, confirm, get, guest, LAPTOP, open, PHONE, picture, put, ready, show, signIn, story, TABLET, until,
} from "../lib.mjs";

/** Types a line into the prompt bar, as a person would. */
async function prompt(page, text) {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

const shell = (of) => of.locator(".part-terminal:not([hidden])");
const screen = (of) => shell(of).locator(".xterm-rows").innerText();

async function type(page, window, line) {
  // Until its screen is there, a shell takes no keys.
  await shell(window).locator(".xterm-rows").waitFor();
  await shell(window).click();
  await page.keyboard.type(`${line}\n`);
}

story("cells", {}, async (here, step) => {
  const page = await signIn(here);
  for (const name of ["one", "two", "three"]) await put(page, `src/${name}.txt`, `this is ${name}\n`);
  const timeline = page.locator('.win[data-app="timeline"]');
  const detail = timeline.locator(".detail");
  const badge = (text) => detail.locator("h3 .chip", { hasText: text });
  const rows = (text) => timeline.locator(".op:not(.blank)").filter({ hasText: text });
  const row = (text) => rows(text).first();

  await step("a new terminal is in a cell, and sees the workspace and nothing else", async () => {
    const terminal = await open(page, "terminal");
    await terminal.getByRole("tab", { name: "Cell 1" }).waitFor();
    await type(page, terminal, `id -un; ls; ls ${here.computer.data} || echo hidden-$((6*7))`);
    const text = await until(() => screen(terminal), (text) => /hidden-42/.test(text));
    assert.match(text, /^choir\s*$/m);
    assert.match(text, /Welcome\.md/);
    await picture(page, "cell-terminal");
  });

  await step("what it writes is in Files and one operation in the timeline, and undo takes it back", async () => {
    const terminal = await show(page, "terminal");
    // The system may tell of a change a little later than the shell of its end, and that would be another operation.
    await type(page, terminal, "for i in 1 2 3; do echo $i > note-$i.txt; done; sleep 0.3");
    await until(() => get(page, "note-3.txt"), "3\n");
    const files = await open(page, "files");
    await files.locator('[data-path="note-2.txt"]').waitFor();
    await open(page, "timeline");
    const made = row("note-");
    await made.getByText(/3 files/).waitFor();
    await made.hover();
    await made.getByRole("button", { name: /^Undo/ }).click();
    await confirm(page, "Undo");
    await until(() => get(page, "note-3.txt"), 404);
    await files.locator('[data-path="note-2.txt"]').waitFor({ state: "detached" });
  });

  await step("a command from the prompt is one row with its diff, output and exit code, and undo restores", async () => {
    await prompt(page, "> run rm -rf src; echo gone; exit 3");
    await badge("exit 3").waitFor();
    await detail.locator(".output").getByText("gone").waitFor();
    await detail.getByText("Exit code 3").waitFor();
    await detail.locator(".path", { hasText: "src/two.txt" }).waitFor();
    await until(() => rows("rm -rf src").count(), 1);
    assert.equal(await get(page, "src/two.txt"), 404);
    await picture(page, "command");
    await detail.getByRole("button", { name: "Undo" }).click();
    await confirm(page, "Undo");
    await until(() => get(page, "src/two.txt"), "this is two\n");
  });

  await step("a dry run shows its diff and changes nothing; discarded, all is as before", async () => {
    await prompt(page, "> dry echo changed > src/one.txt; rm src/two.txt; exit 3");
    await badge("dry run · exit 3").waitFor();
    await detail.getByText("Exit code 3").waitFor();
    await detail.locator(".path", { hasText: "src/two.txt" }).waitFor();
    assert.equal(await get(page, "src/one.txt"), "this is one\n");
    await picture(page, "command-dry");
    await detail.getByRole("button", { name: "Discard" }).click();
    await badge("discarded").waitFor();
    assert.equal(await get(page, "src/one.txt"), "this is one\n");
    assert.equal(await get(page, "src/two.txt"), "this is two\n");
  });

  await step("accepted, it is kept", async () => {
    await prompt(page, "> dry echo kept > src/one.txt");
    await badge("dry run · exit 0").waitFor();
    await detail.getByRole("button", { name: "Accept" }).click();
    await until(() => get(page, "src/one.txt"), "kept\n");
    await badge(/^\s*exit 0\s*$/).waitFor();
  });

  await step("a command that runs shows what it prints, and can be stopped", async () => {
    await prompt(page, "> run echo at work; touch half-done; sleep 1000");
    await detail.locator(".output").getByText("at work").waitFor();
    await row("sleep 1000").locator(".chip", { hasText: "running" }).waitFor();
    await picture(page, "command-running");
    await detail.getByRole("button", { name: "Stop" }).click();
    await detail.getByText("You stopped it").waitFor();
    assert.equal(await get(page, "half-done"), 404);
  });

  await step("long output is folded until somebody wants all of it", async () => {
    await prompt(page, "> run seq 1 200");
    await detail.getByRole("button", { name: "Show all 200 lines" }).click();
    await detail.locator(".output").getByText("200").waitFor();
  });

  await step("it reads well on a tablet, a phone and in the dark", async () => {
    for (const [name, viewport] of Object.entries({ tablet: TABLET, phone: PHONE, dark: LAPTOP })) {
      if (name === "dark") await prompt(page, "> theme dark");
      await page.setViewportSize(viewport);
      await detail.waitFor();
      await atRest(timeline);
      await atRest(page.locator("#taskbar"));
      await picture(page, `command-${name}`);
    }
    await page.setViewportSize(LAPTOP);
  });

  await step("somebody who is invited has a cell over their own files, and no shell", async () => {
    const invited = await page.evaluate(async () => {
      const headers = { "content-type": "application/json" };
      const answer = await fetch("/api/v1/auth/invitations", { method: "POST", headers, body: '{"name":"Grace"}' });
      return answer.json();
    });
    const other = await guest(here);
    await other.goto(invited.link);
    await ready(other);
    await other.locator("#tour-skip").click();
    const terminal = await open(other, "terminal");
    await terminal.getByRole("tab", { name: "Cell 1" }).waitFor();
    assert.equal(await terminal.getByRole("button", { name: "Which kind of shell" }).count(), 0);
    await type(other, terminal, "ls; cat src/one.txt || echo none-$((6*7))");
    const text = await until(() => screen(terminal), (text) => /none-42/.test(text));
    assert.match(text, /Welcome\.md/);
    await picture(other, "cell-guest");
  });
});
