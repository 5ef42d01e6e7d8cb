// A picture: fitted to the window at first; zoomed by wheel, keys and buttons, moved by dragging, rotated by quarters.

import { showPicture } from "./file";
import { WORDS } from "./words";

const MOST = 16;
const LEAST = 0.05;

export async function mountImage(element: HTMLElement, path: string, label: string): Promise<() => void> {
  const frame = document.createElement("div");
  frame.className = "image-view";
  const stage = document.createElement("div");
  stage.className = "image-stage scroll";
  stage.tabIndex = 0;
  stage.setAttribute("role", "group");
  stage.setAttribute("aria-label", label);
  const image = document.createElement("img");
  image.alt = label;
  image.draggable = false;
  stage.append(image);
  const percent = document.createElement("output");

  let zoom: number | "fit" = "fit";
  let turns = 0;
  const sideways = () => turns % 2 === 1;
  const fitted = () => {
    const [width, height] = sideways() ? [image.naturalHeight, image.naturalWidth] : [image.naturalWidth, image.naturalHeight];
    return Math.min(1, stage.clientWidth / Math.max(width, 1), stage.clientHeight / Math.max(height, 1));
  };
  const draw = () => {
    const scale = zoom === "fit" ? fitted() : zoom;
    const [width, height] = [image.naturalWidth * scale, image.naturalHeight * scale];
    image.style.width = `${width}px`;
    image.style.height = `${height}px`;
    image.style.transform = turns === 0 ? "" : `rotate(${turns * 90}deg)`;
    // A rotated picture keeps its old box; the margins make up for the difference.
    const shift = sideways() ? (width - height) / 2 : 0;
    image.style.margin = `${shift}px ${-shift}px`;
    percent.textContent = `${Math.round(scale * 100)} %`;
  };
  const zoomBy = (factor: number) => {
    const now = zoom === "fit" ? fitted() : zoom;
    zoom = Math.min(Math.max(now * factor, LEAST), MOST);
    draw();
  };
  const fit = () => {
    zoom = "fit";
    draw();
  };
  const rotate = () => {
    turns = (turns + 1) % 4;
    draw();
  };

  const button = (text: string, name: string, act: () => void) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "btn small";
    made.textContent = text;
    made.title = name;
    made.setAttribute("aria-label", name);
    made.addEventListener("click", act);
    return made;
  };
  const bar = document.createElement("div");
  bar.className = "image-bar";
  bar.append(
    button("−", WORDS.zoomOut, () => zoomBy(1 / 1.25)),
    percent,
    button("+", WORDS.zoomIn, () => zoomBy(1.25)),
    button("Fit", WORDS.fit, fit),
    button("1:1", "100 %", () => {
      zoom = 1;
      draw();
    }),
    button("⟳", WORDS.rotate, rotate),
  );

  stage.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoomBy(event.deltaY < 0 ? 1.1 : 1 / 1.1);
    },
    { passive: false },
  );
  stage.addEventListener("keydown", (event) => {
    const act = { "+": () => zoomBy(1.25), "=": () => zoomBy(1.25), "-": () => zoomBy(1 / 1.25), "0": fit, r: rotate }[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  stage.addEventListener("dblclick", () => {
    zoom = zoom === "fit" ? 1 : "fit";
    draw();
  });
  stage.addEventListener("pointerdown", (down) => {
    if (down.button !== 0 || down.pointerType !== "mouse") return;
    const start = { x: stage.scrollLeft + down.clientX, y: stage.scrollTop + down.clientY };
    stage.setPointerCapture(down.pointerId);
    const move = (event: PointerEvent) => stage.scrollTo(start.x - event.clientX, start.y - event.clientY);
    stage.addEventListener("pointermove", move);
    stage.addEventListener("lostpointercapture", () => stage.removeEventListener("pointermove", move), { once: true });
  });

  frame.append(stage, bar);
  element.append(frame);
  let release = () => {};
  const sizes = new ResizeObserver(draw);
  try {
    release = await showPicture(image, path);
    await image.decode();
    sizes.observe(stage);
    draw();
  } catch {
    const why = document.createElement("p");
    why.className = "quiet pad";
    why.textContent = WORDS.notShown;
    frame.replaceChildren(why);
  }
  return () => {
    sizes.disconnect();
    release();
    frame.remove();
  };
}
