//! The `[mcp.NAME]` tables of `choir.toml`: the servers, how each is reached, and what it is trusted with.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use thiserror::Error;
use toml::{Table, Value};
use url::Url;

/// The maximum length of a server name, which leaves room for tool names.
const MAX_NAME: usize = 24;
/// The default and maximum time of a call.
const DEFAULT_SECONDS: u64 = 60;
const MAX_SECONDS: u64 = 1_800;
const MIN_MEMORY_MB: u64 = 16;

/// An invalid setting; the reason names the key.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[error("[mcp.{server}] {reason}")]
pub struct SettingsError {
    pub server: String,
    pub reason: String,
}

/// All servers by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    pub servers: BTreeMap<String, ServerSettings>,
}

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSettings {
    pub endpoint: Endpoint,
    /// Roles whose agents are offered its tools.
    pub roles: BTreeSet<String>,
    /// Tools that the person declares read-only.
    pub read_only: BTreeSet<String>,
    /// Whether to believe the server's own read-only hints.
    pub trust_hints: bool,
    /// The time limit of a call.
    pub timeout: Duration,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Program(Program),
    Address(Address),
}

impl Endpoint {
    /// The names of the vault keys it needs, each once.
    pub fn keys(&self) -> Vec<String> {
        let keys: BTreeSet<&String> = match self {
            Self::Program(program) => program.secrets.values().collect(),
            Self::Address(address) => address.key.iter().collect(),
        };
        keys.into_iter().cloned().collect()
    }
}

/// A program that speaks MCP over standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub argv: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// Variables, each with the name of a secret in the vault.
    pub secrets: BTreeMap<String, String>,
    pub network: NetworkScope,
    pub memory_mb: Option<u64>,
    /// Whether it sees the person's files, read-only.
    pub workspace: bool,
    /// Folders that it sees in addition to the machine's programs, read-only.
    pub mounts: Vec<PathBuf>,
}

/// What a program can reach on the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum NetworkScope {
    #[default]
    Nothing,
    Hosts(Vec<String>),
    Everything,
}

/// A server at a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub url: Url,
    /// The name of the vault key that is sent as a bearer token.
    pub key: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    command: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    secrets: Option<BTreeMap<String, String>>,
    network: Option<Value>,
    memory_mb: Option<u64>,
    workspace: Option<bool>,
    mounts: Option<Vec<PathBuf>>,
    url: Option<String>,
    key: Option<String>,
    roles: Option<Vec<String>>,
    #[serde(default)]
    read_only: BTreeSet<String>,
    #[serde(default)]
    trust_hints: bool,
    seconds: Option<u64>,
}

impl Settings {
    /// Parses the tables below `[mcp]`. `roles` are the roles that may use tools.
    pub fn parse(table: &Table, roles: &[&str]) -> Result<Self, SettingsError> {
        let servers = table.iter().map(|(name, value)| {
            let wrong = |reason: String| SettingsError { server: name.clone(), reason };
            let settings = parse_server(name, value, roles).map_err(wrong)?;
            Ok((name.clone(), settings))
        });
        Ok(Self { servers: servers.collect::<Result<_, _>>()? })
    }
}

fn parse_server(name: &str, value: &Value, roles: &[&str]) -> Result<ServerSettings, String> {
    let letter = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    if !(1..=MAX_NAME).contains(&name.len()) || !name.bytes().all(letter) {
        return Err(format!("the name of a server must be 1 to {MAX_NAME} characters of a-z, 0-9 and '-'"));
    }
    if !value.is_table() {
        return Err("should be a table, with `command` or `url` in it".into());
    }
    let table: ServerTable =
        value.clone().try_into().map_err(|e: toml::de::Error| e.to_string().trim().replace('\n', " "))?;
    Ok(ServerSettings {
        roles: allowed_roles(&table, roles)?,
        timeout: Duration::from_secs(seconds(&table)?),
        read_only: table.read_only.clone(),
        trust_hints: table.trust_hints,
        endpoint: endpoint(table)?,
    })
}

fn endpoint(table: ServerTable) -> Result<Endpoint, String> {
    match (&table.command, &table.url) {
        (Some(_), None) => program(table).map(Endpoint::Program),
        (None, Some(_)) => address(table).map(Endpoint::Address),
        (Some(_), Some(_)) => Err("has both `command` and `url`; a server is one or the other".into()),
        (None, None) => Err("has neither `command` nor `url`".into()),
    }
}

fn program(table: ServerTable) -> Result<Program, String> {
    if table.key.is_some() {
        return Err("`key` is for a server with a `url`; a program gets its keys by `secrets`".into());
    }
    let argv = table.command.unwrap_or_default();
    if argv.first().is_none_or(|program| program.trim().is_empty()) {
        return Err("`command` names no program, as in [\"npx\", \"-y\", \"some-server\"]".into());
    }
    if argv.iter().any(|word| word.contains('\0')) {
        return Err("`command` contains a zero byte".into());
    }
    let (environment, secrets) = (table.env.unwrap_or_default(), table.secrets.unwrap_or_default());
    let named = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
    if let Some(name) = environment.keys().chain(secrets.keys()).find(|name| !named(name)) {
        return Err(format!("{name:?} is not a valid variable name"));
    }
    if environment.values().any(|value| value.contains('\0')) {
        return Err("`env` contains a zero byte".into());
    }
    if let Some(name) = secrets.keys().find(|name| environment.contains_key(*name)) {
        return Err(format!("{name} is both in `env` and in `secrets`"));
    }
    if table.memory_mb.is_some_and(|memory| memory < MIN_MEMORY_MB) {
        return Err(format!("`memory_mb` should be {MIN_MEMORY_MB} or more"));
    }
    let mounts = table.mounts.unwrap_or_default();
    if let Some(mount) = mounts.iter().find(|mount| !mount.is_absolute() && !mount.starts_with("~")) {
        return Err(format!("`mounts`: {} should begin with / or ~/", mount.display()));
    }
    Ok(Program {
        argv,
        environment,
        secrets,
        network: network_scope(table.network)?,
        memory_mb: table.memory_mb,
        workspace: table.workspace.unwrap_or_default(),
        mounts,
    })
}

fn network_scope(table: Option<Value>) -> Result<NetworkScope, String> {
    let wrong = || "`network` should be \"none\", \"open\" or a list of hosts such as [\"*.example.org\"]";
    let is_host =
        |host: &str| !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._*:[]".contains(c));
    match table {
        None => Ok(NetworkScope::Nothing),
        Some(Value::String(word)) if word == "none" => Ok(NetworkScope::Nothing),
        Some(Value::String(word)) if word == "open" => Ok(NetworkScope::Everything),
        Some(Value::Array(hosts)) => {
            let hosts: Option<Vec<String>> = hosts.iter().map(|h| h.as_str().map(str::to_owned)).collect();
            let fine = hosts.filter(|hosts| !hosts.is_empty() && hosts.iter().all(|host| is_host(host)));
            fine.map(NetworkScope::Hosts).ok_or_else(|| wrong().into())
        }
        Some(_) => Err(wrong().into()),
    }
}

fn address(table: ServerTable) -> Result<Address, String> {
    let of_programs = [
        ("env", table.env.is_some()),
        ("secrets", table.secrets.is_some()),
        ("network", table.network.is_some()),
        ("memory_mb", table.memory_mb.is_some()),
        ("workspace", table.workspace.is_some()),
        ("mounts", table.mounts.is_some()),
    ];
    if let Some((name, _)) = of_programs.iter().find(|(_, is_there)| *is_there) {
        return Err(format!("`{name}` is for a server with a `command`; this one runs elsewhere"));
    }
    let text = table.url.unwrap_or_default();
    let url = Url::parse(&text).map_err(|e| format!("`url` = {text:?} is not a valid URL: {e}"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(format!("`url` = {text:?} should begin with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("`url` contains a password; keep it in the vault and name it as `key`".into());
    }
    if url.scheme() == "http" && table.key.is_some() && !is_loopback(&url) {
        return Err("`key` would be sent unencrypted; `url` should begin with https://".into());
    }
    Ok(Address { url, key: table.key })
}

/// True if the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn allowed_roles(table: &ServerTable, known: &[&str]) -> Result<BTreeSet<String>, String> {
    let Some(roles) = &table.roles else { return Ok(known.iter().map(ToString::to_string).collect()) };
    match roles.iter().find(|role| !known.contains(&role.as_str())) {
        Some(role) => {
            Err(format!("`roles`: {role:?} cannot use tools; the roles that can are {}", known.join(", ")))
        }
        None => Ok(roles.iter().cloned().collect()),
    }
}

fn seconds(table: &ServerTable) -> Result<u64, String> {
    match table.seconds.unwrap_or(DEFAULT_SECONDS) {
        seconds @ 1..=MAX_SECONDS => Ok(seconds),
        _ => Err(format!("`seconds` should be 1 to {MAX_SECONDS}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [&str; 3] = ["writer", "researcher", "terminal"];

    fn parse(text: &str) -> Result<Settings, SettingsError> {
        let table: Table = text.parse().unwrap();
        Settings::parse(table["mcp"].as_table().unwrap(), &ROLES)
    }

    #[test]
    fn a_program_sees_and_reaches_nothing_by_default() {
        let settings = parse("[mcp.notes]\ncommand = [\"notes-server\"]").unwrap();
        let server = &settings.servers["notes"];
        let Endpoint::Program(program) = &server.endpoint else { panic!("{server:?}") };
        assert_eq!((&program.network, program.workspace), (&NetworkScope::Nothing, false));
        assert!(server.read_only.is_empty() && !server.trust_hints);
        assert_eq!(
            server.roles.iter().map(String::as_str).collect::<Vec<_>>(),
            ["researcher", "terminal", "writer"]
        );
    }

    #[test]
    fn all_settings_are_parsed() {
        let settings = parse(
            r#"
            [mcp.notes]
            command = ["notes-server", "--quiet"]
            env = { LEVEL = "3" }
            secrets = { TOKEN = "notes" }
            network = ["*.example.org"]
            memory_mb = 256
            workspace = true
            mounts = ["/opt/notes"]
            roles = ["writer"]
            read_only = ["find"]
            seconds = 5
            [mcp.far-away]
            url = "https://example.org/mcp"
            key = "far"
            trust_hints = true
            "#,
        )
        .unwrap();
        let Endpoint::Program(program) = &settings.servers["notes"].endpoint else { panic!() };
        assert_eq!(program.network, NetworkScope::Hosts(vec!["*.example.org".into()]));
        let Endpoint::Address(address) = &settings.servers["far-away"].endpoint else { panic!() };
        assert_eq!(address.key.as_deref(), Some("far"));
    }

    #[test]
    fn errors_name_the_setting() {
        for (text, named) in [
            ("[mcp.x]\n", "neither `command` nor `url`"),
            ("[mcp.x]\ncommand = [\"a\"]\nurl = \"https://b\"", "both `command` and `url`"),
            ("[mcp.x]\ncommand = []", "`command` names no program"),
            ("[mcp.x]\ncommand = \"a\"", "command"),
            ("[mcp.x]\ncomand = [\"a\"]", "comand"),
            ("[mcp.Big_Name]\ncommand = [\"a\"]", "the name of a server"),
            ("[mcp.x]\ncommand = [\"a\"]\nnetwork = \"some\"", "`network`"),
            ("[mcp.x]\ncommand = [\"a\"]\nnetwork = [\"http://a/\"]", "`network`"),
            ("[mcp.x]\ncommand = [\"a\"]\nkey = \"k\"", "`secrets`"),
            ("[mcp.x]\ncommand = [\"a\"]\nroles = [\"conductor\"]", "\"conductor\" cannot use tools"),
            ("[mcp.x]\ncommand = [\"a\"]\nseconds = 0", "`seconds`"),
            ("[mcp.x]\ncommand = [\"a\"]\nmounts = [\"here\"]", "`mounts`"),
            ("[mcp.x]\nurl = \"ftp://a\"", "`url`"),
            ("[mcp.x]\nurl = \"https://a:b@c/\"", "vault"),
            ("[mcp.x]\nurl = \"http://example.org/\"\nkey = \"k\"", "unencrypted"),
            ("[mcp.x]\nurl = \"https://a\"\nmemory_mb = 64", "`memory_mb` is for"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(named) && error.starts_with("[mcp."), "{text}: {error}");
        }
    }
}
