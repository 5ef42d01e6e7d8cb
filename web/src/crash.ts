// After a crash of the desktop, shows a screen that says so and offers to reload.
//
// A panic ends the wasm module with a trap, which arrives here as a `WebAssembly.RuntimeError`; nothing in the module
// may be called after it. Unsaved text is in the editors, outside of the module, and they store their drafts now.

export function showCrashes(): void {
  addEventListener("error", (event) => void (isCrash(event.error) && show()));
  addEventListener("unhandledrejection", (event) => void (isCrash(event.reason) && show()));
}

function isCrash(error: unknown): boolean {
  return error instanceof WebAssembly.RuntimeError;
}

let shown = false;

function show(): void {
  if (shown) return;
  shown = true;
  dispatchEvent(new Event("choir-crash"));
  const screen = document.createElement("div");
  screen.id = "crash";
  screen.setAttribute("role", "alertdialog");
  screen.setAttribute("aria-labelledby", "crash-title");
  const card = document.createElement("div");
  card.className = "card";
  const title = document.createElement("h1");
  title.id = "crash-title";
  title.textContent = "Something went wrong";
  const text = document.createElement("p");
  text.textContent = "The desktop stopped. Your files are safe, and unsaved text is kept as a draft.";
  const button = document.createElement("button");
  button.className = "btn pri wide";
  button.textContent = "Reload";
  button.addEventListener("click", () => location.reload());
  card.append(title, text, button);
  screen.append(card);
  document.body.append(screen);
  button.focus();
}
