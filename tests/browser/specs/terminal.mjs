import assert from "node:assert/strict";

import { anotherTab, get, open, picture, ready, show, signIn, story, until } from "../lib.mjs";

story("terminal", {}, async (here, step) => {
  const page = await signIn(here);
  const terminal = await open(page, "terminal");
  const rows = (of) => of.locator(".xterm-rows").last().innerText();
  await terminal.locator(".xterm-rows").waitFor();

  await step("what is typed runs, and its output is shown", async () => {
    await terminal.locator(".part-terminal").click();
    await page.keyboard.type("echo $((6*7)) žluťoučký\n");
    await until(() => rows(terminal), (text) => /42 žluťoučký/.test(text));
    await picture(page, "terminal");
  });

  await step("colours keep to the page's policy", async () => {
    await page.keyboard.type("printf '\\033[38;2;255;128;0morange\\033[0m\\n'\n");
    await until(
      () => terminal.locator(".xterm-rows span", { hasText: /^orange$/ }).evaluateAll((all) => all.map((e) => e.style.color)),
      (all) => all.some((colour) => colour === "rgb(255, 128, 0)"),
    );
  });

  await step("what it wrote is still there after a reload", async () => {
    await page.reload();
    await ready(page);
    await until(() => rows(page.locator('.win[data-app="terminal"]')), (text) => /42 žluťoučký/.test(text));
  });

  await step("a second tab shows the same shell", async () => {
    const other = await anotherTab(here);
    const same = other.locator('.win[data-app="terminal"]');
    await until(() => rows(same), (text) => /42 žluťoučký/.test(text));
    await page.locator(".part-terminal:not([hidden])").click();
    await page.keyboard.type("echo both-$((1+1))\n");
    await until(() => rows(same), (text) => /both-2/.test(text));
    await other.close();
  });

  await step("endless output neither freezes the page nor is lost at the end", async () => {
    await page.locator(".part-terminal:not([hidden])").click();
    await page.keyboard.type("yes choir | head -n 400000; echo finished-$((2+3))\n");
    let slowest = 0;
    const deadline = Date.now() + 60_000;
    while (Date.now() < deadline && !/finished-5/.test(await rows(terminal))) {
      const before = Date.now();
      await page.evaluate(() => new Promise((done) => setTimeout(done, 0)));
      slowest = Math.max(slowest, Date.now() - before);
    }
    assert.match(await rows(terminal), /finished-5/);
    console.log(`the page answered within ${slowest} ms throughout`);
  });

  await step("a shell in a new tab has a size of its own, and closes", async () => {
    await terminal.getByRole("button", { name: "New shell in a cell" }).click();
    await until(() => terminal.getByRole("tab").count(), 2);
    await page.locator(".part-terminal:not([hidden]) .xterm-rows").waitFor();
    await page.keyboard.type("stty size\n");
    await until(() => page.locator(".part-terminal:not([hidden]) .xterm-rows").innerText(), (text) => {
      const size = text.match(/^(\d+) (\d+)\s*$/m);
      return size && size[2] !== "80";
    });
    await terminal.getByRole("button", { name: "Close shell 2" }).click();
    await until(() => terminal.getByRole("tab").count(), 1);
  });

  await step("the owner may have a plain shell beside it, which says that it is one", async () => {
    await terminal.getByRole("button", { name: "Which kind of shell" }).click();
    await page.getByRole("menuitem", { name: "Plain shell" }).click();
    const tab = terminal.getByRole("tab", { name: "Shell 2" });
    await tab.getByText("plain").waitFor();
    await page.locator(".part-terminal:not([hidden]) .xterm-rows").waitFor();
    await page.locator(".part-terminal:not([hidden])").click();
    await page.keyboard.type("echo plain-$(id -u)-$((1+1))\n");
    const uid = process.getuid();
    await until(
      () => page.locator(".part-terminal:not([hidden]) .xterm-rows").innerText(),
      (text) => text.includes(`plain-${uid}-2`),
    );
    await picture(page, "terminal-kinds");
    await terminal.getByRole("button", { name: "Close shell 2" }).click();
    await until(() => terminal.getByRole("tab").count(), 1);
  });

  await step("what the shell changes in the workspace is in the timeline", async () => {
    await page.locator(".part-terminal:not([hidden])").click();
    await page.keyboard.type("echo made > by-shell.txt\n");
    await until(() => get(page, "by-shell.txt"), "made\n");
    const timeline = await open(page, "timeline");
    await timeline.getByText("by-shell.txt").first().waitFor();
  });

  await step("answers of the screen are not typed again after a reload", async () => {
    await show(page, "terminal");
    await page.locator(".part-terminal:not([hidden])").click();
    // A program asks where the cursor is, what the terminal is and which colours it has, and reads what it is told.
    const asks = "printf '\\033[6n\\033[c\\033]10;?\\007\\033]11;?\\007'";
    await page.keyboard.type(`stty raw -echo; ${asks}; dd bs=1 count=9 2>/dev/null >/dev/null; sleep 1; stty sane; echo asked-$((3*4))\n`);
    await until(() => rows(terminal), (text) => /asked-12/.test(text));
    // What is left of the answers is on the line; it is thrown away.
    await page.keyboard.press("Control+u");
    await page.keyboard.type("clear\n");
    await page.reload();
    await ready(page);
    const again = await show(page, "terminal");
    await page.locator(".part-terminal:not([hidden])").click();
    await page.keyboard.type("echo quiet-$((5*5))\n");
    await until(() => rows(again), (text) => /quiet-25/.test(text));
    const shown = await rows(again);
    assert.doesNotMatch(shown.slice(0, shown.indexOf("quiet-25")), /rgb:|R.*;|not found/, shown);
  });

  await step("a shell that ended says so", async () => {
    await show(page, "terminal");
    await page.locator(".part-terminal:not([hidden])").click();
    await page.keyboard.type("exit\n");
    await terminal.getByText("This shell has ended").waitFor();
  });
});
