//! A standard library for wasm out of Debian's packages, for machines that reach registries and nothing else.
//!
//! Debian has a current compiler (`rustc-web`) and the sources of its standard library, but no build of it for
//! wasm. It is built once, with Debian's compiler, into Debian's own sysroot, which rustup then knows as the
//! toolchain `wasm`. A stamp names the compiler that it was built with: an upgraded one builds again, an
//! interrupted build leaves no stamp.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

use super::{TARGET, has_std, libraries, sysroot, without_toolchain};
use crate::{packages, process, workspace::Workspace};

/// What rustup calls Debian's sysroot.
pub(super) const TOOLCHAIN: &str = "wasm";

const SYSROOT: &str = "/usr";
const SOURCES: &str = "/usr/lib/rustlib/src/rust/library";
const PACKAGES: [&str; 3] = ["rustc-web", "cargo-web", "rust-web-src"];

pub(super) fn provide(workspace: &Workspace) -> Result<()> {
    install_packages()?;
    let compiler = process::capture(debian_tool("rustc").arg("-vV"))?;
    if !is_current(&compiler) {
        println!("wasm: building the standard library from Debian's sources, once (some minutes)");
        build_and_install(&workspace.target.join("wasm-std"), &compiler)?;
    }
    lend_linker(&compiler)?;
    link_toolchain()
}

/// A tool of Debian's, by its full name: the one on PATH is rustup's.
fn debian_tool(name: &str) -> Command {
    without_toolchain(&format!("{SYSROOT}/bin/{name}"))
}

fn install_packages() -> Result<()> {
    if !packages::has_apt() {
        bail!("run `rustup target add {TARGET}` on a network that reaches rustup's server");
    }
    packages::install(&PACKAGES)
}

fn stamp() -> PathBuf {
    libraries(Path::new(SYSROOT)).with_file_name("stamp")
}

/// Whether it was built here before, perhaps with a compiler since upgraded: then rustup need not be asked again.
pub(super) fn is_built() -> bool {
    has_std(Path::new(SYSROOT)) && stamp().exists()
}

fn is_current(compiler: &str) -> bool {
    is_built() && fs::read_to_string(stamp()).is_ok_and(|built_with| built_with == compiler)
}

fn build_and_install(scratch: &Path, compiler: &str) -> Result<()> {
    remove(scratch)?;
    fs::create_dir_all(scratch)?;
    // A copy, because cargo writes beside the sources and /usr is the package manager's.
    let library = scratch.join("library");
    process::run(Command::new("cp").arg("-r").arg(SOURCES).arg(&library))?;
    process::run(&mut std_build(&library, &scratch.join("target")))?;
    install(&scratch.join("target").join(TARGET).join("release/deps"), compiler)?;
    remove(scratch)
}

fn std_build(library: &Path, target: &Path) -> Command {
    // `force-unstable` marks the crates inside std as private to it, as in a std that Rust releases; the
    // metadata keeps them apart from the same crates as dependencies of ours.
    let flags = format!(
        "-Zforce-unstable-if-unmarked -Cembed-bitcode=yes -Cdebuginfo=0 --remap-path-prefix={}=/rustc/library",
        library.display()
    );
    let mut cargo = debian_tool("cargo");
    cargo.current_dir(library.join("sysroot"));
    cargo.args(["build", "--release", "--locked", "--target", TARGET]).arg("--target-dir").arg(target);
    cargo.env("RUSTC", format!("{SYSROOT}/bin/rustc")).env("RUSTC_BOOTSTRAP", "1");
    cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags);
    cargo.env("__CARGO_DEFAULT_LIB_METADATA", "choir-wasm-std");
    // These would take the place of the flags above.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo
}

/// Moves the built libraries into the sysroot; the stamp comes last, so half an installation is none.
fn install(built: &Path, compiler: &str) -> Result<()> {
    let libraries = libraries(Path::new(SYSROOT));
    let denied = || format!("cannot write to {}; this needs to run as root, once", libraries.display());
    if let Some(folder) = libraries.parent() {
        remove(folder).with_context(denied)?;
    }
    fs::create_dir_all(&libraries).with_context(denied)?;
    for entry in fs::read_dir(built)? {
        let file = entry?.path();
        if let (Some(name), Some("rlib")) = (file.file_name(), file.extension().and_then(|e| e.to_str())) {
            fs::copy(&file, libraries.join(name)).with_context(denied)?;
        }
    }
    ensure!(has_std(Path::new(SYSROOT)), "the build made no libstd in {}", built.display());
    fs::write(stamp(), compiler).with_context(denied)
}

/// Debian ships no `rust-lld`; rustup's does as well, and rustc looks for it in its own sysroot.
fn lend_linker(compiler: &str) -> Result<()> {
    let Some(host) = compiler.lines().find_map(|line| line.strip_prefix("host: ")) else {
        bail!("`rustc -vV` of Debian names no host");
    };
    let tools = Path::new("lib/rustlib").join(host).join("bin");
    let lent = Path::new(SYSROOT).join(&tools).join("rust-lld");
    // `exists` follows the link: one that points at a toolchain since removed is replaced.
    if lent.exists() {
        return Ok(());
    }
    let ours = sysroot()?.join(&tools).join("rust-lld");
    ensure!(ours.exists(), "no rust-lld at {}; install the toolchain with rustup", ours.display());
    fs::create_dir_all(Path::new(SYSROOT).join(&tools))?;
    process::run(Command::new("ln").arg("-sfn").arg(ours).arg(lent))
}

fn link_toolchain() -> Result<()> {
    let listed = process::capture(without_toolchain("rustup").args(["toolchain", "list", "-v"]))?;
    let linked = listed.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.next() == Some(TOOLCHAIN) && words.next_back() == Some(SYSROOT)
    });
    if linked {
        return Ok(());
    }
    process::run(without_toolchain("rustup").args(["toolchain", "link", TOOLCHAIN, SYSROOT]))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
