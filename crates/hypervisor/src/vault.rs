//! The encrypted API keys of model providers: one per user and provider, and keys that the owner shares with all users.
//!
//! Entries are stored in `hypervisor.sqlite`, each sealed with the master key and bound to its [`EntryId`], so a row
//! that was moved to another user or provider does not open. The master key is stored elsewhere. Secrets are returned
//! by [`Vault::get`] and by the [`KeyReader`] of one user, and by no route. This module knows nothing of HTTP or of
//! models.
//!
//! Without the right master key nothing is overwritten or dropped: entries can still be listed and cleared, and they
//! become readable again when the key is back.

mod entries;
mod error;
mod keyfile;
mod master_key;
mod provider;
mod rotation;
mod secret;

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use shared_types::UserId;

pub use error::{MasterKeyError, VaultError};
pub use keyfile::{MasterKeySource, next_from_environment};
pub use provider::ProviderName;
pub use secret::ProviderSecret;
pub use shared_types::wire::{KeyEntry, KeyScope};

use crate::identity::{AuditAction, ClientInfo, IdentityStore, User, limits};
use entries::StoredEntry;
use master_key::{Fingerprint, MasterKey};

/// The identity of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
struct EntryId {
    /// `None` for a shared entry.
    user: Option<String>,
    provider: String,
}

impl EntryId {
    fn new(user: &UserId, scope: KeyScope, provider: &ProviderName) -> Self {
        let user = match scope {
            KeyScope::Own => Some(user.to_string()),
            KeyScope::Shared => None,
        };
        Self { user, provider: provider.as_str().to_owned() }
    }

    #[cfg(test)]
    fn shared(provider: &str) -> Self {
        Self { user: None, provider: provider.to_owned() }
    }

    fn scope(&self) -> KeyScope {
        if self.user.is_some() { KeyScope::Own } else { KeyScope::Shared }
    }

    /// The associated data that a sealed secret is bound to. No part can contain NUL, so it is unique for each entry.
    fn associated_data(&self) -> Vec<u8> {
        let (kind, user) = match &self.user {
            Some(user) => ("user", user.as_str()),
            None => ("shared", ""),
        };
        format!("choir.vault.1\0{kind}\0{user}\0{}", self.provider).into_bytes()
    }

    /// The text for the audit trail.
    fn audit_text(&self) -> String {
        match self.scope() {
            KeyScope::Own => self.provider.clone(),
            KeyScope::Shared => format!("{} (shared)", self.provider),
        }
    }
}

/// The vault. Clones share the store and the cached master key.
#[derive(Debug, Clone)]
pub struct Vault {
    identity: IdentityStore,
    source: MasterKeySource,
    /// The master key, once it was read.
    master: Arc<Mutex<Option<MasterKey>>>,
}

/// Reads are repeated if another process rotates the master key meanwhile, at most this often.
const MAX_READ_ATTEMPTS: usize = 10;

impl Vault {
    /// Opens the vault in an identity store. The master key is read when it is first needed, so the server also starts
    /// without one.
    pub fn open(identity: IdentityStore, source: MasterKeySource) -> Self {
        let vault = Self { identity, source, master: Arc::default() };
        if let Err(error) = vault.finish_rotation() {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "could not finish an interrupted rotation of the master key");
        }
        vault
    }

    /// Stores a secret and replaces the previous one.
    pub fn set(
        &self,
        user: &User,
        scope: KeyScope,
        provider: &ProviderName,
        secret: &ProviderSecret,
        client: &ClientInfo,
    ) -> Result<(), VaultError> {
        let (entry_id, now, secret) =
            (authorize(user, scope, provider)?, self.identity.now(), secret.checked()?);
        provider.check(&secret)?;
        self.identity.write_transaction(|tx| {
            if entries::count_others(tx, &entry_id)? >= limits::MAX_KEYS {
                return Err(VaultError::LimitReached { limit: limits::MAX_KEYS });
            }
            let sealed = self.master_for_writing(tx)?.seal(&entry_id, &secret)?;
            entries::put(tx, &entry_id, &sealed, now)?;
            Ok(self.identity.record_audit(
                tx,
                now,
                &user.id,
                AuditAction::KeySet,
                client,
                &entry_id.audit_text(),
            )?)
        })
    }

    /// Deletes a secret. This needs no master key.
    pub fn clear(
        &self,
        user: &User,
        scope: KeyScope,
        provider: &ProviderName,
        client: &ClientInfo,
    ) -> Result<(), VaultError> {
        let (entry_id, now) = (authorize(user, scope, provider)?, self.identity.now());
        self.identity.write_transaction(|tx| {
            if !entries::remove(tx, &entry_id)? {
                return Err(VaultError::Missing);
            }
            Ok(self.identity.record_audit(
                tx,
                now,
                &user.id,
                AuditAction::KeyCleared,
                client,
                &entry_id.audit_text(),
            )?)
        })
    }

    /// Deletes all entries, of all users, that the current master key does not open. Returns their number. This is how
    /// the owner recovers after losing a master key.
    pub fn clear_unreadable(&self, user: &User, client: &ClientInfo) -> Result<usize, VaultError> {
        if !user.owner {
            return Err(VaultError::NotOwner);
        }
        let now = self.identity.now();
        self.identity.write_transaction(|tx| {
            let master =
                match entries::fingerprint(tx)?.map(|fingerprint| self.master_for_reading(&fingerprint)) {
                    Some(Ok(master)) => Some(master),
                    None | Some(Err(MasterKeyError::Wrong(_) | MasterKeyError::Missing(_))) => None,
                    // A key file that exists but cannot be read is not lost.
                    Some(Err(error)) => return Err(error.into()),
                };
            let opens = |stored: &StoredEntry| {
                master.as_ref().is_some_and(|master| master.open(&stored.entry_id, &stored.sealed).is_ok())
            };
            let lost: Vec<_> = entries::all(tx)?.into_iter().filter(|stored| !opens(stored)).collect();
            for stored in &lost {
                entries::remove(tx, &stored.entry_id)?;
                let detail = format!("{}, unreadable", stored.entry_id.audit_text());
                let affected = stored.entry_id.user.as_deref().and_then(|user| UserId::parse(user).ok());
                let affected = affected.as_ref().unwrap_or(&user.id);
                self.identity.record_audit(tx, now, affected, AuditAction::KeyCleared, client, &detail)?;
            }
            Ok(lost.len())
        })
    }

    /// The entries that a user can see: their own and the shared ones. This needs no master key.
    pub fn list(&self, user: &User) -> Result<Vec<KeyEntry>, VaultError> {
        let (stored, master) = self.read_with_master(|connection| entries::visible(connection, &user.id))?;
        let master = master.and_then(Result::ok);
        let entry = |StoredEntry { entry_id, sealed, set }: StoredEntry| {
            let opened = master.as_ref().and_then(|master| master.open(&entry_id, &sealed).ok());
            let scope = entry_id.scope();
            let shown = scope == KeyScope::Own || user.owner;
            let hint = opened.as_ref().filter(|_| shown).and_then(ProviderSecret::hint);
            KeyEntry { provider: entry_id.provider, scope, hint, set, readable: opened.is_some() }
        };
        Ok(stored.into_iter().map(entry).collect())
    }

    /// The key for a user's requests to a provider: their own, else the shared one.
    pub fn get(&self, user: &UserId, provider: &ProviderName) -> Result<Option<ProviderSecret>, VaultError> {
        let find = |connection: &Connection| entries::find(connection, user, provider.as_str());
        let (Some(stored), Some(master)) = self.read_with_master(find)? else { return Ok(None) };
        let corrupt = |_| VaultError::Corrupt { provider: provider.to_string() };
        master?.open(&stored.entry_id, &stored.sealed).map(Some).map_err(corrupt)
    }

    /// Access to one user's keys, for the model clients.
    pub fn reader(&self, user: &UserId) -> KeyReader {
        KeyReader { vault: self.clone(), user: user.clone() }
    }

    /// Checks that the master key opens the entries. The error says how to fix it.
    pub fn check(&self) -> Result<(), VaultError> {
        match self.read_with_master(entries::is_empty)? {
            (false, Some(master)) => Ok(master.map(drop)?),
            (true, _) | (false, None) => Ok(()),
        }
    }

    /// Reads from the store, together with the master key that sealed its entries. The key is `None` if nothing was
    /// ever sealed.
    fn read_with_master<T>(
        &self,
        read: impl Fn(&Connection) -> Result<T, VaultError>,
    ) -> Result<(T, Option<Result<MasterKey, MasterKeyError>>), VaultError> {
        let mut attempt = 1;
        loop {
            let (value, fingerprint) = self.identity.read_transaction(|connection| {
                Ok::<_, VaultError>((read(connection)?, entries::fingerprint(connection)?))
            })?;
            match fingerprint.map(|fingerprint| self.master_for_reading(&fingerprint)) {
                // Another process may have rotated the key between reading the store and the file.
                Some(Err(MasterKeyError::Wrong(_) | MasterKeyError::Missing(_)))
                    if attempt < MAX_READ_ATTEMPTS =>
                {
                    attempt += 1
                }
                master => return Ok((value, master)),
            }
        }
    }

    /// The master key with this fingerprint.
    fn master_for_reading(&self, fingerprint: &Fingerprint) -> Result<MasterKey, MasterKeyError> {
        let mut cached = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(master) = cached.as_ref().filter(|master| master.fingerprint() == *fingerprint) {
            return Ok(master.clone());
        }
        let master = match &self.source {
            MasterKeySource::Folder(folder) => keyfile::find(folder, fingerprint)?,
            MasterKeySource::Value(text) => keyfile::parse_value(text)?,
        };
        if master.fingerprint() != *fingerprint {
            return Err(keyfile::wrong_value());
        }
        *cached = Some(master.clone());
        Ok(master)
    }

    /// The master key to seal with. Call it under the store's write lock. It creates a key if nothing is sealed yet;
    /// otherwise it returns the key that opens the existing entries, or fails.
    fn master_for_writing(&self, connection: &Connection) -> Result<MasterKey, VaultError> {
        let seal_state = entries::seal_state(connection)?;
        let is_right =
            |master: &MasterKey| seal_state.empty || seal_state.fingerprint == Some(master.fingerprint());
        let master = match &self.source {
            MasterKeySource::Value(text) => {
                Some(keyfile::parse_value(text)?).filter(is_right).ok_or_else(keyfile::wrong_value)?
            }
            MasterKeySource::Folder(folder) => {
                keyfile::finish_rotation(folder, &seal_state)?;
                match keyfile::current(folder)? {
                    Some(master) if is_right(&master) => master,
                    Some(_) => return Err(keyfile::wrong(folder).into()),
                    None if !seal_state.empty => return Err(keyfile::missing(folder).into()),
                    None => keyfile::create(folder)?,
                }
            }
        };
        if seal_state.fingerprint != Some(master.fingerprint()) {
            entries::put_fingerprint(connection, &master.fingerprint())?;
        }
        Ok(master)
    }
}

/// Checks that a user may change an entry of this scope, and returns its id.
fn authorize(user: &User, scope: KeyScope, provider: &ProviderName) -> Result<EntryId, VaultError> {
    if scope == KeyScope::Shared && !user.owner {
        return Err(VaultError::NotOwner);
    }
    Ok(EntryId::new(&user.id, scope, provider))
}

/// Reads one user's keys and no other's. Cheap to clone; every call reads the current key.
#[derive(Debug, Clone)]
pub struct KeyReader {
    vault: Vault,
    user: UserId,
}

impl KeyReader {
    /// The key for a provider.
    pub fn read(&self, provider: &str) -> Result<Option<ProviderSecret>, VaultError> {
        self.vault.get(&self.user, &ProviderName::parse(provider)?)
    }

    /// The key for a provider. Errors are logged and count as no key.
    pub fn get(&self, provider: &str) -> Option<ProviderSecret> {
        self.read(provider).unwrap_or_else(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "cannot read a provider's key");
            None
        })
    }
}

#[cfg(test)]
mod tests;
