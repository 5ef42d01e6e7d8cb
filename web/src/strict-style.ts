// Makes libraries comply with the content security policy.
//
// The policy allows `<style>` elements only with the page's nonce, and no `style` attributes; styles that scripts set
// through the CSSOM are allowed. xterm.js uses both without a nonce. It creates its `<style>` elements while it opens,
// synchronously, so they get the nonce there. A `style` attribute that a script sets is applied through the CSSOM.

/** Runs code that creates `<style>` elements, and sets the nonce on each. */
export function withNonce(nonce: string, act: () => void): void {
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    const element = Document.prototype.createElement.call(document, tag, options);
    if (tag === "style") element.nonce = nonce;
    return element;
  }) as typeof document.createElement;
  try {
    act();
  } finally {
    // From here on the prototype's own function applies again.
    Reflect.deleteProperty(document, "createElement");
  }
}

/**
 * Makes `setAttribute("style", …)` go through the CSSOM. Dioxus sets `style: "…"` this way, and xterm.js the colours of
 * single cells.
 */
export function styleThroughCssom(): void {
  for (const prototype of [HTMLElement.prototype, SVGElement.prototype]) {
    prototype.setAttribute = function (this: HTMLElement | SVGElement, name: string, value: string): void {
      if (name === "style") this.style.cssText = value;
      else Element.prototype.setAttribute.call(this, name, value);
    };
  }
}
