import assert from "node:assert/strict";

import { anotherTab, get, open, picture, signIn, story, until } from "../lib.mjs";

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
    await page.keyboard.type(text);
    await page.keyboard.press("Enter");
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
    await settings.getByRole("button", { name: "Close", exact: true }).click();
  });

  await step("a budget is chosen in the prompt bar, and the run has it", async () => {
    await page.keyboard.press("Control+k");
    await page.keyboard.type("Do what is refused");
    await page.getByLabel("Budget").selectOption({ index: 2 });
    const chosen = (await page.getByLabel("Budget").locator("option:checked").innerText()).replace("up to ", "");
    await page.locator("#prompt").focus();
    await page.keyboard.press("Enter");
    await card.getByText("Terminal wants to run a command").waitFor();
    await runs.locator(".run-head", { hasText: chosen }).waitFor();
  });

  await step("the command is shown to its last line, and is refused with a reason", async () => {
    await card.locator(".exact", { hasText: "echo 2 >> refused.txt" }).waitFor();
    await picture(page, "agents-two-lines");
    await card.getByRole("button", { name: "Deny" }).click();
    await card.getByLabel("Why not, if you want to say").fill("not today");
    await page.keyboard.press("Enter");
    await state("done").waitFor();
    await runs.locator(".step.failed", { hasText: "echo 1" }).first().click();
    await runs.locator(".detail", { hasText: "not today" }).waitFor();
    assert.equal(await get(page, "refused.txt"), 404);
  });

  await step("an answer that does not arrive brings the question back", async () => {
    await prompt("Do what is granted");
    await card.getByText("Terminal wants to run a command").waitFor();
    await page.route("**/gestures", (route) => route.abort());
    await card.getByRole("button", { name: "Always" }).click();
    await page.locator(".toast", { hasText: "does not answer" }).waitFor();
    await page.unroute("**/gestures");
    await card.getByRole("button", { name: "Always" }).click();
    await state("done").waitFor();
    assert.equal(await get(page, "granted.txt"), "1\n2\n");
  });

  await step("what is allowed always is listed, and revoked", async () => {
    await open(page, "settings");
    await settings.getByRole("navigation").getByRole("button", { name: "Models" }).click();
    await settings.getByRole("button", { name: "Revoke hosts granted.example" }).click();
    await settings.getByRole("button", { name: "Revoke hosts granted.example" }).waitFor({ state: "detached" });
    await settings.getByRole("button", { name: "Close", exact: true }).click();
  });

  await step("the end of a run that nobody looks at offers its undo", async () => {
    await prompt("Do what lies aside");
    await card.getByRole("button", { name: "Allow once" }).waitFor();
    await runs.getByRole("button", { name: "Minimise" }).click();
    await page.locator(".cards .ask-card").getByRole("button", { name: "Allow once" }).click();
    const toast = page.locator(".toast", { hasText: "Done: Do what lies aside" });
    await toast.getByRole("button", { name: "Undo" }).click();
    await page.locator("#ask .path", { hasText: "aside.txt" }).waitFor();
    await page.locator("#ask").getByRole("button", { name: "Undo", exact: true }).click();
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
    await page.route("**/runs", (route) => (route.request().method() === "POST" ? route.abort() : route.continue()));
    await prompt("Do what is cut");
    await runs.getByRole("heading", { name: "Do what is cut" }).waitFor();
    await runs.getByRole("button", { name: "Stop", exact: true }).click();
    await state("stopped").waitFor();
    await page.unroute("**/runs");
    await page.waitForTimeout(2500);
    assert.equal(await card.count(), 0);
  });

  await step("an app whose code does not come says so, and comes when it is tried again", async () => {
    const other = await anotherTab(here, (tab) => tab.route("**/assets/split_*", (route) => route.abort()));
    await other.bringToFront();
    const git = await open(other, "git");
    await git.getByText("This app could not be fetched").waitFor();
    await picture(other, "app-not-fetched");
    await other.unroute("**/assets/split_*");
    // The desktop fetches what it has not yet by itself, and may be first.
    await git.getByRole("button", { name: "Try again" }).click({ timeout: 3000 }).catch(() => {});
    await git.getByRole("button", { name: "Make a checkpoint" }).waitFor();
  });
});
