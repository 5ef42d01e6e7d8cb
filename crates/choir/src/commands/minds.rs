//! What agents on this machine think with: the catalog of its `choir.toml`, its owner's keys, its own model, the web.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use models::Catalog;
use sandbox::minds::{Minds, Outside};
use sandbox::startup::{Said, data_folder, machine_config};
use sandbox::web::PublicWeb;

use super::keys;
use crate::local::Local;

/// For a computer that this process holds. Where nothing was ever served there are no keys, and the machine's own model
/// is what is left.
pub(super) fn of_this_machine() -> Result<Minds> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(Into::into))?;
    let config = machine_config(data.clone(), &Said::default())?;
    let minds = Minds::new(config.models.as_ref())?;
    let minds = Minds { outside: outside(&data, &minds.catalog)?, ..minds };
    let minds = minds.with_services(&config.services)?.with_tools(config.mcp.as_ref())?;
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
