//! The services of agents on this machine: the model catalog of `choir.toml`, the owner's keys, the local model, the
//! web.

use std::path::Path;
use std::sync::Arc;

use ::models::Catalog;
use agent_host::agent_services::{AgentServices, LocalServices};
use agent_host::web::PublicPages;
use anyhow::Result;
use computer::protocol::{RunRequest, RunResponse};
use sandbox::startup::{CommandLineSettings, data_folder, machine_config};
use shared_types::UserId;
use shared_types::wire::LocalModelLine;
use web_access::PublicWeb;

use super::runs::unexpected_answer;
use super::{Context, keys, models};
use crate::local::MachineModel;
use crate::render::line;

/// The local model.
pub(super) fn local() -> Result<MachineModel> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(Into::into))?;
    let config = machine_config(data.clone(), &CommandLineSettings::default())?;
    Ok(MachineModel::new(&data, AgentServices::new(config.models.as_ref())?.catalog()))
}

/// The services for a computer that this process holds. Without server data there are no keys, only the local model.
pub(super) fn of_this_machine() -> Result<AgentServices> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(Into::into))?;
    let config = machine_config(data.clone(), &CommandLineSettings::default())?;
    let agent_services = AgentServices::new(config.models.as_ref())?;
    let agent_services =
        AgentServices { local_services: local_services(&data, agent_services.catalog())?, ..agent_services };
    let agent_services = agent_services.with_services(&config.services)?.with_mcp(config.mcp.as_ref())?;
    let agent_services = agent_services.with_rules(config.rules.as_ref())?;
    if !data.join("hypervisor.sqlite").exists() {
        return Ok(agent_services);
    }
    let (vault, owner) = keys::open_in(&data)?;
    Ok(agent_services.with_keys(sandbox::keys_of_user(&vault, owner.id)))
}

/// The local model and the web.
pub(super) fn local_services(data: &Path, catalog: &Catalog) -> Result<LocalServices> {
    Ok(LocalServices {
        local: Some(Arc::new(MachineModel::new(data, catalog))),
        web: Some(Arc::new(PublicPages(PublicWeb::new()?))),
    })
}

/// Before a run starts: offers the local model if no other can be used, and prints its speed if it will be used.
pub(super) fn announce_model(
    context: &Context,
    agent_services: &AgentServices,
    wanted: Option<&str>,
) -> Result<()> {
    let (false, Some(local)) = (context.style.is_json(), &agent_services.local_services.local) else {
        return Ok(());
    };
    let wanted = match wanted {
        Some(of_run) => Some(of_run.to_owned()),
        None => conductor_model(context)?,
    };
    let choose = || agent_services.choose_model(&UserId::owner(), wanted.as_deref());
    // A model that is not in the catalog is a mistake that no download fixes.
    let is_known = wanted.as_deref().is_none_or(|name| agent_services.catalog().models.contains_key(name));
    if is_known && choose().is_err() {
        models::offer(context)?;
    }
    if choose().is_ok_and(|chosen| chosen.is_local) {
        line(&context.style.dim(&local_model_speed(&local.line())));
    }
    Ok(())
}

/// The model that the computer's settings choose for the conductor.
fn conductor_model(context: &Context) -> Result<Option<String>> {
    let RunResponse::Model(model) = context.about_runs(RunRequest::Model)? else {
        return Err(unexpected_answer());
    };
    Ok(model)
}

/// The speed of the local model, as text.
pub(super) fn local_model_speed(local: &LocalModelLine) -> String {
    let per_second = |hundredths: u64| format!("{}.{}", hundredths / 100, hundredths % 100 / 10);
    match local.speed {
        Some((reads, writes)) => format!(
            "using the local model: it reads {} and writes {} tokens per second",
            per_second(reads),
            per_second(writes)
        ),
        None => "using the local model: its speed will be measured when it starts".into(),
    }
}
