//! What agents on this machine think with: the catalog of its `choir.toml`, its owner's keys, its own model, the web.

use std::path::Path;
use std::sync::Arc;

use ::models::Catalog;
use anyhow::Result;
use sandbox::minds::{Minds, Outside};
use sandbox::protocol::{RunAnswer, RunRequest};
use sandbox::startup::{Said, data_folder, machine_config};
use sandbox::web::PublicWeb;
use shared_types::UserId;
use shared_types::wire::LocalModelLine;

use super::runs::other;
use super::{Context, keys, models};
use crate::local::Local;
use crate::render::line;

/// The model of this machine alone.
pub(super) fn local() -> Result<Local> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(Into::into))?;
    let config = machine_config(data.clone(), &Said::default())?;
    Ok(Local::new(&data, &Minds::new(config.models.as_ref())?.catalog))
}

/// For a computer that this process holds. Where nothing was ever served there are no keys, and the machine's own model
/// is what is left.
pub(super) fn of_this_machine() -> Result<Minds> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(Into::into))?;
    let config = machine_config(data.clone(), &Said::default())?;
    let minds = Minds::new(config.models.as_ref())?;
    let minds = Minds { outside: outside(&data, &minds.catalog)?, ..minds };
    let minds = minds.with_services(&config.services)?.with_tools(config.mcp.as_ref())?;
    let minds = minds.with_rules(config.rules.as_ref())?;
    if !data.join("hypervisor.sqlite").exists() {
        return Ok(minds);
    }
    let (vault, owner) = keys::open_in(&data)?;
    Ok(minds.with_keys_of(&vault, owner.id))
}

/// The machine's own model and the web.
pub(super) fn outside(data: &Path, catalog: &Catalog) -> Result<Outside> {
    Ok(Outside { local: Some(Arc::new(Local::new(data, catalog))), web: Some(Arc::new(PublicWeb::new()?)) })
}

/// Before a run starts: if no model can take it, the one of this machine is offered; if that one is to take it, the person
/// is told how quick it is.
pub(super) fn tell(context: &Context, minds: &Minds, wanted: Option<&str>) -> Result<()> {
    let (false, Some(local)) = (context.style.is_json(), &minds.outside.local) else { return Ok(()) };
    let wanted = match wanted {
        Some(of_run) => Some(of_run.to_owned()),
        None => of_the_conductor(context)?,
    };
    let choose = || minds.for_a_run(&UserId::owner(), wanted.as_deref());
    // A model that is not in the catalog is a mistake, and no other would mend it.
    let is_known = wanted.as_deref().is_none_or(|name| minds.catalog.models.contains_key(name));
    if is_known && choose().is_err() {
        models::offer(context)?;
    }
    if choose().is_ok_and(|chosen| chosen.is_local) {
        line(&context.style.dim(&pace(&local.line())));
    }
    Ok(())
}

/// What the person wants for whoever takes objectives, as the computer has it.
fn of_the_conductor(context: &Context) -> Result<Option<String>> {
    let RunAnswer::Model(model) = context.about_runs(RunRequest::Model)? else { return Err(other()) };
    Ok(model)
}

/// How quick the model of this machine is, in words.
pub(super) fn pace(local: &LocalModelLine) -> String {
    let per_second = |hundredths: u64| format!("{}.{}", hundredths / 100, hundredths % 100 / 10);
    match local.speed {
        Some((reads, writes)) => format!(
            "the model of this machine answers: it reads {} and writes {} tokens a second",
            per_second(reads),
            per_second(writes)
        ),
        None => "the model of this machine answers: how quick it is will be measured when it starts".into(),
    }
}
