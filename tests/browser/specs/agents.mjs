import assert from "node:assert/strict";

import {
  atRest, confirm, get, LAPTOP, open, PHONE, picture, ready, show, signIn, story, TABLET, until,
} from "../lib.mjs";

/** What the models say: one objective that comes to an end with an approval on the way, one that takes for ever. */
const SCRIPTS = {
  "tides.toml": `
objective = "tides"

[[agent]]
role = "conductor"
[[agent.step]]
text = "The terminal fetches the readings, then the writer writes."
calls = [ { tool = "delegate", input = { agent = "terminal", task = "Fetch the readings." } } ]
[[agent.step]]
expect = ["The terminal is done"]
calls = [ { tool = "delegate", input = { agent = "writer", task = "Write tides.md." } } ]
[[agent.step]]
expect = ["The writer is done"]
calls = [ { tool = "finish", input = { summary = "The note is in **tides.md**.", files = ["tides.md"] } } ]

[[agent]]
role = "terminal"
when = "readings"
[[agent.step]]
calls = [ { tool = "exec", input = { command = "echo 0.85 > readings.txt", hosts = ["tides.example"] } } ]
[[agent.step]]
text = "The readings are in readings.txt."

[[agent]]
role = "writer"
when = "tides.md"
[[agent.step]]
calls = [ { tool = "write", input = { path = "tides.md", text = "# Tides\\n" } } ]
[[agent.step]]
calls = [ { tool = "edit", input = { path = "tides.md", find = "# Tides\\n", replace = "# Tides\\n\\nIt rose to 0.85 m.\\n" } } ]
[[agent.step]]
text = "tides.md is done."
`,
  "slow.toml": `
objective = "for ever"

[[agent]]
role = "conductor"
when = "for ever"
[[agent.step]]
delay_ms = 600000
text = "Later."
`,
};

/** Types a line into the prompt bar, as a person would. */
async function prompt(page, text) {
  await page.keyboard.press("Control+k");
  await page.keyboard.type(text);
  await page.keyboard.press("Enter");
}

/** Notes when Enter was pressed last, and when the first step of a run was in the document: a figure, no promise. */
async function watchForAStep(page) {
  await page.evaluate(() => {
    globalThis.firstStep = {};
    const enter = (event) => event.key === "Enter" && (globalThis.firstStep.entered = performance.now());
    addEventListener("keydown", enter, { capture: true });
    const observer = new MutationObserver(() => {
      if (!document.querySelector('.win[data-app="runs"] .step')) return;
      globalThis.firstStep.shown = performance.now();
      removeEventListener("keydown", enter, { capture: true });
      observer.disconnect();
    });
    observer.observe(document.body, { childList: true, subtree: true });
  });
}

story("agents", { scripts: SCRIPTS }, async (here, step) => {
  const page = await signIn(here);
  const runs = page.locator('.win[data-app="runs"]');
  const state = (word) => runs.locator("#run-state", { hasText: word });
  const card = page.locator(".cards .ask-card");
  const row = (text) => runs.locator(".step").filter({ hasText: text }).first();

  await step("without a model the prompt says so and leads to the settings", async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("write a note on the tides");
    await page.locator(".hit", { hasText: "No model is ready" }).waitFor();
    await picture(page, "agents-no-model");
    await page.keyboard.press("Enter");
    await page.locator('.win[data-app="settings"] h1', { hasText: "Models" }).waitFor();
  });

  await step("a key is kept, of which only a hint is shown, and the model answers a test", async () => {
    const settings = page.locator('.win[data-app="settings"]');
    const anthropic = settings.locator("li", { hasText: "Anthropic" }).first();
    await anthropic.getByRole("button", { name: "Set a key" }).click();
    await settings.getByLabel("Key of anthropic").fill(here.models.key);
    await settings.getByRole("button", { name: "Keep" }).first().click();
    await anthropic.getByRole("button", { name: "Replace" }).waitFor();
    assert.ok(!(await settings.innerText()).includes(here.models.key));
    await settings.getByText("Permissions").waitFor();
    await settings.getByLabel("How long calls wait in the outbox").selectOption("300");
    await picture(page, "agents-models");
    await settings.getByRole("button", { name: "Close", exact: true }).click();
  });

  await step("an objective is shown as a run at once", async () => {
    await open(page, "files");
    await watchForAStep(page);
    await page.keyboard.press("Control+k");
    await page.keyboard.type("Write a note on the tides, with today's readings");
    // Whether a model is ready is asked anew by whoever comes to the prompt bar.
    await page.locator(".hit", { hasText: "Ask the choir" }).waitFor();
    await page.keyboard.press("Enter");
    await runs.getByRole("heading", { name: "Write a note on the tides" }).waitFor();
    await page.locator("#working").waitFor();
    await runs.locator(".step").first().waitFor();
    const { entered, shown } = await page.evaluate(() => globalThis.firstStep);
    console.log(`from Enter to the first event on screen ${(shown - entered).toFixed(1)} ms`);
  });

  await step("what cannot be undone is asked about over whatever is open, with the exact command", async () => {
    await show(page, "files");
    await card.getByText("Terminal wants to run a command").waitFor();
    await card.locator(".exact", { hasText: "echo 0.85 > readings.txt" }).waitFor();
    await card.locator(".chip", { hasText: "cannot be undone" }).waitFor();
    assert.equal(await get(page, "readings.txt"), 404);
    await picture(page, "agents-approval");
    // By keyboard: the region is one of those that F6 goes through.
    await until(
      async () => {
        await page.keyboard.press("F6");
        return page.evaluate(() => document.activeElement?.id);
      },
      "waiting",
    );
    await card.getByRole("button", { name: "Allow once" }).press("Enter");
  });

  await step("what was allowed lies in the outbox, where it can be called off, until it is let go", async () => {
    await card.getByText("Terminal is about to act outside").waitFor();
    await card.locator(".exact", { hasText: "echo 0.85 > readings.txt" }).waitFor();
    await card.getByText(/It goes out in \d/).waitFor();
    await card.getByRole("button", { name: "Call it off" }).waitFor();
    assert.equal(await get(page, "readings.txt"), 404);
    await picture(page, "agents-outbox");
    await card.getByRole("button", { name: "Let it go now" }).click();
    await card.waitFor({ state: "detached" });
  });

  await step("it comes to its end with a document, and says so", async () => {
    const toast = page.locator(".toast", { hasText: "Done: Write a note" });
    await toast.getByRole("button", { name: "Open" }).click();
    await state("done").waitFor();
    assert.equal(await get(page, "tides.md"), "# Tides\n\nIt rose to 0.85 m.\n");
    assert.equal(await get(page, "readings.txt"), "0.85\n");
    await runs.locator(".outcome strong", { hasText: "tides.md" }).waitFor();
    await runs.locator(".agent", { hasText: "Writer" }).locator(".chip", { hasText: "done" }).waitFor();
    await picture(page, "agents-done");
  });

  await step("a step shows what went in and what came out, and can be undone by itself", async () => {
    await row("edit tides.md").click();
    await runs.locator(".detail .output", { hasText: "0.85 m" }).first().waitFor();
    await runs.locator(".detail").getByRole("button", { name: "Undo" }).click();
    await confirm(page, "Undo");
    await until(() => get(page, "tides.md"), "# Tides\n");
    await row("edit tides.md").locator(".chip", { hasText: "undone" }).waitFor();
    await runs.locator(".detail").getByRole("button", { name: "Redo" }).click();
    await confirm(page, "Redo");
    await until(() => get(page, "tides.md"), (text) => /0\.85 m/.test(text));
    await runs.getByRole("button", { name: "Close the step" }).click();
  });

  await step("it is tried again from a step: what came of that is taken back and made anew", async () => {
    await row("edit tides.md").click();
    await runs.locator(".detail").getByRole("button", { name: "Try again from here" }).click();
    await page.locator("#ask .path", { hasText: "tides.md" }).waitFor();
    await picture(page, "agents-retry");
    await confirm(page, "Try again from here");
    await runs.locator(".step.undone", { hasText: "edit tides.md" }).waitFor();
    await runs.locator(".step:not(.undone)", { hasText: "edit tides.md" }).waitFor();
    await state("done").waitFor();
    await until(() => get(page, "tides.md"), "# Tides\n\nIt rose to 0.85 m.\n");
    await runs.getByRole("button", { name: "Close the step" }).click();
  });

  await step("the whole run is undone after a look at what that does, and redone", async () => {
    await show(page, "runs");
    await runs.getByRole("button", { name: "Undo the run" }).click();
    const ask = page.locator("#ask");
    await ask.locator(".path", { hasText: "tides.md" }).waitFor();
    await picture(page, "agents-undo");
    await confirm(page, "Undo");
    await until(() => get(page, "tides.md"), 404);
    assert.equal(await get(page, "readings.txt"), 404);
    await runs.getByRole("button", { name: "Redo the run" }).click();
    await confirm(page, "Redo");
    await until(() => get(page, "tides.md"), (text) => /0\.85 m/.test(text));
    const timeline = await open(page, "timeline");
    for (const verb of ["Undid", "Redid"]) {
      await timeline.locator(".op", { hasText: `${verb} “Write a note on the tides` }).first().waitFor();
    }
    await timeline.getByRole("button", { name: "Close", exact: true }).click();
    await show(page, "runs");
  });

  await step("a result opens in the editor", async () => {
    await runs.locator(".outcome").getByRole("button", { name: "tides.md" }).click();
    await page.locator('.win[data-app="editor"] .cm-content', { hasText: "0.85 m" }).waitFor();
  });

  await step("what is said while it works is a step, and stop ends it", async () => {
    await prompt(page, "Think for ever about the sea");
    await state("working").waitFor();
    const steer = runs.getByLabel("Steer", { exact: true });
    await steer.fill("Keep it short.");
    await steer.press("Enter");
    await row("Keep it short.").waitFor();
    await runs.getByRole("button", { name: "Pause" }).click();
    await state("paused").waitFor();
    await picture(page, "agents-paused");
    await runs.getByRole("button", { name: "Go on", exact: true }).click();
    await state("working").waitFor();
    await runs.getByRole("button", { name: "Stop" }).click();
    await state("stopped").waitFor();
    await page.locator("#working").waitFor({ state: "detached" });
  });

  await step("both are there after a reload, and it reads well on a tablet, a phone and in the dark", async () => {
    await page.reload();
    await ready(page);
    await page.locator('.win.front[data-app="runs"]').waitFor();
    await runs.locator(".entry").nth(1).click();
    await state("done").waitFor();
    for (const [name, viewport] of Object.entries({ tablet: TABLET, phone: PHONE, dark: LAPTOP })) {
      if (name === "dark") await prompt(page, ">theme dark");
      await page.setViewportSize(viewport);
      await atRest(runs);
      await atRest(page.locator("#taskbar"));
      await picture(page, `agents-${name}`);
    }
    await page.setViewportSize(LAPTOP);
  });
});
