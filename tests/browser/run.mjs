// Runs the specs: all, or those with one of the given words in their name. Two at a time would share two cores with
// two browsers, so they run one after the other.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";

const words = process.argv.slice(2);
const folder = join(import.meta.dirname, "specs");
const files = readdirSync(folder)
  .filter((name) => name.endsWith(".mjs") && (words.length === 0 || words.some((word) => name.includes(word))))
  .sort()
  .map((name) => join(folder, name));
if (files.length === 0) {
  console.error(`no spec has ${words.join(" or ")} in its name`);
  process.exit(2);
}

run({ files, concurrency: 1, timeout: 300_000 })
  .on("test:fail", () => (process.exitCode = 1))
  .compose(new spec())
  .pipe(process.stdout);
