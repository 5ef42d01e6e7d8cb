import assert from "node:assert/strict";

import { anotherTab, confirm, get, open, picture, show, signIn, story, until } from "../lib.mjs";

const exec = (word) => `
objective = "${word}"

[[agent]]
role = "conductor"
[[agent.step]]
calls = [ { tool = "delegate", input = { agent = "terminal", task = "Do it: ${word}." } } ]
[[agent.step]]
expect = ["The terminal is done"]
calls = [ { tool = "finish", input = { summary = "It is over: ${word}." } } ]

[[agent]]
role = "terminal"
when = "${word}"
[[agent.step]]
calls = [ { tool = "exec", input = { command = "echo 1 > ${word}.txt\\necho 2 >> ${word}.txt", hosts = ["${word}.example"] } } ]
[[agent.step]]
text = "Done with it."
`;

/** Each run wants one command that has to be allowed; a test of a model is answered as well. */
const SCRIPTS = {
  ...Object.fromEntries(["refused", "granted", "cut", "aside"].map((word) => [`${word}.toml`, exec(word)])),
  "test.toml": `
objective = "Answer with the word"
[[agent]]
[[agent.step]]
text = "yes"
`,
};

story("what a person chooses for agents", { scripts: SCRIPTS }, async (here, step) => {
  const page = await signIn(here);
  const runs = page.locator('.win[data-app="runs"]');
  const settings = page.locator('.win[data-app="settings"]');
  const state = (word) => runs.locator("#run-state", { hasText: word });
  const card = runs.locator(".ask-card");

  async function prompt(text) {
    await page.keyboard.press("Control+k");
    await page.locator("#prompt").fill(text);
    await page.locator("#prompt").press("Enter");
  }

  async function close(window) {
    await window.getByRole("button", { name: "Close", exact: true }).click();
    await window.waitFor({ state: "detached" });
    // The keyboard goes to what is left a moment later, away from whatever has it by then.
    await until(() => page.evaluate(() => document.activeElement.closest("#area") !== null), true);
  }

  await step("a key is set and its model answers a test", async () => {
    await open(page, "settings");
    await settings.getByRole("navigation").getByRole("button", { name: "Models" }).click();
    const anthropic = settings.locator("li", { hasText: "Anthropic" }).first();
    await anthropic.getByRole("button", { name: "Set a key" }).click();
    await settings.getByLabel("Key of anthropic").fill(here.models.key);
    await settings.getByRole("button", { name: "Keep" }).first().click();
    await anthropic.getByRole("button", { name: "Replace" }).waitFor();
    const model = settings.locator("li", { hasText: "claude" }).filter({ hasText: "context" }).first();
    await model.getByRole("button", { name: "Test" }).click();
    await model.locator(".tried", { hasText: /Answered in \d+ ms. yes/ }).waitFor();
    await settings.getByLabel("How long calls wait in the outbox").selectOption("0");
    await close(settings);
  });

  await step("a budget is chosen in the prompt bar, and the run has it", async () => {
    await page.keyboard.press("Control+k");
    await page.locator("#prompt").fill("Do what is refused");
    await page.getByLabel("Budget").selectOption({ index: 2 });
    const chosen = (await page.getByLabel("Budget").locator("option:checked").innerText()).replace("up to ", "");
    // Whether a model is ready is asked anew by whoever comes to the prompt bar.
    await page.locator(".hit", { hasText: "Ask the choir" }).waitFor();
    await page.locator("#prompt").press("Enter");
    await card.getByText("Terminal wants to run a command").waitFor();
    await runs.locator(".run-head", { hasText: chosen }).waitFor();
  });

  await step("the command is shown to its last line, and is refused with a reason", async () => {
    await card.locator(".exact", { hasText: "echo 2 >> refused.txt" }).waitFor();
    await picture(page, "agents-two-lines");
    await card.getByRole("button", { name: "Deny" }).click();
    const why = card.getByLabel("Why not, if you want to say");
    await why.fill("not today");
    await why.press("Enter");
    await state("done").waitFor();
    await runs.locator(".step.failed", { hasText: "echo 1" }).first().click();
    await runs.locator(".detail", { hasText: "not today" }).waitFor();
    assert.equal(await get(page, "refused.txt"), 404);
  });

  await step("an answer that does not arrive brings the question back", async () => {
    await prompt("Do what is granted");
    await card.getByText("Terminal wants to run a command").waitFor();
    // The card in the corner leaves with the answer; the one in the run stays until the run goes on.
    await runs.getByRole("button", { name: "Minimise" }).click();
    const always = page.locator(".cards .ask-card").getByRole("button", { name: "Always" });
    await page.route("**/runs/*/gestures", (route) => route.abort());
    await always.click();
    await page.locator(".toast", { hasText: "does not answer" }).waitFor();
    await page.unroute("**/runs/*/gestures");
    await always.click();
    await show(page, "runs");
    await state("done").waitFor();
    assert.equal(await get(page, "granted.txt"), "1\n2\n");
  });

  await step("what is allowed always is listed, and revoked", async () => {
    await open(page, "settings");
    await settings.getByRole("navigation").getByRole("button", { name: "Models" }).click();
    await settings.getByRole("button", { name: "Revoke hosts granted.example" }).click();
    await settings.getByRole("button", { name: "Revoke hosts granted.example" }).waitFor({ state: "detached" });
    await close(settings);
  });

  await step("the end of a run that nobody looks at offers its undo", async () => {
    await prompt("Do what lies aside");
    await card.getByRole("button", { name: "Allow once" }).waitFor();
    await runs.getByRole("button", { name: "Minimise" }).click();
    await page.locator(".cards .ask-card").getByRole("button", { name: "Allow once" }).click();
    const toast = page.locator(".toast", { hasText: "Done: Do what lies aside" });
    await toast.getByRole("button", { name: "Undo" }).click();
    await page.locator("#ask .path", { hasText: "aside.txt" }).waitFor();
    await confirm(page, "Undo");
    await until(() => get(page, "aside.txt"), 404);
  });

  await step("an objective that did not arrive is sent again", async () => {
    await page.route("**/runs", (route) => (route.request().method() === "POST" ? route.abort() : route.continue()));
    await prompt("Do what is cut");
    await runs.getByRole("heading", { name: "Do what is cut" }).waitFor();
    await page.locator(".toast", { hasText: "This is sent when it does" }).waitFor();
    assert.equal(await card.count(), 0);
    await page.unroute("**/runs");
    await card.getByText("Terminal wants to run a command").waitFor();
    await runs.getByRole("button", { name: "Stop", exact: true }).click();
    await state("stopped").waitFor();
  });

  await step("an objective that did not arrive yet can be called off", async () => {
    let sent = 0;
    await page.route("**/runs", (route) => {
      if (route.request().method() !== "POST") return route.continue();
      sent += 1;
      return route.abort();
    });
    await prompt("Do what is cut");
    await until(() => sent > 0, true);
    await runs.getByRole("button", { name: "Stop", exact: true }).click();
    await state("stopped").waitFor();
    await page.waitForTimeout(1000);
    const before = sent;
    // It would be sent every two seconds.
    await page.waitForTimeout(5000);
    assert.equal(sent, before);
    await page.unroute("**/runs");
  });

  await step("an app whose code does not come says so, and comes when it is tried again", async () => {
    const other = await anotherTab(here, async (tab) => {
      // The desktop also fetches all apps by itself, one after the other: it is kept waiting for the first of them.
      await tab.route("**/assets/split_work*", () => {});
      await tab.route("**/assets/split_choir*", (route) => route.abort());
    });
    await other.bringToFront();
    const settings = await open(other, "settings");
    await settings.getByText("This app could not be fetched").waitFor();
    await picture(other, "app-not-fetched");
    await other.unroute("**/assets/split_choir*");
    await settings.getByRole("button", { name: "Try again" }).click();
    await settings.getByRole("navigation").waitFor();
  });
});
