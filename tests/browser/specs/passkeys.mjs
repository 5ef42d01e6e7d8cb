import { authenticator, open, picture, ready, signIn, story } from "../lib.mjs";

story("passkeys", {}, async (here, step) => {
  const page = await signIn(here);
  await authenticator(page);

  await step("a passkey is added to the account", async () => {
    const settings = await open(page, "settings");
    await settings.getByText("Passkeys", { exact: false }).first().click();
    await settings.getByLabel("Name of the passkey").fill("This laptop");
    await settings.getByRole("button", { name: "Add a passkey" }).click();
    await settings.locator(".things li", { hasText: "This laptop" }).waitFor();
    await picture(page, "passkeys");
  });

  await step("it signs in after signing out", async () => {
    await page.evaluate(() => fetch("/api/v1/auth/logout", { method: "POST" }));
    await page.reload();
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
    await ready(page);
  });
});
