import assert from "node:assert/strict";

import { anotherTab, Computer, picture, ready, signIn, story, until } from "../lib.mjs";

story("signing in", {}, async (here, step) => {
  await step("the shell is painted before the desktop has loaded", async () => {
    const page = await here.context.newPage();
    let letGo;
    const held = new Promise((done) => (letGo = done));
    await page.route("**/*.wasm", (route) => held.then(() => route.continue()));
    await page.goto(here.computer.address, { waitUntil: "commit" });
    await page.locator("#shell").waitFor();
    assert.equal(await page.locator(".sign-in").count(), 0);
    letGo();
    await page.locator(".sign-in").waitFor();
    await page.locator("#shell").waitFor({ state: "detached" });
    await page.close();
  });

  await step("without a session there is a sign-in screen that says how to get in", async () => {
    const page = await here.context.newPage();
    await page.goto(here.computer.address);
    await page.getByText("choir link").waitFor();
    await picture(page, "sign-in");
    await page.close();
  });

  await step("the link signs in, leaves the address, and works once", async () => {
    const page = await signIn(here, { tidy: false });
    assert.equal(new URL(page.url()).hash, "");
    await picture(page, "desktop");
    const secret = new URL(here.computer.link).hash.slice(1);
    const again = await fetch(`${here.computer.address}/api/v1/auth/link`, {
      method: "POST",
      headers: { "content-type": "application/json", origin: here.computer.address },
      body: JSON.stringify({ secret }),
    });
    const problem = await again.json();
    assert.ok([401, 403, 410].includes(again.status), JSON.stringify(problem));
    assert.equal(again.headers.get("set-cookie"), null);
  });

  await step("a link whose answer is lost is not used a second time", async () => {
    const page = await here.context.newPage();
    let sent = 0;
    await page.route("**/auth/link", (route) => {
      sent += 1;
      return route.abort();
    });
    await page.goto(`${here.computer.address}/#${"x".repeat(43)}`);
    await until(() => sent, 1);
    await page.waitForTimeout(1_500);
    assert.equal(sent, 1);
    await page.close();
  });

  await step("a reload and another tab are signed in already", async () => {
    const page = here.context.pages()[0];
    await page.reload();
    await ready(page);
    await (await anotherTab(here)).close();
  });

  await step("the desktop comes back by itself after the server was killed", async () => {
    const page = here.context.pages()[0];
    await here.computer.stop("SIGKILL");
    await page.locator(".banner:not([hidden])").waitFor();
    await here.computer.restart();
    await page.locator("#link.live").waitFor();
    await until(() => page.locator(".banner:not([hidden])").count(), 0);
  });


  await step("listening beyond this machine without TLS is refused", async () => {
    process.env.CHOIR_LISTEN = "0.0.0.0";
    try {
      const started = await Computer.start();
      await started.remove();
      assert.fail("it started");
    } catch (error) {
      assert.match(error.message, /ended with/);
    } finally {
      delete process.env.CHOIR_LISTEN;
    }
  });
});
