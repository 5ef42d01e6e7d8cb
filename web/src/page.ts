// What the parts read from the page they run in: the nonce of its policy and the tokens of its theme.

/** The nonce that the page's policy asks of `<style>` elements. The browser hides it from everything but scripts. */
export function nonce(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="choir-nonce"]');
  const element = document.querySelector<HTMLElement>("style[nonce], script[nonce]");
  return meta?.content || element?.nonce || "";
}

/** The value of a design token where an element stands, or what to use if the theme lacks it. */
export function token(element: Element, name: string, otherwise: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || otherwise;
}

/** Loads a font before something measures with it; without it the measuring goes on with the next font. */
export async function fontReady(font: string): Promise<void> {
  try {
    await document.fonts.load(font);
  } catch {
    // A font that cannot be had is not worth a terminal that does not open.
  }
}
