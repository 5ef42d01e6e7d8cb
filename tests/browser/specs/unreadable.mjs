import assert from "node:assert/strict";

import { anotherTab, put, signIn, story, until } from "../lib.mjs";

story("messages that cannot be read", {}, async (here, step) => {
  await signIn(here);
  let socket;
  const page = await anotherTab(here, (tab) =>
    tab.routeWebSocket(/\/api\/v1\/socket/, (opened) => {
      opened.connectToServer();
      socket = opened;
    }),
  );
  const toasts = page.locator(".toast", { hasText: "could not be read" });

  await step("a frame that is not of a terminal is reported, once", async () => {
    for (let count = 0; count < 5; count += 1) socket.send(Buffer.from([1, 2, 3]));
    await toasts.first().waitFor();
    assert.equal(await toasts.count(), 1);
  });

  await step("a text that is not a message is reported", async () => {
    socket.send('{"unheard":{}}');
    await page.locator(".toast", { hasText: "unheard" }).waitFor();
  });

  await step("a refusal by the server is listed, each text once", async () => {
    for (let count = 0; count < 3; count += 1) socket.send('{"refused":{"detail":"there is no such terminal"}}');
    await page.locator("#notices-button").click();
    const listed = page.locator(".notices").getByText("there is no such terminal");
    await listed.first().waitFor();
    assert.equal(await listed.count(), 1);
    await page.keyboard.press("Escape");
  });

  await step("the connection goes on", async () => {
    await page.locator('#taskbar button[data-app="files"]').click();
    await put(page, "after.txt", "x");
    await until(() => page.locator('.win[data-app="files"] [data-path="after.txt"]').count(), 1);
  });
});
