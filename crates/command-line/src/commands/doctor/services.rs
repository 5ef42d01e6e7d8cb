//! Checks the MCP servers, web search and telemetry of the machine's `choir.toml`, and says how to fix problems.
//! Services that are not configured are not listed.

use std::path::Path;

use agent_host::agent_services::AgentServices;
use agent_host::mcp_cells::McpServerCells;
use agent_host::mcp_tools::{Endpoint, ServerSettings};
use agent_host::telemetry::Telemetry;
use anyhow::Result;
use hypervisor::vault::KeyReader;
use sandbox::machine::MachineConfig;
use sandbox::startup::{CommandLineSettings, data_folder, machine_config};
use web_access::search::Search;

use super::{Finding, bad, ok};
use crate::commands::{Context, keys, mcp};

pub(super) fn findings(context: &Context) -> Vec<Finding> {
    let data = data_folder(std::env::var_os("CHOIR_DATA").map(Into::into));
    // Problems with the folder or the file itself are reported by the check of the server.
    let Ok(data) = data else { return Vec::new() };
    let Ok(config) = machine_config(data.clone(), &CommandLineSettings::default()) else { return Vec::new() };
    let vault = OwnerKeys::open(&data);
    let mut findings = servers(context, &config, &vault);
    findings.extend(search(&config, &vault));
    findings.extend(telemetry(&config));
    findings
}

/// The owner's keys. `None` without server data.
struct OwnerKeys(Option<KeyReader>);

impl OwnerKeys {
    fn open(data: &Path) -> Self {
        Self(keys::open_in(data).ok().map(|(vault, owner)| vault.reader(&owner.id)))
    }

    /// The problem with a key, if any.
    fn problem(&self, name: &str) -> Option<String> {
        let set = format!("set it with: choir keys set {name}");
        match self.0.as_ref().map(|keys| keys.read(name)) {
            Some(Ok(Some(_))) => None,
            Some(Ok(None)) => Some(format!("there is no key {name:?} in the vault; {set}")),
            Some(Err(e)) => Some(format!("cannot read the key {name:?}: {e}")),
            None => {
                Some(format!("there is no vault for the key {name:?} yet; start choir up once, then {set}"))
            }
        }
    }
}

fn servers(context: &Context, config: &MachineConfig, keys: &OwnerKeys) -> Vec<Finding> {
    let agent_services = match AgentServices::new(config.models.as_ref()) {
        Ok(agent_services) => agent_services.with_rules(config.rules.as_ref()),
        Err(e) => return vec![bad("models", e.message)],
    };
    let agent_services = match agent_services {
        Ok(agent_services) => agent_services.with_mcp(config.mcp.as_ref()),
        Err(e) => return vec![bad("rules", e.message)],
    };
    let agent_services = match agent_services {
        Ok(agent_services) if agent_services.mcp_settings.servers.is_empty() => return Vec::new(),
        Ok(agent_services) => agent_services,
        Err(e) => return vec![bad("mcp", e.message)],
    };
    let checked = check_servers(context, &agent_services, keys);
    checked.unwrap_or_else(|e| vec![bad("mcp", format!("cannot look for programs: {e:#}"))])
}

fn check_servers(
    context: &Context,
    agent_services: &AgentServices,
    keys: &OwnerKeys,
) -> Result<Vec<Finding>> {
    let scratch = tempfile::tempdir()?;
    let cells = mcp::cells(context, agent_services, scratch.path())?;
    let all = agent_services.mcp_settings.servers.iter();
    Ok(all.flat_map(|(name, settings)| server(&cells, name, settings, keys)).collect())
}

/// All problems of a server, or one finding that it is fine.
fn server(cells: &McpServerCells, name: &str, settings: &ServerSettings, keys: &OwnerKeys) -> Vec<Finding> {
    let (about, program) = match &settings.endpoint {
        Endpoint::Program(program) => {
            let wanted = program.argv.first().map(String::as_str).unwrap_or_default();
            let problem = match cells.has_program(name, program) {
                Ok(true) => None,
                Ok(false) => Some(format!(
                    "{wanted} is not found in its cell; install it for the whole machine, or name its folder under \
                     tools in [cells], or under mounts"
                )),
                Err(e) => Some(format!("cannot start its cell: {e}")),
            };
            (format!("{wanted} is found in its cell"), problem)
        }
        Endpoint::Address(address) => (format!("at {}", address.url.host_str().unwrap_or_default()), None),
    };
    let names = settings.endpoint.keys();
    let problems: Vec<String> =
        program.into_iter().chain(names.iter().filter_map(|key| keys.problem(key))).collect();
    if !problems.is_empty() {
        return problems.into_iter().map(|problem| bad("mcp", format!("{name}: {problem}"))).collect();
    }
    let with = if names.is_empty() { String::new() } else { format!(", with the key {}", names.join(", ")) };
    vec![ok("mcp", format!("{name}: {about}{with}; test it with: choir mcp {name}"))]
}

fn search(config: &MachineConfig, keys: &OwnerKeys) -> Option<Finding> {
    let search = match Search::new(config.services.search.as_ref()?) {
        Ok(search) => agent_host::services::search_line(&search),
        Err(e) => return Some(bad("web search", e.to_string())),
    };
    Some(match search.key.as_deref().and_then(|key| keys.problem(key)) {
        Some(problem) => bad("web search", format!("{}: {problem}", search.provider)),
        None => ok("web search", format!("{} at {}", search.provider, search.address)),
    })
}

fn telemetry(config: &MachineConfig) -> Option<Finding> {
    Some(match Telemetry::new(config.services.telemetry.as_ref()?) {
        Ok(telemetry) => ok("telemetry", format!("spans of agents go to {}", telemetry.line().address)),
        Err(e) => bad("telemetry", e.message),
    })
}
