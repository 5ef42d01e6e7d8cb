//! `choir up`: the server of this machine, and a link to its desktop.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::process::Stdio;
use std::sync::Arc;

use anyhow::Result;
use hypervisor::assets::{Asset, Assets, content_type};
use sandbox::minds::Minds;
use sandbox::startup::{self, Said, Startup, data_folder, machine_config};

use super::minds;
use crate::cli::Up;
use crate::web;

pub(crate) fn run(args: &Up) -> Result<()> {
    let said = Said { listen: args.listen, port: args.data.port, public_url: args.public_url.clone() };
    let mut config = machine_config(data_folder(args.data.data.clone())?, &said)?;
    let catalog = Minds::new(config.models.as_ref())?.catalog;
    config.outside = minds::outside(&config.server.data, &catalog)?;
    let browser = !args.no_browser && std::io::stdout().is_terminal();
    let ready = if browser { open_browser } else { |_: &str| () };
    let startup = Startup { config, assets: Arc::new(Embedded), version: env!("CARGO_PKG_VERSION"), ready };
    Ok(startup::run(&startup)?)
}

fn open_browser(link: &str) {
    let opened = std::process::Command::new("xdg-open")
        .arg(link)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    // Without one, the link on the screen does.
    if let Ok(mut child) = opened {
        std::thread::spawn(move || child.wait());
    }
}

/// The desktop that this binary carries.
struct Embedded;

impl Assets for Embedded {
    fn get(&self, path: &str) -> Option<Asset> {
        let (bytes, brotli) = match web::find(path) {
            Some(found) => found,
            None if path == "index.html" => (web::MISSING.as_bytes(), None),
            None => return None,
        };
        Some(Asset {
            bytes: Cow::Borrowed(bytes),
            brotli: brotli.map(Cow::Borrowed),
            mime: content_type(path),
            immutable: path.starts_with("assets/"),
        })
    }
}
