//! `cargo run -p sandbox`: the server of one person's computer on this machine, with the desktop from `target/web`.
//!
//! The product is `choir up`, which carries the desktop inside. This one reads it from the disk at every request, so
//! that a developer of the desktop sees a new bundle without building a binary. `CHOIR_PORT`, `CHOIR_DATA` and
//! `CHOIR_WEB` say where.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use hypervisor::assets::{Asset, Assets, content_type};
use sandbox::machine::MachineError;
use sandbox::startup::{CommandLineSettings, Startup, data_folder, machine_config, run};

const MISSING: &[u8] =
    b"<!doctype html><title>ChoirOS</title><p>There is no desktop in target/web. Build it with: \
    <code>cargo xtask web</code>";

fn main() -> ExitCode {
    if let Some(code) = isolation::entry() {
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sandbox: {:#}", anyhow::Error::from(error));
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), MachineError> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(PathBuf::from))?;
    let web = std::env::var_os("CHOIR_WEB").map_or_else(|| PathBuf::from("target/web"), PathBuf::from);
    run(&Startup {
        config: machine_config(data, &CommandLineSettings::in_variables()?)?,
        assets: Arc::new(Folder(web)),
        version: env!("CARGO_PKG_VERSION"),
        ready: Arc::new(|_| ()),
    })
}

/// A bundle on disk.
struct Folder(PathBuf);

impl Assets for Folder {
    fn get(&self, path: &str) -> Option<Asset> {
        let plain = Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
        let read = |path: &str| std::fs::read(self.0.join(path)).ok().filter(|_| plain);
        let bytes = match read(path) {
            Some(bytes) => Cow::Owned(bytes),
            None if path == "index.html" => Cow::Borrowed(MISSING),
            None => return None,
        };
        let brotli = read(&format!("{path}.br")).map(Cow::Owned);
        Some(Asset { bytes, brotli, mime: content_type(path), immutable: path.starts_with("assets/") })
    }
}
