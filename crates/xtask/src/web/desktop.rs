//! The desktop itself: cargo compiles it for wasm, wasm-bindgen writes the glue between it and the page.
//!
//! wasm-bindgen's generator is a library here, pinned to the version that the desktop is compiled with, so no tool
//! needs to be installed and the two cannot disagree.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::Purpose;
use crate::{process, wasm, workspace::Workspace};

const CRATE: &str = "dioxus-desktop";

/// Compiles the desktop and says where it is.
pub(super) fn compile(workspace: &Workspace, purpose: Purpose) -> Result<PathBuf> {
    let (profile, folder) = match purpose {
        Purpose::Ship => ("wasm-release", "wasm-release"),
        Purpose::Develop => ("dev", "debug"),
    };
    let mut cargo = wasm::provide(workspace)?.cargo(workspace);
    cargo.args(["build", "--locked", "--package", CRATE, "--target", wasm::TARGET, "--profile", profile]);
    process::run(&mut cargo)?;
    Ok(workspace.target.join(wasm::TARGET).join(folder).join(format!("{CRATE}.wasm")))
}

/// Writes `desktop.js` and `desktop_bg.wasm`.
pub(super) fn bind(wasm: &Path, out: &Path, purpose: Purpose) -> Result<()> {
    let small = purpose == Purpose::Ship;
    let mut bindgen = Bindgen::new();
    bindgen.input_path(wasm).out_name("desktop").typescript(false);
    bindgen.remove_name_section(small).remove_producers_section(small);
    bindgen.web(true)?.generate(out).with_context(|| format!("cannot write the glue for {}", wasm.display()))
}
