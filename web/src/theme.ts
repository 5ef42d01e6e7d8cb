// Runs before the first paint, so that a theme the person chose applies from the first frame.
//
// The desktop stores the choice under this name when the setting changes, and removes it at sign-out.

try {
  const forced = localStorage.getItem("theme");
  if (forced === "light" || forced === "dark") document.documentElement.dataset.theme = forced;
} catch {
  // A browser that refuses storage follows the machine until the settings arrive.
}
