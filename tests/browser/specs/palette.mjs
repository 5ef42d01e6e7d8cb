import assert from "node:assert/strict";

import { open, picture, put, show, signIn, story, until } from "../lib.mjs";

story("palette", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "notes/groceries.md", "# Groceries\n");
  await put(page, "Welcome.md", "# Hello\n");
  const hits = page.locator("#hits .hit");
  const chosen = page.locator("#hits .hit.on");

  /** Types into the prompt bar and waits for what its search finds. */
  async function type(text) {
    await page.keyboard.press("Control+k");
    await page.locator("#prompt").fill(text);
  }

  await step("an empty bar offers the apps, and what Enter does is written on the chosen line", async () => {
    await type("");
    await until(() => hits.count(), (count) => count >= 8);
    await until(() => chosen.locator("kbd").textContent(), "Enter opens it");
    await page.keyboard.press("Escape");
  });

  await step("the exact name of a file opens it, however fast Enter follows", async () => {
    await type("Welcome.md");
    await page.keyboard.press("Enter");
    await page.locator('.win[data-app="editor"][aria-label="Welcome.md"]').waitFor();
  });

  await step("a command is found by its plain name, without a sign before it", async () => {
    for (const [text, name] of [
      ["undo", "Undo the latest change"],
      ["dark", "Dark theme"],
      ["new file", "New file"],
      ["close all", "Close all windows"],
    ]) {
      await type(text);
      await until(() => chosen.locator("b").textContent(), name);
    }
    await type("dark");
    await until(() => chosen.locator("b").textContent(), "Dark theme");
    await picture(page, "palette-dark");
    await page.keyboard.press("Enter");
    await until(() => page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await type("light theme");
    await until(() => chosen.locator("b").textContent(), "Light theme");
    await page.keyboard.press("Enter");
    await until(() => page.evaluate(() => document.documentElement.dataset.theme), "light");
  });

  await step("a name with a wrong letter is found", async () => {
    await type("termnial");
    await until(() => chosen.locator("b").textContent(), "Terminal");
    await type("setings");
    await until(() => chosen.locator("b").textContent(), "Settings");
    await page.keyboard.press("Escape");
  });

  await step("a sentence is an objective, and a word that names something is not", async () => {
    await type("Say that it is done");
    await until(() => page.locator("#hits .hit-group").first().textContent(), "Agents");
    await until(() => chosen.locator("b").textContent(), "No model is ready to be asked");
    await type("files");
    await until(() => chosen.locator("b").textContent(), "Files");
    await until(() => hits.nth(1).locator("b").textContent(), "No model is ready to be asked");
    await picture(page, "palette-objective");
    await page.keyboard.press("Escape");
  });

  await step("a command that needs a word is completed first", async () => {
    await type("new file");
    await until(() => chosen.locator("kbd").textContent(), "Enter, then type more");
    await page.keyboard.press("Enter");
    await until(() => page.locator("#prompt").inputValue(), ">new file ");
    await page.keyboard.type("plan.md");
    await page.keyboard.press("Enter");
    await page.locator('.win[data-app="editor"][aria-label="plan.md"]').waitFor();
  });

  await step("what was chosen lately comes first in an empty bar", async () => {
    await type("groceries");
    await until(() => chosen.locator("b").textContent(), "groceries.md");
    await page.keyboard.press("Enter");
    await page.locator('.win[data-app="editor"][aria-label="groceries.md"]').waitFor();
    await page.reload();
    await page.locator("#link.live").waitFor();
    await type("");
    await until(() => chosen.locator("b").textContent(), "groceries.md");
    await until(() => page.locator("#hits .hit-group").first().textContent(), "Recent");
    await picture(page, "palette-recent");
    await page.keyboard.press("Escape");
  });
});

story("focus", {}, async (here, step) => {
  const page = await signIn(here);
  const inside = (selector) => page.evaluate((selector) => document.activeElement?.closest(selector) !== null, selector);

  await step("a terminal that comes to the front takes keys again, from the taskbar and by Ctrl-`", async () => {
    const terminal = await open(page, "terminal");
    await terminal.locator(".xterm-rows").waitFor();
    await terminal.locator(".xterm").click();
    await open(page, "files");
    await show(page, "terminal");
    await until(() => inside(".xterm"), true);
    await page.keyboard.type("echo from-$((40+2))\n");
    await until(() => terminal.locator(".xterm-rows").textContent(), (text) => text.includes("from-42"));
    await page.keyboard.press("Control+`");
    await until(() => page.locator(".win.front").getAttribute("data-app"), "files");
    await until(() => inside("[role=listbox]"), true);
    await page.keyboard.press("ArrowDown");
    await page.locator('[role=option][aria-selected="true"]').waitFor();
    await page.keyboard.press("Control+`");
    await until(() => inside(".xterm"), true);
  });

  await step("a press on the title bar keeps the control that had the keys", async () => {
    await page.locator(".win.front .title .name").click();
    await until(() => inside(".xterm"), true);
  });

  await step("the desktop itself is never selected, and keys do not reach a window behind", async () => {
    await page.keyboard.press("Alt+w");
    await page.keyboard.press("Alt+w");
    await until(() => page.locator(".win").count(), 0);
    await page.mouse.click(40, 400, { clickCount: 3 });
    await page.keyboard.press("Control+a");
    assert.equal(await page.evaluate(() => String(getSelection())), "");
    await page.keyboard.press("?");
    await page.locator("#sheet").waitFor();
  });
});
