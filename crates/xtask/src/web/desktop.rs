//! The desktop itself: cargo compiles it for wasm, wasm-bindgen writes the glue between it and the page.
//!
//! wasm-bindgen's generator is a library here, pinned to the version that the desktop is compiled with, so no tool
//! needs to be installed and the two cannot disagree.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use super::Purpose;
use crate::{process, wasm, workspace::Workspace};

const CRATE: &str = "dioxus-desktop";

/// Compiles the desktop and returns the path of its wasm.
pub(super) fn compile(workspace: &Workspace, purpose: Purpose) -> Result<PathBuf> {
    let (profile, folder) = match purpose {
        Purpose::Ship => ("wasm-release", "wasm-release"),
        Purpose::Develop => ("dev", "debug"),
    };
    let mut cargo = wasm::provide(workspace)?.cargo(workspace);
    cargo.args(["rustc", "--locked", "--package", CRATE, "--target", wasm::TARGET, "--profile", profile]);
    // [`split`] reads from the relocations which function uses which.
    cargo.args(["--", "-Clink-arg=--emit-relocs"]);
    process::run(&mut cargo)?;
    Ok(workspace.target.join(wasm::TARGET).join(folder).join(format!("{CRATE}.wasm")))
}

/// Splits the code of each app from the main module, so that a browser fetches it on first use. Returns the paths of the
/// main module and of the split ones.
pub(super) fn split(wasm: &Path, out: &Path) -> Result<(PathBuf, Vec<PathBuf>)> {
    let input = fs::read(wasm).with_context(|| format!("cannot read {}", wasm.display()))?;
    let main = out.join("main.wasm");
    let mut options = wasm_split_cli_support::Options::new(&input);
    options.output_dir = out;
    options.main_out_path = &main;
    options.main_module = "./desktop.js";
    let split = wasm_split_cli_support::transform(options).map_err(|error| anyhow!("{error:#}"))?;
    Ok((main, split.split_modules))
}

/// Writes `desktop.js` and `desktop_bg.wasm`.
pub(super) fn bind(wasm: &Path, out: &Path, purpose: Purpose) -> Result<()> {
    let small = purpose == Purpose::Ship;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).out_name("desktop").typescript(false);
    // Split modules use the memory and the table of the main module.
    bindgen.keep_lld_exports(true).demangle(false);
    bindgen.remove_name_section(small).remove_producers_section(small);
    bindgen.web(true)?.generate(out).with_context(|| format!("cannot write the glue for {}", wasm.display()))
}
