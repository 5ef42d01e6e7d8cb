// Bundles what is not Rust into a folder of hashed files: `node build.mjs plan.json`.
//
// The plan says where things are; `cargo xtask web` writes it. The answer goes to the plan's `manifest`: which file
// each entry became. Parts and their languages are split, so that nothing is loaded before it is needed.

import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const source = (name) => join(here, "src", name);

/** @type {{ glue: string, wasm: string, styles: string[], out: string, manifest: string, minify: boolean }} */
const plan = JSON.parse(readFileSync(process.argv[2], "utf8"));

const common = {
  absWorkingDir: here,
  assetNames: "[name]-[hash]",
  bundle: true,
  chunkNames: "chunk-[hash]",
  entryNames: "[name]-[hash]",
  format: "esm",
  legalComments: "none",
  loader: { ".woff2": "file" },
  logLevel: "warning",
  metafile: true,
  minify: plan.minify,
  nodePaths: [join(here, "node_modules")],
  outdir: plan.out,
  publicPath: "/assets",
  target: ["chrome120", "firefox121", "safari17.4"],
};

/** `import address from "some/file?url"` copies the file and gives its address. */
const addresses = {
  name: "addresses",
  setup(build) {
    build.onResolve({ filter: /\?url$/ }, async ({ path, resolveDir, kind }) => {
      const found = await build.resolve(path.slice(0, -"?url".length), { resolveDir, kind });
      return { path: found.path, namespace: "address" };
    });
    build.onLoad({ filter: /.*/, namespace: "address" }, ({ path }) => ({
      contents: readFileSync(path),
      loader: "file",
    }));
  },
};

/** Virtual modules: an import by name gives a file, or a text. */
const named = (modules) => ({
  name: "named",
  setup(build) {
    build.onResolve({ filter: /^choir:/ }, ({ path }) => {
      const { file } = modules[path];
      return file ? { path: file } : { path, namespace: "choir" };
    });
    build.onLoad({ filter: /.*/, namespace: "choir" }, ({ path }) => ({
      contents: modules[path].text,
      loader: "css",
      resolveDir: here,
    }));
  },
});

/** From an entry's source to the name of what it became. */
function outputs({ metafile }) {
  const names = {};
  for (const [file, { entryPoint }] of Object.entries(metafile.outputs)) {
    if (entryPoint) names[entryPoint] = basename(file);
  }
  return names;
}

const parts = outputs(
  await build({
    ...common,
    entryPoints: ["terminal", "editor", "viewer"].map((name) => source(`${name}.ts`)),
    plugins: [addresses],
    splitting: true,
  }),
);

const sheet = [source("fonts.css"), ...plan.styles, source("parts.css")].map((file) => `@import ${JSON.stringify(file)};`);
const style = await build({
  ...common,
  entryPoints: [{ in: "choir:style", out: "desktop" }],
  plugins: [named({ "choir:style": { text: sheet.join("\n") } })],
});

// A lazily loaded language counts as an entry too; those are found from the editor, not by name.
const ours = Object.entries(parts).filter(([from]) => from.startsWith("src/"));
const partAddresses = Object.fromEntries(ours.map(([from, to]) => [basename(from, ".ts"), `/assets/${to}`]));
const boot = await build({
  ...common,
  // wasm-bindgen names a module once for each function that it takes from it.
  logOverride: { "duplicate-object-key": "silent" },
  define: { WASM: JSON.stringify(`/assets/${plan.wasm}`), PARTS: JSON.stringify(partAddresses) },
  entryPoints: [source("boot.ts")],
  plugins: [named({ "choir:glue": { file: resolve(plan.glue) } })],
});

// Not a module: the page waits for it before it paints anything.
const theme = await build({ ...common, entryPoints: [source("theme.ts")], format: "iife" });

const only = (names) => Object.values(names)[0];
writeFileSync(
  plan.manifest,
  JSON.stringify({
    script: only(outputs(boot)),
    theme: only(outputs(theme)),
    style: only(outputs(style)),
    parts: partAddresses,
  }),
);
