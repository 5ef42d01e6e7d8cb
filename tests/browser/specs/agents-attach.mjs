import assert from "node:assert/strict";

import { anotherTab, choir, get, line, picture, put, signIn, story, until } from "../lib.mjs";

const NAMES = "Files that the person put beside this: notes.md, notes 2.md, chosen.txt, here/list.csv";

const SCRIPTS = {
  "sum.toml": `
objective = "Sum them up"

[[agent]]
role = "conductor"
[[agent.step]]
expect = ["${NAMES}"]
calls = [ { tool = "delegate", input = { agent = "writer", task = "Sum them up." } } ]
[[agent.step]]
expect = ["The writer is done"]
calls = [ { tool = "finish", input = { summary = "It is summed up." } } ]

[[agent]]
role = "writer"
[[agent.step]]
calls = [ { tool = "read", input = { path = "notes.md" } }, { tool = "read", input = { path = "notes 2.md" } } ]
[[agent.step]]
expect = ["the first", "the second"]
calls = [ { tool = "write", input = { path = "sum.md", text = "first and second\\n" } } ]
[[agent.step]]
text = "Done."
`,
  "unseen.toml": `
objective = "Do it unseen"

[[agent]]
role = "conductor"
[[agent.step]]
calls = [ { tool = "ask", input = { question = "Seen now?" } } ]
[[agent.step]]
calls = [ { tool = "finish", input = { summary = "Seen." } } ]
`,
};

/** Drops a file of the person's machine on the prompt bar. */
function drop(page, name, text) {
  return page.locator(".prompt-wrap").evaluate(
    (bar, [name, text]) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([text], name));
      for (const type of ["dragover", "drop"]) {
        bar.dispatchEvent(new DragEvent(type, { dataTransfer, bubbles: true, cancelable: true }));
      }
    },
    [name, text],
  );
}

story("files that are put beside an objective", { scripts: SCRIPTS }, async (here, step) => {
  const page = await signIn(here);
  choir(["keys", "set", "anthropic", "--data", here.computer.data], { input: here.models.key });
  const runs = page.locator('.win[data-app="runs"]');
  const chip = (name) => page.locator(".prompt .chip.file", { hasText: name });

  await step("a file of one's own machine is dropped on the prompt bar", async () => {
    await drop(page, "notes.md", "the first\n");
    await chip("notes.md").waitFor();
    assert.equal(await get(page, "notes.md"), "the first\n");
  });

  await step("one of the same name takes the place of none", async () => {
    await drop(page, "notes.md", "the second\n");
    await chip("notes 2.md").waitFor();
    assert.equal(await get(page, "notes 2.md"), "the second\n");
    assert.equal(await get(page, "notes.md"), "the first\n");
  });

  await step("one is chosen from the machine", async () => {
    await page.locator("#prompt").focus();
    const asked = page.waitForEvent("filechooser");
    await page.getByRole("button", { name: "Attach files of this machine" }).click();
    await (await asked).setFiles([{ name: "chosen.txt", mimeType: "text/plain", buffer: Buffer.from("chosen\n") }]);
    await chip("chosen.txt").waitFor();
  });

  await step("one of the computer is named with @, and one is taken away again", async () => {
    await put(page, "here/list.csv", "1,2\n");
    await put(page, "here/else.csv", "3,4\n");
    // The search follows a moment later, and the prompt bar asks it once.
    const found = () => page.evaluate(async () => (await fetch("/api/v1/search?q=else")).text());
    await until(found, (found) => found.includes("here/else.csv"));
    for (const name of ["list", "else"]) {
      await page.locator("#prompt").focus();
      await page.keyboard.type(`@${name}`);
      await page.locator(".hit", { hasText: `${name}.csv` }).waitFor();
      await page.keyboard.press("Enter");
      await chip(`${name}.csv`).waitFor();
    }
    await page.getByRole("button", { name: "Do not attach here/else.csv" }).click();
    await until(() => chip("else.csv").count(), 0);
    await picture(page, "agents-attached");
  });

  await step("the agents get all of them", async () => {
    await page.locator("#prompt").focus();
    await page.keyboard.type("Sum them up");
    await page.keyboard.press("Enter");
    await runs.locator("#run-state", { hasText: "done" }).waitFor();
    assert.equal(await get(page, "sum.md"), "first and second\n");
    assert.equal(await page.locator(".prompt .chip.file").count(), 0);
  });

  await step("a file that does not come is not attached, and says why", async () => {
    await page.route("**/content?**", (route) => (route.request().method() === "PUT" ? route.abort() : route.continue()));
    await drop(page, "lost.md", "lost\n");
    await page.locator(".toast", { hasText: "does not answer" }).waitFor();
    await page.unroute("**/content?**");
    assert.equal(await page.locator(".prompt .chip.file").count(), 0);
    assert.equal(await get(page, "lost.md"), 404);
  });

  await step("nothing is asked while a file is on its way, and it can be called off", async () => {
    let held;
    await page.route("**/content?**", (route) => (route.request().method() === "PUT" ? (held = route) : route.continue()));
    await drop(page, "large.md", "large\n");
    await page.locator(".prompt-box .upload", { hasText: "large.md" }).waitFor();
    await page.locator("#prompt").focus();
    await page.keyboard.type("Files");
    await page.keyboard.press("Enter");
    await page.locator(".toast", { hasText: "still on its way" }).waitFor();
    await picture(page, "agents-attaching");
    await page.locator(".prompt-box").getByRole("button", { name: "Cancel the upload" }).click();
    await page.locator(".prompt-box .upload").waitFor({ state: "detached" });
    await held.abort().catch(() => {});
    await page.unroute("**/content?**");
    assert.equal(await page.locator(".prompt .chip.file").count(), 0);
    assert.equal(await get(page, "large.md"), 404);
    await page.locator("#prompt").fill("");
    await page.keyboard.press("Escape");
  });

  await step("a tab that was offline shows the run that began meanwhile, and what it asks", async () => {
    let wire;
    const other = await anotherTab(here, async (tab) => (wire = await line(tab)));
    await other.locator('.win[data-app="runs"]').waitFor();
    await wire.cut();
    await other.locator(".banner:not([hidden])").waitFor();
    await page.bringToFront();
    await page.locator("#prompt").focus();
    await page.keyboard.type("Do it unseen");
    await page.keyboard.press("Enter");
    await runs.locator(".ask-card", { hasText: "Seen now?" }).waitFor();
    await other.bringToFront();
    assert.equal(await other.locator(".ask-card").count(), 0);
    wire.mend();
    await other.locator(".ask-card", { hasText: "Seen now?" }).first().waitFor();
  });
});
