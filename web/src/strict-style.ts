// What libraries need to keep to the page's policy.
//
// The policy allows `<style>` elements only with the page's nonce, and no `style` attributes at all; only markup can
// smuggle those in, so what scripts set through the CSSOM is free. xterm.js writes both and knows of no nonce. It makes
// its `<style>` elements while it opens, which is synchronous, so they get the nonce there; and a `style` attribute
// that a script sets becomes the same declarations through the CSSOM.

/** Runs something that makes `<style>` elements, and puts the nonce on each. */
export function withNonce(nonce: string, act: () => void): void {
  document.createElement = ((tag: string, options?: ElementCreationOptions) => {
    const element = Document.prototype.createElement.call(document, tag, options);
    if (tag === "style") element.nonce = nonce;
    return element;
  }) as typeof document.createElement;
  try {
    act();
  } finally {
    // What remains is the prototype's own.
    Reflect.deleteProperty(document, "createElement");
  }
}

/**
 * From now on, `setAttribute("style", …)` goes through the CSSOM. Dioxus sets a `style: "…"` in this way too, and
 * xterm.js the colours of single cells.
 */
export function styleThroughCssom(): void {
  for (const prototype of [HTMLElement.prototype, SVGElement.prototype]) {
    prototype.setAttribute = function (this: HTMLElement | SVGElement, name: string, value: string): void {
      if (name === "style") this.style.cssText = value;
      else Element.prototype.setAttribute.call(this, name, value);
    };
  }
}
