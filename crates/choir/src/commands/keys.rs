//! `choir keys`: the keys of model providers, in the vault of the machine that `choir up` serves.
//!
//! Whoever can type this has the owner's files, and so acts as the owner. A secret comes from standard input or from a
//! prompt, never from an argument, which other users of the machine could see.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::path::Path;

use ::models::{AuthScheme, ProviderKind};
use anyhow::{Context as _, Result};
use hypervisor::identity::{Caller, Identity, User};
use hypervisor::server::clock;
use hypervisor::vault::next_from_environment;
use hypervisor::vault::{KeyEntry, KeyScope, KeySource, Provider, Secret, Vault, VaultError};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use sandbox::failure::{Code, Failure, of_anyhow};
use sandbox::minds::Minds;
use sandbox::startup::{Said, data_folder, machine_config};
use sandbox::web::search::Search;
use serde_json::json;

use super::Context;
use crate::cli::{Keys, KeysAction};
use crate::render::{self, line};

/// More than any secret has, so that a wrong file is noticed and not read to its end.
const AT_MOST: u64 = 64 << 10;

pub(crate) fn run(context: &Context, args: &Keys) -> Result<()> {
    let (vault, owner) = open(args)?;
    match &args.action {
        None => list(context, &vault, &owner),
        Some(KeysAction::Set { provider, shared }) => {
            // What is wrong with the name is said before anybody types a secret.
            let provider = Provider::parse(provider).map_err(failure)?;
            let secret = read(&provider)?;
            vault.set(&owner, scope(*shared), &provider, &secret, &here()).map_err(failure)?;
            done(context, "set", &provider, *shared);
            // What is wrong with the settings is for `choir doctor` to say.
            if !context.style.is_json()
                && let Ok(askers) = askers(args)
                && !askers.contains(provider.as_str())
            {
                line(&unasked(&askers));
            }
            Ok(())
        }
        Some(KeysAction::Clear { provider: Some(provider), shared, .. }) => {
            let provider = Provider::parse(provider).map_err(failure)?;
            vault.clear(&owner, scope(*shared), &provider, &here()).map_err(failure)?;
            done(context, "cleared", &provider, *shared);
            Ok(())
        }
        Some(KeysAction::Clear { provider: None, .. }) => {
            let count = vault.clear_unreadable(&owner, &here()).map_err(failure)?;
            counted(context, "cleared", count);
            Ok(())
        }
        Some(KeysAction::Rotate) => {
            let next = next_from_environment();
            let count = vault.rotate(&owner, next.as_ref(), &here()).map_err(failure)?;
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
        let message = format!("nothing was ever served from {}; start it with: choir up", data.display());
        return Err(Failure::new(Code::NoComputer, message).into());
    }
    let identity = Identity::open(data, clock())?;
    let owner = identity.users()?.into_iter().find(|user| user.owner).context("this machine has no owner")?;
    Ok((Vault::open(identity, KeySource::from_environment(data)), owner))
}

/// All names under which something of this machine asks for a key: providers of models, web search, MCP servers.
fn askers(args: &Keys) -> Result<BTreeSet<String>> {
    let config = machine_config(data_folder(args.data.clone())?, &Said::default())?;
    let minds = Minds::new(config.models.as_ref())?.with_tools(config.mcp.as_ref())?;
    let search = config.services.search.as_ref().map(Search::new).transpose()?;
    let providers = minds.catalog.providers.iter();
    let with_key = providers
        .filter(|(_, provider)| provider.auth != AuthScheme::None && provider.kind != ProviderKind::Local);
    let mut askers: BTreeSet<String> = with_key.map(|(name, _)| name.clone()).collect();
    askers.extend(minds.tools.servers.values().flat_map(|server| server.way.keys()));
    askers.extend(search.and_then(|search| search.line().key));
    Ok(askers)
}

/// A key that nobody asks for is kept, since who asks may come later, but it may be a slip.
fn unasked(askers: &BTreeSet<String>) -> String {
    let names: Vec<&str> = askers.iter().map(String::as_str).collect();
    format!("nothing asks for a key of this name yet; asked for are: {}", names.join(", "))
}

/// From where it was done, for the audit trail.
fn here() -> Caller {
    Caller { address: "command line".into(), browser: String::new() }
}

const fn scope(shared: bool) -> KeyScope {
    if shared { KeyScope::Shared } else { KeyScope::Own }
}

const fn word(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::Own => "yours",
        KeyScope::Shared => "shared",
    }
}

/// An error with its exit code.
fn failure(error: VaultError) -> anyhow::Error {
    let code = match &error {
        VaultError::Invalid(_) => Code::BadRequest,
        VaultError::Missing => Code::NotFound,
        VaultError::NotOwner | VaultError::Full { .. } | VaultError::Locked(_) => Code::Refused,
        VaultError::Damaged { .. } => Code::Damaged,
        VaultError::Store(_) | VaultError::Identity(_) => return error.into(),
    };
    Failure { code, ..of_anyhow(&error.into()) }.into()
}

/// Lists what there is; if the master key does not open it, that is told after the list.
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
        (None, false) => "does not open".to_owned(),
    };
    let set = context.style.dim(&render::time(*set));
    format!("{provider:<16} {:<8} {end:<14} {set}", word(*scope))
}

fn done(context: &Context, verb: &str, provider: &Provider, shared: bool) {
    if context.style.is_json() {
        render::json(&json!({ verb: provider.as_str(), "scope": scope(shared) }));
    } else {
        line(&format!("{verb} {provider} ({})", word(scope(shared))));
    }
}

fn counted(context: &Context, verb: &str, count: usize) {
    if context.style.is_json() {
        render::json(&json!({ verb: count }));
    } else {
        line(&format!("{verb}: {}", render::count(count as u64, "key")));
    }
}

/// The secret, from a prompt without an echo or from what is piped in.
fn read(provider: &Provider) -> Result<Secret> {
    if stdin().is_terminal() {
        return prompt(provider);
    }
    // Read into the room that it will need, so that no copy is left behind.
    let mut text = String::with_capacity(AT_MOST as usize + 1);
    let count = stdin().lock().take(AT_MOST + 1).read_to_string(&mut text);
    let secret = Secret::new(text);
    let count =
        count.map_err(|error| Failure::new(Code::BadRequest, format!("no secret was read: {error}")))?;
    if count as u64 > AT_MOST {
        return Err(Failure::new(Code::BadRequest, "this is too long for a secret").into());
    }
    Ok(secret)
}

/// Puts the terminal back as it was, also after a failure.
struct Silent(Termios);

impl Silent {
    /// Without echo, letter by letter: so Ctrl-C comes as a letter and cannot leave the terminal silent.
    fn begin() -> Result<Self> {
        let before = tcgetattr(stdin()).context("the terminal cannot be asked")?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(stdin(), OptionalActions::Flush, &silent).context("the terminal cannot be silenced")?;
        Ok(Self(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // There is nobody left to tell.
        let _ = tcsetattr(stdin(), OptionalActions::Flush, &self.0);
        let _ = writeln!(stderr());
    }
}

fn prompt(provider: &Provider) -> Result<Secret> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const CTRL_U: u8 = 21;
    let silent = Silent::begin()?;
    eprint!("Key for {provider} (it is not shown): ");
    let mut typed = Vec::with_capacity(AT_MOST as usize);
    for byte in stdin().lock().bytes() {
        match byte? {
            b'\r' | b'\n' | CTRL_D => break,
            CTRL_C => {
                drop(silent);
                return Err(Failure::new(Code::Refused, "stopped; nothing was changed").into());
            }
            CTRL_U => typed.clear(),
            8 | 127 => drop(typed.pop()),
            byte if (typed.len() as u64) < AT_MOST => typed.push(byte),
            _ => break,
        }
    }
    drop(silent);
    let text = String::from_utf8(typed).map_err(|_| Failure::new(Code::BadRequest, "this is not text"))?;
    Ok(Secret::new(text))
}
