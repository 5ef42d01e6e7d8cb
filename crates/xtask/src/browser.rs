//! `cargo xtask browser`: the desktop in Debian's Chromium, against the real server.
//!
//! The specs are in `tests/browser`, one per app. Each starts a server of its own on a free port with a data folder of
//! its own, so that none depends on another. Screenshots are kept in `target/screenshots` for review.

use std::{env, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::{
    packages, process, web,
    workspace::{Profile, Workspace},
};

/// Where Debian and other systems install it.
const PLACES: [&str; 4] =
    ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome", "/snap/bin/chromium"];

/// The desktop in a real browser, against a real server
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask browser
  cargo xtask browser terminal editor     only the specs with such a name
  CHROMIUM=/opt/chromium cargo xtask browser
                                          with another Chromium than Debian's")]
pub(crate) struct Args {
    /// Only specs with one of these words in their name
    specs: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let chromium = chromium()?;
    let tests = workspace.root.join("tests/browser");
    web::run(workspace, &web::Args::default())?;
    web::install(&tests)?;
    workspace.build(&["--bin", "choir", "--bin", "scripted-model"])?;
    let mut node = Command::new("node");
    node.current_dir(&tests).arg("run.mjs").args(&args.specs);
    node.env("CHROMIUM", chromium).env("CHOIR", workspace.binary(Profile::Debug, "choir"));
    process::run(node.env("SCREENSHOTS", workspace.target.join("screenshots")))
}

/// A Chromium to drive: the one that `CHROMIUM` names, an installed one, or Debian's, installed now.
fn chromium() -> Result<String> {
    if let Ok(named) = env::var("CHROMIUM") {
        return Ok(named);
    }
    if let Some(found) = found() {
        return Ok(found);
    }
    if !packages::has_apt() {
        bail!("no Chromium found; install it, or name one: CHROMIUM=/path/to/chromium cargo xtask browser");
    }
    packages::install(&["chromium"])?;
    found().context("apt-get installed Chromium, but it is in none of the usual places")
}

fn found() -> Option<String> {
    PLACES.into_iter().find(|place| Path::new(place).is_file()).map(ToOwned::to_owned)
}
