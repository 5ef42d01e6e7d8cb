//! `choir keys`: the keys of model providers, in the vault of the machine that `choir up` serves.
//!
//! The system user who runs this owns the files, and so acts as the owner. A secret comes from standard input or from a
//! prompt, never from an argument, because other users of the machine can see those.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::path::Path;

use ::models::{AuthScheme, ProviderKind};
use agent_host::agent_services::AgentServices;
use anyhow::{Context as _, Result};
use computer::error::{ComputerError, ErrorCode, from_anyhow};
use hypervisor::identity::{ClientInfo, IdentityStore, User};
use hypervisor::server::clock;
use hypervisor::vault::next_from_environment;
use hypervisor::vault::{
    KeyEntry, KeyScope, MasterKeySource, ProviderName, ProviderSecret, Vault, VaultError,
};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use sandbox::startup::{CommandLineSettings, data_folder, machine_config};
use serde_json::json;
use web_access::search::Search;

use super::Context;
use crate::cli::{Keys, KeysAction};
use crate::render::{self, line};

/// More than any secret needs, so that a wrong file is noticed early.
const MAX_INPUT_BYTES: u64 = 64 << 10;

pub(crate) fn run(context: &Context, args: &Keys) -> Result<()> {
    let (vault, owner) = open(args)?;
    match &args.action {
        None => list(context, &vault, &owner),
        Some(KeysAction::Set { provider, shared }) => {
            // Check the name before asking for the secret.
            let provider = ProviderName::parse(provider).map_err(failure)?;
            let secret = read(&provider)?;
            vault.set(&owner, scope(*shared), &provider, &secret, &command_line()).map_err(failure)?;
            done(context, "set", &provider, *shared);
            // `choir doctor` reports invalid settings.
            if !context.style.is_json()
                && let Ok(used) = used_keys(args)
                && !used.contains(provider.as_str())
            {
                line(&unused_key_note(&used));
            }
            Ok(())
        }
        Some(KeysAction::Clear { provider: Some(provider), shared, .. }) => {
            let provider = ProviderName::parse(provider).map_err(failure)?;
            vault.clear(&owner, scope(*shared), &provider, &command_line()).map_err(failure)?;
            done(context, "cleared", &provider, *shared);
            Ok(())
        }
        Some(KeysAction::Clear { provider: None, .. }) => {
            let count = vault.clear_unreadable(&owner, &command_line()).map_err(failure)?;
            counted(context, "cleared", count);
            Ok(())
        }
        Some(KeysAction::Rotate) => {
            let next = next_from_environment();
            let count = vault.rotate(&owner, next.as_ref(), &command_line()).map_err(failure)?;
            counted(context, "rotated", count);
            Ok(())
        }
    }
}

fn open(args: &Keys) -> Result<(Vault, User)> {
    open_in(&data_folder(args.data.clone())?)
}

/// The vault of a data folder, with its owner.
pub(super) fn open_in(data: &Path) -> Result<(Vault, User)> {
    if !data.join("hypervisor.sqlite").exists() {
        let message = format!("{} has no server data yet; start the server with: choir up", data.display());
        return Err(ComputerError::new(ErrorCode::NoComputer, message).into());
    }
    let identity = IdentityStore::open(data, clock())?;
    let owner = identity.users()?.into_iter().find(|user| user.owner).context("this machine has no owner")?;
    Ok((Vault::open(identity, MasterKeySource::from_environment(data)), owner))
}

/// The names of all keys that this machine uses: for model providers, web search and MCP servers.
fn used_keys(args: &Keys) -> Result<BTreeSet<String>> {
    let config = machine_config(data_folder(args.data.clone())?, &CommandLineSettings::default())?;
    let agent_services = AgentServices::new(config.models.as_ref())?.with_mcp(config.mcp.as_ref())?;
    let search = config.services.search.as_ref().map(Search::new).transpose()?;
    let providers = agent_services.catalog().providers.iter();
    let with_key = providers
        .filter(|(_, provider)| provider.auth != AuthScheme::None && provider.kind != ProviderKind::Local);
    let mut used: BTreeSet<String> = with_key.map(|(name, _)| name.clone()).collect();
    used.extend(agent_services.mcp_settings.servers.values().flat_map(|server| server.endpoint.keys()));
    used.extend(search.and_then(|search| search.needs_key().then(|| search.key_name().to_owned())));
    Ok(used)
}

/// An unused key is stored, since the setting that uses it may follow, but the name may also be a typo.
fn unused_key_note(used: &BTreeSet<String>) -> String {
    let names: Vec<&str> = used.iter().map(String::as_str).collect();
    format!("no setting uses a key of this name yet; names in use: {}", names.join(", "))
}

/// The client for the audit trail.
fn command_line() -> ClientInfo {
    ClientInfo { address: "command line".into(), browser: String::new() }
}

const fn scope(shared: bool) -> KeyScope {
    if shared { KeyScope::Shared } else { KeyScope::Own }
}

const fn scope_text(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::Own => "yours",
        KeyScope::Shared => "shared",
    }
}

/// An error with its exit code.
fn failure(error: VaultError) -> anyhow::Error {
    let code = match &error {
        VaultError::Invalid(_) => ErrorCode::BadRequest,
        VaultError::Missing => ErrorCode::NotFound,
        VaultError::NotOwner | VaultError::LimitReached { .. } | VaultError::Locked(_) => ErrorCode::Refused,
        VaultError::Corrupt { .. } => ErrorCode::Damaged,
        VaultError::Store(_) | VaultError::Identity(_) => return error.into(),
    };
    ComputerError { code, ..from_anyhow(&error.into()) }.into()
}

/// Lists the keys, and then fails if the master key does not open them.
fn list(context: &Context, vault: &Vault, owner: &User) -> Result<()> {
    let entries = vault.list(owner).map_err(failure)?;
    if context.style.is_json() {
        entries.iter().for_each(render::json);
    } else if entries.is_empty() {
        line("no keys yet; set one with: choir keys set anthropic");
    } else {
        entries.iter().for_each(|entry| line(&row(context, entry)));
    }
    vault.check().map_err(failure)
}

fn row(context: &Context, entry: &KeyEntry) -> String {
    let KeyEntry { provider, scope, hint, set, readable } = entry;
    let end = match (hint, readable) {
        (Some(hint), _) => format!("…{hint}"),
        (None, true) => "set".to_owned(),
        (None, false) => "unreadable".to_owned(),
    };
    let set = context.style.dim(&render::time(*set));
    format!("{provider:<16} {:<8} {end:<14} {set}", scope_text(*scope))
}

fn done(context: &Context, verb: &str, provider: &ProviderName, shared: bool) {
    if context.style.is_json() {
        render::json(&json!({ verb: provider.as_str(), "scope": scope(shared) }));
    } else {
        line(&format!("{verb} {provider} ({})", scope_text(scope(shared))));
    }
}

fn counted(context: &Context, verb: &str, count: usize) {
    if context.style.is_json() {
        render::json(&json!({ verb: count }));
    } else {
        line(&format!("{verb}: {}", render::count(count as u64, "key")));
    }
}

/// Reads the secret from a prompt without echo, or from a pipe.
fn read(provider: &ProviderName) -> Result<ProviderSecret> {
    if stdin().is_terminal() {
        return prompt(provider);
    }
    // Reserve the whole buffer, so that it does not move and leave a copy of the secret behind.
    let mut text = String::with_capacity(MAX_INPUT_BYTES as usize + 1);
    let count = stdin().lock().take(MAX_INPUT_BYTES + 1).read_to_string(&mut text);
    let secret = ProviderSecret::new(text);
    let count = count.map_err(|error| {
        ComputerError::new(ErrorCode::BadRequest, format!("cannot read the secret: {error}"))
    })?;
    if count as u64 > MAX_INPUT_BYTES {
        return Err(ComputerError::new(ErrorCode::BadRequest, "this is too long for a secret").into());
    }
    Ok(secret)
}

/// Turns the terminal's echo off, and restores it when dropped.
struct EchoOff(Termios);

impl EchoOff {
    /// Reads byte by byte without signals: Ctrl-C arrives as a byte and cannot leave the terminal without echo.
    fn new() -> Result<Self> {
        let before = tcgetattr(stdin()).context("cannot read the terminal's settings")?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Flush, &silent).context("cannot turn off the terminal's echo")?;
        Ok(Self(before))
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        // Errors cannot be reported here.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.0);
        let _ = writeln!(stderr());
    }
}

fn prompt(provider: &ProviderName) -> Result<ProviderSecret> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const CTRL_U: u8 = 21;
    let echo_off = EchoOff::new()?;
    eprint!("Key for {provider} (it is not shown): ");
    let mut typed = Vec::with_capacity(MAX_INPUT_BYTES as usize);
    for byte in stdin().lock().bytes() {
        match byte? {
            b'\r' | b'\n' | CTRL_D => break,
            CTRL_C => {
                drop(echo_off);
                return Err(ComputerError::new(ErrorCode::Refused, "stopped; nothing was changed").into());
            }
            CTRL_U => typed.clear(),
            8 | 127 => drop(typed.pop()),
            byte if (typed.len() as u64) < MAX_INPUT_BYTES => typed.push(byte),
            _ => break,
        }
    }
    drop(echo_off);
    let text = String::from_utf8(typed)
        .map_err(|_| ComputerError::new(ErrorCode::BadRequest, "this is not text"))?;
    Ok(ProviderSecret::new(text))
}
