//! The standard library for `wasm32-unknown-unknown`: found, fetched, or built, in that order.
//!
//! Most machines get it from rustup. Some reach only package registries; there it is built once from the sources
//! that Debian packages ([`debian`]), and cargo runs as the toolchain `wasm`. `WASM_STD=debian` forces the second
//! way, so that it is tested on machines that would never need it.

mod debian;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{process, workspace::Workspace};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// rustup's server may be unreachable in a way that hangs rather than fails.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(120);

/// cargo and rustup tell these to their children; with any of them set, `cargo +wasm` is not that toolchain.
const TOOLCHAIN_VARIABLES: [&str; 3] = ["RUSTUP_TOOLCHAIN", "RUSTC", "CARGO"];

/// A standard library for wasm that is ready to be used, by where it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WasmStd {
    /// In the toolchain that builds everything else.
    Rustup,
    /// In the linked toolchain `wasm`.
    Debian,
}

impl WasmStd {
    /// A cargo that can build for [`TARGET`], started at the root.
    pub(crate) fn cargo(self, workspace: &Workspace) -> Command {
        match self {
            Self::Rustup => workspace.cargo([]),
            Self::Debian => {
                let mut cargo = without_toolchain("cargo");
                cargo.current_dir(&workspace.root).arg(format!("+{}", debian::TOOLCHAIN));
                cargo
            }
        }
    }
}

/// Makes sure that there is a standard library for wasm, and says which.
pub(crate) fn provide(workspace: &Workspace) -> Result<WasmStd> {
    match Choice::from_environment()? {
        Choice::Debian => from_debian(workspace),
        Choice::Automatic => {
            let sysroot = sysroot()?;
            if has_std(&sysroot) {
                Ok(WasmStd::Rustup)
            } else if debian::is_built() || !download(&sysroot) {
                from_debian(workspace)
            } else {
                Ok(WasmStd::Rustup)
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Choice {
    Automatic,
    Debian,
}

impl Choice {
    fn from_environment() -> Result<Self> {
        let value = env::var_os("WASM_STD").unwrap_or_default();
        Self::parse(&value.to_string_lossy())
    }

    fn parse(value: &str) -> Result<Self> {
        match value {
            "" | "auto" => Ok(Self::Automatic),
            "debian" => Ok(Self::Debian),
            other => bail!("WASM_STD is `{other}`; set it to `auto` or `debian`, or leave it unset"),
        }
    }
}

fn from_debian(workspace: &Workspace) -> Result<WasmStd> {
    debian::provide(workspace).with_context(|| format!("no standard library for {TARGET}"))?;
    Ok(WasmStd::Debian)
}

/// Asks rustup for the target; that it cannot be had is an answer here, not an error.
fn download(sysroot: &Path) -> bool {
    let added = process::run_within(Command::new("rustup").args(["target", "add", TARGET]), DOWNLOAD_LIMIT);
    if let Err(error) = &added {
        eprintln!("wasm: {error:#}; building it from Debian's packages instead");
    }
    added.is_ok() && has_std(sysroot)
}

fn sysroot() -> Result<PathBuf> {
    Ok(process::capture(Command::new("rustc").args(["--print", "sysroot"]))?.trim_end().into())
}

fn libraries(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib").join(TARGET).join("lib")
}

/// The directory alone is no proof: a download that was cut short leaves it empty.
fn has_std(sysroot: &Path) -> bool {
    let Ok(entries) = fs::read_dir(libraries(sysroot)) else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

fn without_toolchain(program: &str) -> Command {
    let mut command = Command::new(program);
    for variable in TOOLCHAIN_VARIABLES {
        command.env_remove(variable);
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_automatic_unless_it_is_forced() {
        assert_eq!(Choice::parse("").unwrap(), Choice::Automatic);
        assert_eq!(Choice::parse("debian").unwrap(), Choice::Debian);
        assert!(Choice::parse("Debain").unwrap_err().to_string().contains("set it to"));
    }

    #[test]
    fn a_directory_without_libstd_is_not_a_standard_library() {
        let sysroot = env::temp_dir().join(format!("xtask-wasm-{}", std::process::id()));
        fs::create_dir_all(libraries(&sysroot)).unwrap();
        assert!(!has_std(&sysroot));
        fs::write(libraries(&sysroot).join("libstd-0123.rlib"), "").unwrap();
        assert!(has_std(&sysroot));
        fs::remove_dir_all(sysroot).unwrap();
    }

    #[test]
    fn the_debian_cargo_is_the_linked_toolchain_and_inherits_no_other() {
        let workspace = Workspace { root: "/".into(), target: "/".into(), packages: Vec::new() };
        let cargo = WasmStd::Debian.cargo(&workspace);
        assert_eq!(cargo.get_args().next().unwrap(), "+wasm");
        for variable in TOOLCHAIN_VARIABLES {
            assert!(cargo.get_envs().any(|(name, value)| name == variable && value.is_none()), "{variable}");
        }
    }
}
