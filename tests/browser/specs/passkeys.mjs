import { authenticator, open, picture, ready, signIn, story, until } from "../lib.mjs";

story("passkeys", {}, async (here, step) => {
  const page = await signIn(here);
  await authenticator(page);

  await step("a passkey is added to the account", async () => {
    const settings = await open(page, "settings");
    await settings.getByText("Passkeys", { exact: false }).first().click();
    await settings.getByRole("button", { name: /Add/ }).first().click();
    const name = settings.getByRole("textbox").first();
    if (await name.isVisible().catch(() => false)) {
      await name.fill("This laptop");
      await name.press("Enter");
    }
    await until(
      () => page.evaluate(async () => (await (await fetch("/api/v1/auth/passkeys")).json()).length),
      1,
    );
    await picture(page, "passkeys");
  });

  await step("it signs in after signing out", async () => {
    await page.evaluate(() => fetch("/api/v1/auth/logout", { method: "POST" }));
    await page.reload();
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await ready(page);
  });
});
