import assert from "node:assert/strict";

import { authenticator, get, guest, open, picture, put, ready, signIn, story, until } from "../lib.mjs";

story("invitations", {}, async (here, step) => {
  const page = await signIn(here);
  await put(page, "owners.txt", "of the owner");
  const settings = await open(page, "settings");
  await settings.getByRole("button", { name: "People" }).click();
  const field = settings.getByLabel("Name of the person");
  const secret = settings.locator("#invitation-link");
  const read = (of, route) => of.evaluate(async (route) => (await fetch(`/api/v1/${route}`)).json(), route);
  let link;
  let other;

  await step("an invitation that was withdrawn is worth nothing", async () => {
    await field.fill("Mallory");
    await field.press("Enter");
    const withdrawn = await secret.innerText();
    await settings.getByRole("button", { name: "Withdraw the invitation of Mallory" }).click();
    await settings.getByText("No invitation is open.").waitFor();
    const visitor = await guest(here);
    await visitor.goto(withdrawn);
    await visitor.getByRole("alert").waitFor();
    assert.equal(await visitor.locator("#taskbar").count(), 0);
    await visitor.context().close();
  });

  await step("the owner makes an invitation, and its link is shown", async () => {
    await field.fill("Grace Hopper");
    await field.press("Enter");
    await settings.getByText("not accepted yet").waitFor();
    link = await secret.innerText();
    assert.ok(link.startsWith(`${here.computer.address}/`), link);
    await picture(page, "invitation");
  });

  await step("until it is accepted the owner has a shell", async () => {
    assert.equal((await read(page, "me")).shell, true);
  });

  await step("the link opens an empty desktop of their own", async () => {
    other = await guest(here);
    await other.goto(link);
    await ready(other);
    await other.locator("#tour-skip").click();
    const files = await open(other, "files");
    await files.locator("[data-path]").first().waitFor();
    const paths = await files.locator(".rows [data-path]").evaluateAll((all) => all.map((row) => row.dataset.path));
    assert.deepEqual(paths, ["Welcome.md"]);
    await picture(other, "invited");
  });

  await step("neither sees what is the other's", async () => {
    await put(other, "hers.txt", "of the guest");
    assert.equal(await get(other, "owners.txt"), 404);
    assert.equal(await get(page, "hers.txt"), 404);
    const found = (await read(other, "search?q=owner")).map(({ path }) => path);
    assert.ok(!found.includes("owners.txt"), found.join());
    const labels = (await read(other, "operations")).rows.map(({ label }) => label);
    assert.ok(!labels.some((label) => label.includes("owners.txt")), labels.join());
  });

  await step("a guest cannot invite, and is not asked to", async () => {
    const hers = await open(other, "settings");
    await hers.getByRole("button", { name: "Passkeys" }).waitFor();
    assert.equal(await hers.getByRole("button", { name: "People" }).count(), 0);
    assert.equal((await read(other, "auth/invitations")).status, 403);
  });

  await step("the guest adds a passkey and signs in with it", async () => {
    await authenticator(other);
    const hers = other.locator('.win[data-app="settings"]');
    await hers.getByRole("button", { name: "Passkeys" }).click();
    await hers.getByLabel("Name of the passkey").fill("Her key");
    await hers.getByRole("button", { name: "Add a passkey" }).click();
    await hers.getByText("Her key").waitFor();
    await other.evaluate(() => fetch("/api/v1/auth/logout", { method: "POST" }));
    await other.reload();
    await other.getByRole("button", { name: "Sign in with a passkey" }).click();
    await ready(other);
    assert.equal(await get(other, "hers.txt"), "of the guest");
    assert.equal(await get(other, "owners.txt"), 404);
  });

  await step("the link works once", async () => {
    const late = await guest(here);
    await late.goto(link);
    await late.getByRole("alert").waitFor();
    assert.equal(await late.locator("#taskbar").count(), 0);
    await late.context().close();
  });

  await step("now neither is offered a plain shell, and both have cells", async () => {
    for (const [who, name] of [[page, "owner"], [other, "guest"]]) {
      await who.reload();
      await ready(who);
      const window = await open(who, "terminal");
      await window.getByRole("tab", { name: "Cell 1" }).waitFor();
      await window.locator(".xterm-rows").waitFor();
      assert.equal(await window.getByRole("button", { name: "Which kind of shell" }).count(), 0);
      await picture(who, `no-shell-${name}`);
      const status = await who.evaluate(async () => {
        const headers = { "content-type": "application/json" };
        const body = '{"kind":"shell","columns":80,"rows":24}';
        return (await fetch("/api/v1/terminals", { method: "POST", headers, body })).status;
      });
      assert.equal(status, 403);
    }
  });
});
