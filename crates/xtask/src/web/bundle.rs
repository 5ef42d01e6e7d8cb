//! Everything that is not Rust: the JavaScript parts, the fonts and the style sheets, bundled by esbuild through
//! `web/build.mjs`.
//!
//! node and npm are asked for, not installed: how to get them is a choice of the machine's owner.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{Names, Purpose};
use crate::{process, workspace::Workspace};

const LEAST_NODE: u32 = 20;

/// Makes sure that node is there and the packages are those of the lock file.
pub(super) fn provide(workspace: &Workspace) -> Result<()> {
    node()?;
    install(&workspace.root.join("web"))
}

/// Installs the packages of a folder, unless they are newer than its lock file.
pub(crate) fn install(folder: &Path) -> Result<()> {
    let lock = folder.join("package-lock.json");
    let installed = folder.join("node_modules/.package-lock.json");
    let changed = |path: &Path| fs::metadata(path).and_then(|metadata| metadata.modified());
    let wanted = changed(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    if changed(&installed).is_ok_and(|done| done >= wanted) {
        return Ok(());
    }
    println!("web: npm ci in {}", folder.display());
    let mut npm = Command::new("npm");
    npm.current_dir(folder).args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    process::run(&mut npm).context("cannot install the packages")
}

fn node() -> Result<()> {
    const HOW: &str = "the parts of the desktop that are not Rust need node 20 or newer, with npm; on Debian: apt \
                       install nodejs npm, elsewhere: https://nodejs.org";
    let version = process::capture(Command::new("node").arg("--version")).context(HOW)?;
    let major = version.trim().trim_start_matches('v').split('.').next().and_then(|text| text.parse().ok());
    ensure!(major.is_some_and(|major: u32| major >= LEAST_NODE), "node is {}; {HOW}", version.trim());
    ensure!(process::succeeds(Command::new("npm").arg("--version")), "there is no npm; {HOW}");
    Ok(())
}

/// The style sheets of the desktop, in the order in which they count: the tokens first, then by name.
pub(super) fn styles(workspace: &Workspace) -> Result<Vec<PathBuf>> {
    let folder = workspace.root.join("crates/dioxus-desktop/style");
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut sheets = super::files_under(&folder)?;
    sheets.retain(|path| path.extension().is_some_and(|extension| extension == "css"));
    sheets.sort_by_key(|path| (!path.ends_with("tokens.css"), path.clone()));
    Ok(sheets)
}

/// Bundles everything into `assets`, beside the wasm that is already there.
pub(super) fn make(
    workspace: &Workspace,
    glue: &Path,
    wasm: String,
    assets: &Path,
    purpose: Purpose,
) -> Result<Names> {
    let web = workspace.root.join("web");
    let types = web.join("node_modules/typescript/bin/tsc");
    process::run(Command::new("node").current_dir(&web).arg(types).arg("--noEmit"))
        .context("the types of web/src do not fit")?;

    let work = workspace.target.join("web-glue");
    let (plan, manifest) = (work.join("plan.json"), work.join("manifest.json"));
    let text = json!({
        "glue": glue,
        "wasm": wasm,
        "styles": styles(workspace)?,
        "out": assets,
        "manifest": manifest,
        "minify": purpose == Purpose::Ship,
    });
    fs::write(&plan, text.to_string())?;
    process::run(Command::new("node").current_dir(&web).arg("build.mjs").arg(plan))?;

    let answer: Value = serde_json::from_str(&fs::read_to_string(&manifest)?)?;
    let name = |field: &str| {
        let name = answer[field].as_str().map(ToOwned::to_owned);
        name.with_context(|| format!("web/build.mjs did not name the {field}"))
    };
    Ok(Names { script: name("script")?, theme: name("theme")?, style: name("style")? })
}
