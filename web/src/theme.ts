// Runs before the page is painted: a theme that the person forced holds from the first frame on.
//
// The desktop keeps it under this name whenever the setting changes, and forgets it when nobody is signed in.

try {
  const forced = localStorage.getItem("theme");
  if (forced === "light" || forced === "dark") document.documentElement.dataset.theme = forced;
} catch {
  // A browser that refuses storage follows the machine until the settings arrive.
}
