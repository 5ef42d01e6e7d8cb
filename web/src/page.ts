// Values that the modules read from their page: the nonce of its content security policy and the tokens of its theme.

/** The nonce that `<style>` elements need. The browser hides it from everything but scripts. */
export function nonce(): string {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="choir-nonce"]');
  const element = document.querySelector<HTMLElement>("style[nonce], script[nonce]");
  return meta?.content || element?.nonce || "";
}

/** The value of a design token at an element, or a fallback if the theme does not define it. */
export function token(element: Element, name: string, otherwise: string): string {
  return getComputedStyle(element).getPropertyValue(name).trim() || otherwise;
}

/** Loads a font before text is measured with it. If it cannot be loaded, the next font is measured. */
export async function fontReady(font: string): Promise<void> {
  try {
    await document.fonts.load(font);
  } catch {
    // The terminal opens without the font, too.
  }
}
