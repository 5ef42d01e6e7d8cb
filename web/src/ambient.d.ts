// Files that the bundler turns into the address of a hashed copy.
declare module "*?url" {
  const address: string;
  export default address;
}

// The output of wasm-bindgen for the desktop.
declare module "choir:glue" {
  export default function start(options: { module_or_path: Promise<Response> }): Promise<unknown>;
}
