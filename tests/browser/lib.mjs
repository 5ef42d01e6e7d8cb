// A server of its own and a browser of its own for every spec, and words for what a person does on the desktop.
//
// `CHOIR` names the binary, `CHROMIUM` the browser, `SCREENSHOTS` the folder for pictures; `cargo xtask browser` sets
// all three. `SCRIPTED_MODEL` names the model for tests, which otherwise is looked for beside the binary.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { chromium } from "playwright-core";

const CHOIR = process.env.CHOIR ?? "choir";
const SCRIPTED_MODEL = process.env.SCRIPTED_MODEL ?? join(dirname(CHOIR), "scripted-model");
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const SCREENSHOTS = process.env.SCREENSHOTS ?? join(tmpdir(), "choir-screenshots");
const PATIENCE = 30_000;
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const LAPTOP = { width: 1440, height: 900 };
export const TABLET = { width: 1024, height: 768 };
export const PHONE = { width: 390, height: 844 };

/** A command at the command line; what it printed, or a failure with what it said. */
export function choir(args, options = {}) {
  return execFileSync(CHOIR, args, { stdio: ["pipe", "pipe", "pipe"], maxBuffer: 1 << 26, ...options });
}

async function freePort() {
  const server = createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** Models that answer from scripts, given as file names with their text. */
export class Models {
  static async start(scripts) {
    const models = new Models();
    models.folder = mkdtempSync(join(tmpdir(), "choir-scripts-"));
    for (const [name, text] of Object.entries(scripts)) writeFileSync(join(models.folder, name), text);
    models.process = spawn(SCRIPTED_MODEL, [models.folder], { stdio: ["ignore", "pipe", "inherit"] });
    const line = await new Promise((said, failed) => {
      models.process.stdout.once("data", said);
      models.process.once("error", failed);
      models.process.once("exit", (code) => failed(new Error(`scripted-model ended with ${code}`)));
    });
    Object.assign(models, JSON.parse(String(line)));
    return models;
  }

  /** What a computer is told so that it asks them instead of the service. */
  get config() {
    return `[models.provider.anthropic]\nbase_url = ${JSON.stringify(this.urls.anthropic)}\n`;
  }

  remove() {
    this.process.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A running computer with an empty workspace, or the one that was there before. */
export class Computer {
  static async start({ data, port, config } = {}) {
    const computer = new Computer();
    computer.data = data ?? mkdtempSync(join(tmpdir(), "choir-"));
    if (config) writeFileSync(join(computer.data, "choir.toml"), config);
    for (let tries = 1; ; tries += 1) {
      computer.port = port ?? (await freePort());
      try {
        await computer.#run();
        return computer;
      } catch (error) {
        // A port that was free a moment ago may have been taken by another program.
        if (port || tries === 3 || !/another program may use the port/.test(computer.said)) throw error;
      }
    }
  }

  get address() {
    return `http://localhost:${this.port}`;
  }

  async #run() {
    const args = ["up", "--port", String(this.port), "--data", this.data, "--no-browser"];
    // A plain shell with a plain prompt, and an owner called `owner`, whoever runs the tests.
    const env = { ...process.env, SHELL: "/bin/sh", PS1: "$ ", ENV: "", USER: "", LOGNAME: "" };
    this.process = spawn(CHOIR, args, { stdio: ["ignore", "pipe", "pipe"], env });
    this.said = "";
    await new Promise((ready, failed) => {
      const hear = (bytes) => {
        this.said += bytes;
        const link = this.said.match(/https?:\/\/\S+#\S+/)?.[0];
        if (link) {
          this.link = link;
          ready();
        }
      };
      this.process.stdout.on("data", hear);
      this.process.stderr.on("data", (bytes) => (this.said += bytes));
      this.process.on("error", failed);
      this.process.on("close", (code) => failed(new Error(`choir up ended with ${code}:\n${this.said}`)));
      setTimeout(() => failed(new Error(`no link within ${PATIENCE} ms:\n${this.said}`)), PATIENCE).unref();
    });
  }

  /** Ends it as a power cut would (`SIGKILL`), or in order. */
  async stop(signal = "SIGTERM") {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.kill(signal);
    await ended;
  }

  /** Starts it again on the same port with the same data. */
  async restart(signal = "SIGTERM") {
    await this.stop(signal);
    await this.#run();
  }

  async remove() {
    await this.stop("SIGKILL");
    rmSync(this.data, { recursive: true, force: true });
  }
}

/**
 * One spec: a computer, a browser, and steps that follow each other. Both go away after it, and no step may have broken
 * the page's policy.
 */
export function story(name, options, tell) {
  test(name, async (t) => {
    const { viewport = LAPTOP, scripts, mayCrash = false, ...more } = options;
    const models = scripts && (await Models.start(scripts));
    if (models) t.after(() => models.remove());
    const computer = await Computer.start({ config: models?.config });
    t.after(() => computer.remove());
    const profile = mkdtempSync(join(tmpdir(), "choir-browser-"));
    const context = await chromium.launchPersistentContext(profile, {
      executablePath: CHROMIUM,
      headless: true,
      args: FLAGS,
      viewport,
      ...more,
    });
    t.after(async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    });
    context.setDefaultTimeout(PATIENCE);
    const troubles = [];
    const watch = (context) => {
      context.on("console", (message) => {
        // A refused policy or a panic is always a mistake of ours; a lost connection may be part of the spec.
        const text = message.text();
        if (message.type() === "error" && /Content Security Policy|panicked/.test(text)) troubles.push(text);
      });
      context.on("weberror", (error) => void (mayCrash || troubles.push(String(error.error()))));
    };
    watch(context);
    await tell({ computer, context, watch, models }, (what, act) => t.test(what, act));
    await t.test("nothing broke the page's policy", () => assert.deepEqual(troubles, []));
  });
}

/** Signs in by the link and waits for the desktop, with the tour and, unless told otherwise, all windows out of the way. */
export async function signIn({ computer, context }, { tidy = true } = {}) {
  const page = context.pages()[0] ?? (await context.newPage());
  await page.goto(computer.link);
  await ready(page);
  await page.locator("#tour-skip").click();
  while (tidy && (await page.locator(".win").count()) > 0) {
    const first = page.locator(".win").first();
    const id = await first.getAttribute("id");
    await first.getByRole("button", { name: "Close", exact: true }).click();
    await page.locator(`[id="${id}"]`).waitFor({ state: "detached" });
  }
  return page;
}

/** A page of another person: nothing of the first one's cookies or storage is there. */
export async function guest({ context, watch }) {
  const page = await context.browser().newPage({ viewport: LAPTOP });
  page.setDefaultTimeout(PATIENCE);
  watch(page.context());
  return page;
}

/** Gives a page a device that makes passkeys without asking. */
export async function authenticator(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("WebAuthn.enable");
  const options = {
    protocol: "ctap2",
    transport: "internal",
    hasResidentKey: true,
    hasUserVerification: true,
    isUserVerified: true,
    automaticPresenceSimulation: true,
  };
  await session.send("WebAuthn.addVirtualAuthenticator", { options });
}

/** Another tab of the same person; `prepare` is given the page before anything is loaded. */
export async function anotherTab({ computer, context }, prepare = async () => {}) {
  const page = await context.newPage();
  await prepare(page);
  await page.goto(computer.address);
  await ready(page);
  return page;
}

export async function ready(page) {
  await page.locator("#taskbar").waitFor();
  await page.locator("#link.live").waitFor();
  // The state comes a moment after the connection.
  await page.locator(".win, .welcome").first().waitFor({ state: "attached" });
}

/** Opens an app from the taskbar and gives its newest window. */
export async function open(page, app) {
  const windows = page.locator(`.win[data-app="${app}"]`);
  const opened = windows.nth(await windows.count());
  await page.locator(`#taskbar button[data-app="${app}"]`).click();
  await opened.waitFor();
  // The keyboard goes there a moment later, away from whatever has it by then.
  await until(() => opened.evaluate((element) => element.contains(document.activeElement)), true);
  return opened;
}

/** Brings the window of an app to the front; a press on the one in front would minimise it. */
export async function show(page, app) {
  const front = page.locator(`.win.front[data-app="${app}"]`);
  if ((await front.count()) === 0) await page.locator(`#taskbar button[data-app="${app}"]`).click();
  await front.waitFor();
  return front;
}

/** Opens a file from Files in the editor. */
export async function openFile(page, files, name) {
  await show(page, "files");
  await files.locator(`[data-path="${name}"]`).dblclick();
  const editor = page.locator(`.win[data-app="editor"][aria-label="${name}"]`);
  await editor.locator(".cm-content").waitFor();
  return editor;
}

/** Writes a file over the API, as another program of the same person would. */
export async function put(page, path, text) {
  const status = await page.evaluate(
    async ([path, text]) => {
      const answer = await fetch(`/api/v1/content?path=${encodeURIComponent(path)}&base=any`, { method: "PUT", body: text });
      return answer.status;
    },
    [path, text],
  );
  if (status >= 300) throw new Error(`PUT ${path} answered ${status}`);
}

/** Asks for something over the API, as another program of the same person would. */
export async function post(page, route, body) {
  const { origin } = new URL(page.url());
  const answer = await page.request.post(`${origin}/api/v1/${route}`, { data: body, headers: { origin } });
  if (!answer.ok()) throw new Error(`POST ${route} answered ${answer.status()}: ${await answer.text()}`);
}

/** The same as `put` for bytes that are not text. */
export async function putBytes(page, path, bytes) {
  const { origin } = new URL(page.url());
  const query = new URLSearchParams({ path, base: "any" });
  const answer = await page.request.put(`${origin}/api/v1/content?${query}`, {
    data: Buffer.from(bytes),
    headers: { "content-type": "application/octet-stream", origin },
  });
  if (!answer.ok()) throw new Error(`PUT ${path} answered ${answer.status()}`);
}

/** What a file holds, or the status if it cannot be read. */
export async function get(page, path) {
  return page.evaluate(async (path) => {
    const answer = await fetch(`/api/v1/content?path=${encodeURIComponent(path)}`);
    return answer.ok ? answer.text() : answer.status;
  }, path);
}

/** Agrees to what was shown first. */
export async function confirm(page, verb) {
  const ask = page.locator("#ask");
  await ask.getByRole("button", { name: verb, exact: true }).click();
  await ask.waitFor({ state: "detached" });
}

/** Asks again until it is so, and says what it was instead. */
export async function until(ask, wanted, { within = PATIENCE } = {}) {
  const deadline = Date.now() + within;
  let last;
  do {
    last = await ask();
    if (typeof wanted === "function" ? wanted(last) : last === wanted) return last;
    await new Promise((done) => setTimeout(done, 50));
  } while (Date.now() < deadline);
  throw new Error(`waited ${within} ms for ${wanted}, and it was ${JSON.stringify(last)}`);
}

/** The place of a window on the screen. */
export async function place(window) {
  const { x, y, width, height } = await window.boundingBox();
  return { x: Math.round(x), y: Math.round(y), width: Math.round(width), height: Math.round(height) };
}

/** The same, once it has come to rest. */
export async function atRest(window) {
  // Between two frames everything stands still: an animation says itself when it is over.
  await window.evaluate((element) => Promise.allSettled(element.getAnimations().map(({ finished }) => finished)));
  let last = "";
  await until(async () => {
    const before = last;
    last = JSON.stringify(await place(window));
    return last === before;
  }, true);
  return place(window);
}

/** A line that can be cut for one page: its requests fail and its socket closes until it is mended. */
export async function line(page) {
  let cut = false;
  const sockets = new Set();
  await page.route("**/api/**", (route) => (cut ? route.abort() : route.continue()));
  await page.routeWebSocket(/\/api\/v1\/socket/, (socket) => {
    if (cut) return socket.close();
    const server = socket.connectToServer();
    sockets.add({ socket, server });
  });
  return {
    cut: async () => {
      cut = true;
      for (const { socket, server } of sockets) await Promise.all([socket.close(), server.close()]);
      sockets.clear();
    },
    mend: () => (cut = false),
  };
}

/** Drags with the mouse, in steps as a hand would. */
export async function drag(page, from, to) {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2, { steps: 5 });
  await page.mouse.move(to.x, to.y, { steps: 5 });
  await page.mouse.up();
}

/** A picture for somebody to look at, of what has come to rest. */
export async function picture(page, name) {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), animations: "disabled" });
}
