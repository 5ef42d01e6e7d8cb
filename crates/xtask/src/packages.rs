//! Debian's packages that a task needs, installed where they are missing.

use std::{path::Path, process::Command};

use anyhow::{Context, Result};

use crate::process;

/// What the tests of cells need besides the kernel: a container runtime, a static program to make an image of, and the
/// reference of the benchmarks.
const CELLS: [&str; 3] = ["runc", "busybox-static", "bubblewrap"];

/// Whether this machine installs packages with apt.
pub(crate) fn has_apt() -> bool {
    Path::new("/usr/bin/apt-get").exists()
}

/// Installs packages, unless all of them are installed.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    if process::succeeds(Command::new("dpkg").arg("-s").args(packages)) {
        return Ok(());
    }
    let names = packages.join(" ");
    let missing = || format!("cannot install {names}; as root: apt-get update && apt-get install {names}");
    println!("installing {names}");
    process::run(&mut apt(&["update"])).with_context(missing)?;
    let mut install = apt(&["install", "--yes", "--no-install-recommends"]);
    process::run(install.args(packages)).with_context(missing)
}

/// Installs what the tests of cells need. Without it they run with fewer backends and report that.
pub(crate) fn install_for_cells() {
    if !has_apt() {
        return;
    }
    if let Err(error) = install(&CELLS) {
        eprintln!("tests of containers are skipped: {error:#}");
    }
}

fn apt(args: &[&str]) -> Command {
    let mut apt = Command::new("apt-get");
    // Another apt may be running, as is common just after a machine has started.
    apt.args(["-qq", "-o", "DPkg::Lock::Timeout=300"]).args(args);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt
}
