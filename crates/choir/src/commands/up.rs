//! `choir up`: starts the server of this machine and prints a sign-in link.

mod sign_in_page;

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::Arc;

use agent_host::agent_services::AgentServices;
use anyhow::Result;
use hypervisor::assets::{Asset, Assets, content_type};
use sandbox::startup::{self, CommandLineSettings, Startup, data_folder, machine_config};

use super::services;
use crate::cli::Up;
use crate::web;

pub(crate) fn run(args: &Up) -> Result<()> {
    let said = CommandLineSettings {
        listen: args.listen,
        port: args.data.port,
        public_url: args.public_url.clone(),
    };
    let mut config = machine_config(data_folder(args.data.data.clone())?, &said)?;
    let catalog = AgentServices::new(config.models.as_ref())?.catalog;
    config.local_services = services::local_services(&config.server.data, &catalog)?;
    let browser = !args.no_browser && std::io::stdout().is_terminal();
    let data = config.server.data.clone();
    let ready = move |link: &str| {
        if browser {
            sign_in_page::open(&data, link);
        }
    };
    let ready = Arc::new(ready);
    let startup = Startup { config, assets: Arc::new(Embedded), version: env!("CARGO_PKG_VERSION"), ready };
    Ok(startup::run(&startup)?)
}

/// The desktop embedded in this binary.
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
