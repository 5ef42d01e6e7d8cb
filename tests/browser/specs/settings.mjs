import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

import { atRest, LAPTOP, open, PHONE, picture, ready, signIn, story, until } from "../lib.mjs";

const FIXTURES = join(import.meta.dirname, "../../../fixtures/mcp");
const TRACKER = `command = ["bash", "${FIXTURES}/tracker.sh"]\nmounts = ["${FIXTURES}"]\n`;

const config = (search) => `
[mcp.tracker]
${TRACKER}read_only = ["list_issues"]

[mcp.keyed]
${TRACKER}secrets = { TRACKER_TOKEN = "issues" }
roles = ["researcher"]

[mcp.wiki]
url = "http://127.0.0.1:9/mcp"

[web.search]
kind = "searxng"
base_url = "http://127.0.0.1:${search}"

[telemetry]
otlp = "http://127.0.0.1:4318"
`;

/** A search of its own that finds two pages, until it is told to refuse. */
async function searxng() {
  const page = (n) => ({ url: `https://example.org/${n}`, title: `Page ${n}`, content: "" });
  const server = createServer((_, answer) => {
    answer.statusCode = server.refuses ? 403 : 200;
    answer.end(JSON.stringify({ results: [page(1), page(2)] }));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  server.port = server.address().port;
  return server;
}

/** Settings, turned to a page. */
async function turnTo(page, name) {
  const settings = page.locator('.win[data-app="settings"]');
  if ((await settings.count()) === 0) await open(page, "settings");
  await settings.getByRole("navigation").getByRole("button", { name, exact: true }).click();
  await settings.getByRole("heading", { name, exact: true, level: 1 }).waitFor();
  return settings;
}

story("settings", {}, async (here, step) => {
  const page = await signIn(here);
  const search = await searxng();
  here.context.once("close", () => search.close());
  let settings = await turnTo(page, "Services");
  const card = (name) => settings.getByRole("group", { name, exact: true });

  await step("without services the page says how to set them up, in lines that can be copied", async () => {
    await here.context.grantPermissions(["clipboard-read", "clipboard-write"]);
    await settings.getByText("No MCP servers. Add one to choir.toml:").waitFor();
    await settings.getByText("No web search").waitFor();
    await settings.getByText("Spans of agents go nowhere").waitFor();
    await settings.getByRole("button", { name: "Copy" }).first().press("Enter");
    const copied = () => page.evaluate(() => navigator.clipboard.readText());
    await until(copied, (text) => /^\[mcp\.notes\]\ncommand = \[/.test(text));
    await picture(page, "settings-services-empty");
  });

  await step("what choir.toml names is there after a restart, and not started", async () => {
    writeFileSync(join(here.computer.data, "choir.toml"), config(search.port));
    await here.computer.restart();
    await page.reload();
    await ready(page);
    settings = await turnTo(page, "Services");
    await card("MCP server tracker").getByText("not started").waitFor();
    await card("MCP server wiki").getByText("not connected").waitFor();
    await card("MCP server keyed").getByText("no key").waitFor();
    await card("Telemetry").getByText("http://127.0.0.1:4318/v1/traces").waitFor();
  });

  await step("a server is started by keyboard, and its tools say which ask first", async () => {
    const tracker = card("MCP server tracker");
    await tracker.getByRole("button", { name: "Start tracker" }).press("Enter");
    await tracker.getByText("running", { exact: true }).waitFor();
    const focused = await page.evaluate(() => document.activeElement?.textContent);
    assert.equal(focused, "Restart", "the keyboard is where it was");
    await tracker.getByText("7 tools: 1 only read, 6 final").press("Enter");
    const tool = (name) => tracker.locator(".tools li").filter({ has: page.getByText(name, { exact: true }) });
    await tool("list_issues").getByText("only reads").waitFor();
    await tool("create_issue").getByText("final: asks first").waitFor();
    await tool("create_issue").getByText("Makes an issue", { exact: true }).waitFor();
    const answered = page.waitForResponse(/\/mcp\/tracker\/restart$/);
    await tracker.getByRole("button", { name: "Restart tracker" }).press("Enter");
    assert.equal((await (await answered).json()).state, "up");
    await tracker.getByText("running", { exact: true }).waitFor();
  });

  await step("one that does not answer says why, and one without its key is given it here", async () => {
    const wiki = card("MCP server wiki");
    await wiki.getByRole("button", { name: "Connect wiki" }).click();
    await wiki.getByText("failed", { exact: true }).waitFor();
    assert.ok((await wiki.locator(".note-line").innerText()).length > 10);
    const keyed = card("MCP server keyed");
    await keyed.getByRole("button", { name: "Start keyed" }).click();
    await keyed.getByText('there is no key "issues" in the vault').waitFor();
    await picture(page, "settings-services-failed");
    await keyed.getByRole("button", { name: "Set a key" }).click();
    await keyed.getByLabel("Key of issues").fill("a-token-of-ada");
    await keyed.getByRole("button", { name: "Keep" }).click();
    await keyed.getByRole("button", { name: "Replace" }).waitFor();
    await keyed.getByRole("button", { name: "Try again keyed" }).click();
    await keyed.getByText("running", { exact: true }).waitFor();
  });

  await step("the search is tried, and says what it refuses", async () => {
    const own = card("Web search");
    await own.getByText("needs no key").waitFor();
    await own.getByRole("button", { name: "Test" }).press("Enter");
    await own.getByText(/Answered in \d+ ms with 2 results\./).waitFor();
    await own.scrollIntoViewIfNeeded();
    await picture(page, "settings-services");
    search.refuses = true;
    await own.getByRole("button", { name: "Test" }).press("Enter");
    await own.getByText("Did not answer: searxng refused").waitFor();
  });

  await step("an agent of a role is given a budget, which a slip of the hand does not take away", async () => {
    settings = await turnTo(page, "Models");
    const writer = settings.locator(".bounds details", { hasText: "Writer" });
    await writer.locator("summary", { hasText: "no limit" }).press("Enter");
    await writer.getByLabel("Dollars").fill("1.5");
    await writer.getByLabel("Steps").fill("20");
    await writer.getByLabel("Steps").press("Enter");
    await writer.locator("summary", { hasText: "$1.50 · 20 steps" }).waitFor();
    await writer.getByLabel("Steps").fill("2o");
    await writer.getByRole("button", { name: "Keep" }).click();
    await writer.getByRole("alert").getByText("that is no number").waitFor();
    await writer.scrollIntoViewIfNeeded();
    await picture(page, "settings-budgets");
    await page.reload();
    await ready(page);
    await turnTo(page, "Models");
    await writer.locator("summary", { hasText: "$1.50 · 20 steps" }).waitFor();
  });

  await step("it reads well on a phone and in the dark", async () => {
    settings = await turnTo(page, "Services");
    await card("MCP server tracker").locator("summary").click();
    await page.keyboard.press("Control+k");
    await page.keyboard.type(">theme dark");
    await page.keyboard.press("Enter");
    await picture(page, "settings-services-dark");
    await page.setViewportSize(PHONE);
    await atRest(settings);
    await picture(page, "settings-services-phone");
    await page.setViewportSize(LAPTOP);
  });
});
