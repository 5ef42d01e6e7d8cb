// Reads a file of the workspace through the API.

import { WORDS } from "./words";

/** The address of a file's bytes; the server streams them, by range if asked. */
export function addressOf(path: string): string {
  return `/api/v1/content?path=${encodeURIComponent(path)}`;
}

const LARGEST_DRAWING = 20_000_000;

/**
 * Shows a picture of the workspace, and gives what releases it. The server sends SVG as text, so that it is never a page
 * of ours; within an image element it neither runs scripts nor loads anything.
 */
export async function showPicture(image: HTMLImageElement, path: string): Promise<() => void> {
  if (!path.toLowerCase().endsWith(".svg")) {
    image.src = addressOf(path);
    return () => {};
  }
  const text = await bytesOf(path, LARGEST_DRAWING, "20 MB");
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  image.src = address;
  return () => URL.revokeObjectURL(address);
}

/** A sentence for the person: the file is not shown, and why. */
export class NotShown extends Error {}

/** The bytes of a file, up to a limit. */
export async function bytesOf(path: string, limit: number, limitName: string): Promise<Blob> {
  const answer = await fetch(addressOf(path)).catch(() => undefined);
  if (!answer?.ok) throw new NotShown(WORDS.notReachable);
  const size = Number(answer.headers.get("content-length") ?? 0);
  if (size > limit) {
    await answer.body?.cancel();
    throw new NotShown(WORDS.tooLarge(limitName));
  }
  return answer.blob();
}

/** The text of a file, up to a limit. */
export async function textOf(path: string, limit: number, limitName: string): Promise<string> {
  const bytes = await (await bytesOf(path, limit, limitName)).arrayBuffer();
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new NotShown(WORDS.notText);
  }
}

/** The path that a link in a file means, or nothing if it leaves the workspace. */
export function relative(from: string, link: string): string | undefined {
  let decoded: string;
  try {
    decoded = decodeURIComponent(link.replace(/[?#].*$/s, ""));
  } catch {
    return undefined;
  }
  if (decoded === "") return undefined;
  const parts = decoded.startsWith("/") ? [] : from.split("/").slice(0, -1);
  for (const part of decoded.split("/")) {
    if (part === "..") {
      if (parts.pop() === undefined) return undefined;
    } else if (part !== "" && part !== ".") parts.push(part);
  }
  return parts.length > 0 ? parts.join("/") : undefined;
}
