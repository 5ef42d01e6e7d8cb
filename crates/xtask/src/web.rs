//! `cargo xtask web`: everything that the browser loads, in `target/web`, ready to be embedded in the binary.
//!
//! The desktop is compiled to wasm and gets its glue from wasm-bindgen ([`desktop`]); esbuild bundles the glue, the
//! style sheets and the parts that are not Rust ([`bundle`]); every name carries the hash of its content, and every
//! file has a compressed copy ([`compress`]). If nothing changed, a second run only asks cargo.

mod bundle;
mod compress;
mod desktop;
mod inputs;
mod sizes;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

pub(crate) use bundle::install;

/// Builds what the browser loads into target/web
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask web             small and compressed, as it is shipped
  cargo xtask web --dev       quicker to build: neither optimised nor compressed, no limit on its size")]
pub(crate) struct Args {
    /// Builds quickly rather than small
    #[arg(long)]
    pub(crate) dev: bool,
}

/// What the build is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Ship,
    Develop,
}

/// The names, within `assets/`, of what the page itself asks for.
#[derive(Debug)]
struct Names {
    script: String,
    theme: String,
    style: String,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let purpose = if args.dev { Purpose::Develop } else { Purpose::Ship };
    let out = workspace.target.join("web");
    bundle::provide(workspace)?;
    println!("web: the desktop for wasm");
    let wasm = desktop::compile(workspace, purpose)?;

    let stamp = inputs::stamp(workspace, &wasm, purpose)?;
    if fs::read_to_string(out.join(".stamp")).is_ok_and(|last| last == stamp) {
        println!("web: nothing changed in {}", out.display());
        return sizes::report(&out, purpose);
    }

    let fresh = workspace.target.join("web.new");
    remove(&fresh)?;
    let names = assemble(workspace, &wasm, &fresh, purpose)?;
    fs::write(fresh.join("index.html"), page(workspace, &names)?)?;
    if purpose == Purpose::Ship {
        println!("web: compressing");
        compress::all(&fresh, &workspace.target.join("web-cache"))?;
    }
    sizes::report(&fresh, purpose)?;
    fs::write(fresh.join(".stamp"), stamp)?;
    // The old bundle is removed only now, so that a failed build leaves one that works.
    remove(&out)?;
    fs::rename(&fresh, &out).with_context(|| format!("cannot put the bundle at {}", out.display()))?;
    println!("web: {}", out.display());
    Ok(())
}

/// Fills `assets/`.
fn assemble(workspace: &Workspace, wasm: &Path, out: &Path, purpose: Purpose) -> Result<Names> {
    let assets = out.join("assets");
    fs::create_dir_all(&assets).with_context(|| format!("cannot make {}", assets.display()))?;
    let glue = workspace.target.join("web-glue");
    remove(&glue)?;
    let (main, parts) = desktop::split(wasm, &glue)?;
    desktop::bind(&main, &glue, purpose)?;
    let name = with_hash(&glue.join("desktop_bg.wasm"), "desktop", &assets)?;
    let link = glue.join("__wasm_split.js");
    let mut text = fs::read_to_string(&link)?;
    for part in parts {
        let stem = part.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name = with_hash(&part, &stem, &assets)?;
        text = text.replace(&format!("\"./{stem}.wasm\""), &format!("\"./{name}\""));
    }
    fs::write(&link, text)?;
    println!("web: bundling");
    bundle::make(workspace, &glue.join("desktop.js"), name, &assets, purpose)
}

/// Copies a module to the assets, under a name with its hash.
fn with_hash(module: &Path, stem: &str, assets: &Path) -> Result<String> {
    let bytes = fs::read(module).with_context(|| format!("cannot read {}", module.display()))?;
    let name = format!("{stem}-{}.wasm", &inputs::hash_of(&bytes)[..8]);
    fs::write(assets.join(&name), bytes)?;
    Ok(name)
}

/// The page with its placeholders filled, except for the nonce, which the server makes for every response.
fn page(workspace: &Workspace, names: &Names) -> Result<String> {
    let template = workspace.root.join("crates/dioxus-desktop/index.html");
    let text =
        fs::read_to_string(&template).with_context(|| format!("cannot read {}", template.display()))?;
    let places = [("{{script}}", &names.script), ("{{style}}", &names.style), ("{{theme}}", &names.theme)];
    for (place, _) in places {
        anyhow::ensure!(text.contains(place), "{} has no {place}", template.display());
    }
    let fill = |text: String, (place, name): (&str, &String)| text.replace(place, &format!("/assets/{name}"));
    Ok(places.into_iter().fold(text, fill))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Every file under a folder, in a fixed order.
fn files_under(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.append(&mut files_under(&path)?);
        } else {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
