//! `choir link`: another sign-in link for the owner.

use anyhow::{Context as _, Result};
use computer::error::{ComputerError, ErrorCode};
use hypervisor::identity::IdentityStore;
use hypervisor::server::{clock, last_port};
use sandbox::startup::{CommandLineSettings, data_folder, machine_config};
use serde_json::json;

use super::Context;
use crate::cli::Link;
use crate::render::{self, line};

pub(crate) fn run(context: &Context, args: &Link) -> Result<()> {
    let data = data_folder(args.data.clone())?;
    if !data.join("hypervisor.sqlite").exists() {
        let message = format!("{} has no server data yet; start the server with: choir up", data.display());
        return Err(ComputerError::new(ErrorCode::NoComputer, message).into());
    }
    let identity = IdentityStore::open(&data, clock())?;
    let owner = identity.users()?.into_iter().find(|user| user.owner).context("this machine has no owner")?;
    let said = CommandLineSettings {
        port: args.port.or_else(|| last_port(&data)),
        ..CommandLineSettings::default()
    };
    let config = machine_config(data.clone(), &said)?.server;
    let site = config.site(config.listen.port())?;
    let link = site.sign_in_link(&identity.make_link(&owner.id)?);
    if context.style.is_json() {
        render::json(&json!({ "link": link }));
    } else {
        line(&link);
    }
    Ok(())
}
