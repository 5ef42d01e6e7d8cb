//! `choir up`: starts the server of this machine and prints a sign-in link.

mod sign_in_page;

use std::io::IsTerminal;
use std::sync::Arc;

use agent_host::agent_services::AgentServices;
use anyhow::Result;
use hypervisor::assets::Assets;
use sandbox::startup::{self, CommandLineSettings, Startup, data_folder, machine_config};

use super::services;
use crate::cli::Up;

pub(crate) fn run(args: &Up, assets: Arc<dyn Assets>) -> Result<()> {
    let said = CommandLineSettings {
        listen: args.listen,
        port: args.data.port,
        public_url: args.public_url.clone(),
    };
    let mut config = machine_config(data_folder(args.data.data.clone())?, &said)?;
    let agent_services = AgentServices::new(config.models.as_ref())?;
    config.local_services = services::local_services(&config.server.data, agent_services.catalog())?;
    let browser = !args.no_browser && std::io::stdout().is_terminal();
    let data = config.server.data.clone();
    let ready = move |link: &str| {
        if browser {
            sign_in_page::open(&data, link);
        }
    };
    let ready = Arc::new(ready);
    let startup = Startup { config, assets, version: env!("CARGO_PKG_VERSION"), ready };
    Ok(startup::run(&startup)?)
}
