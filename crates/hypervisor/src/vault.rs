//! The keys of model providers, sealed: per user and provider, and some that the owner shares with everybody here.
//!
//! They lie in `hypervisor.sqlite`, each sealed with the master key for one place (whose, for which provider), so a
//! row that is moved does not open. The master key is not in there. Secrets come out by [`Vault::get`] and by a
//! [`KeyReader`] for one user, and by no route. This knows nothing of HTTP and nothing of models.
//!
//! Without the right master key nothing is overwritten and nothing is dropped: entries can still be listed and
//! cleared, and come back with the key.

mod entries;
mod error;
mod keyfile;
mod master;
mod provider;
mod rotation;
mod secret;

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use shared_types::UserId;

pub use error::{Locked, VaultError};
pub use keyfile::{KeySource, next_from_environment};
pub use provider::Provider;
pub use secret::Secret;
pub use shared_types::wire::{KeyEntry, KeyScope};

use crate::identity::{Caller, Identity, User, What, spans};
use entries::Stored;
use master::{Fingerprint, Master};

/// Where an entry lies; nobody's is everybody's.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    user: Option<String>,
    provider: String,
}

impl Place {
    fn of(user: &UserId, scope: KeyScope, provider: &Provider) -> Self {
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

    /// What a sealed secret is bound to. No part can hold a NUL, so no two places look alike.
    fn bound(&self) -> Vec<u8> {
        let (kind, user) = match &self.user {
            Some(user) => ("user", user.as_str()),
            None => ("shared", ""),
        };
        format!("choir.vault.1\0{kind}\0{user}\0{}", self.provider).into_bytes()
    }

    /// In words for the audit trail.
    fn words(&self) -> String {
        match self.scope() {
            KeyScope::Own => self.provider.clone(),
            KeyScope::Shared => format!("{} (shared)", self.provider),
        }
    }
}

/// The vault. Clones share the store and the master key once it was read.
#[derive(Debug, Clone)]
pub struct Vault {
    identity: Identity,
    source: KeySource,
    master: Arc<Mutex<Option<Master>>>,
}

/// Rotations by other processes while one thing is read: more there are not.
const ATTEMPTS: usize = 10;

impl Vault {
    /// The vault in the store of an identity. The master key is read when it is first needed, so a machine without
    /// one still starts.
    pub fn open(identity: Identity, source: KeySource) -> Self {
        let vault = Self { identity, source, master: Arc::default() };
        if let Err(error) = vault.settle() {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "a rotation of the master key waits to be finished");
        }
        vault
    }

    /// Keeps a secret in place of the one before.
    pub fn set(
        &self,
        who: &User,
        scope: KeyScope,
        provider: &Provider,
        secret: &Secret,
        caller: &Caller,
    ) -> Result<(), VaultError> {
        let (place, now, secret) = (may(who, scope, provider)?, self.identity.now(), secret.checked()?);
        provider.check(&secret)?;
        self.identity.transact(|tx| {
            if entries::others(tx, &place)? >= spans::KEYS {
                return Err(VaultError::Full { limit: spans::KEYS });
            }
            let sealed = self.for_writing(tx)?.seal(&place, &secret)?;
            entries::put(tx, &place, &sealed, now)?;
            Ok(self.identity.note(tx, now, &who.id, What::KeySet, caller, &place.words())?)
        })
    }

    /// Forgets a secret. It needs no master key.
    pub fn clear(
        &self,
        who: &User,
        scope: KeyScope,
        provider: &Provider,
        caller: &Caller,
    ) -> Result<(), VaultError> {
        let (place, now) = (may(who, scope, provider)?, self.identity.now());
        self.identity.transact(|tx| {
            if !entries::remove(tx, &place)? {
                return Err(VaultError::Missing);
            }
            Ok(self.identity.note(tx, now, &who.id, What::KeyCleared, caller, &place.words())?)
        })
    }

    /// Forgets what the master key of today does not open, of everybody, and says how many that were. This is the way
    /// on after a master key was lost, and only the owner's.
    pub fn clear_unreadable(&self, who: &User, caller: &Caller) -> Result<usize, VaultError> {
        if !who.owner {
            return Err(VaultError::NotOwner);
        }
        let now = self.identity.now();
        self.identity.transact(|tx| {
            let master = match entries::fingerprint(tx)?.map(|print| self.for_reading(&print)) {
                Some(Ok(master)) => Some(master),
                None | Some(Err(Locked::WrongMaster(_) | Locked::NoMaster(_))) => None,
                // A key that is there and cannot be read is not lost.
                Some(Err(locked)) => return Err(locked.into()),
            };
            let opens = |stored: &Stored| {
                master.as_ref().is_some_and(|master| master.open(&stored.place, &stored.sealed).is_ok())
            };
            let lost: Vec<_> = entries::all(tx)?.into_iter().filter(|stored| !opens(stored)).collect();
            for stored in &lost {
                entries::remove(tx, &stored.place)?;
                let words = stored.place.words();
                let of = stored.place.user.as_deref().and_then(|user| UserId::parse(user).ok());
                let of = of.as_ref().unwrap_or(&who.id);
                self.identity.note(tx, now, of, What::KeyCleared, caller, &format!("{words}, unreadable"))?;
            }
            Ok(lost.len())
        })
    }

    /// What a user may know of: their own keys and the shared ones. It needs no master key.
    pub fn list(&self, who: &User) -> Result<Vec<KeyEntry>, VaultError> {
        let (stored, master) = self.look(|connection| entries::visible(connection, &who.id))?;
        let master = master.and_then(Result::ok);
        let entry = |Stored { place, sealed, set }: Stored| {
            let opened = master.as_ref().and_then(|master| master.open(&place, &sealed).ok());
            let scope = place.scope();
            let shown = scope == KeyScope::Own || who.owner;
            let hint = opened.as_ref().filter(|_| shown).and_then(Secret::hint);
            KeyEntry { provider: place.provider, scope, hint, set, readable: opened.is_some() }
        };
        Ok(stored.into_iter().map(entry).collect())
    }

    /// What a user's requests to a provider go out with: their own key, else the shared one.
    pub fn get(&self, user: &UserId, provider: &Provider) -> Result<Option<Secret>, VaultError> {
        let find = |connection: &Connection| entries::find(connection, user, provider.as_str());
        let (Some(stored), Some(master)) = self.look(find)? else { return Ok(None) };
        let damaged = |_| VaultError::Damaged { provider: provider.to_string() };
        master?.open(&stored.place, &stored.sealed).map(Some).map_err(damaged)
    }

    /// A user's keys, for whoever sends their requests.
    pub fn reader(&self, user: &UserId) -> KeyReader {
        KeyReader { vault: self.clone(), user: user.clone() }
    }

    /// Whether the master key opens what is there, and what to do if not.
    pub fn check(&self) -> Result<(), VaultError> {
        match self.look(entries::is_empty)? {
            (false, Some(master)) => Ok(master.map(drop)?),
            (true, _) | (false, None) => Ok(()),
        }
    }

    /// Reads something together with the key that opens it, if anything was ever sealed.
    fn look<T>(
        &self,
        read: impl Fn(&Connection) -> Result<T, VaultError>,
    ) -> Result<(T, Option<Result<Master, Locked>>), VaultError> {
        let mut attempt = 1;
        loop {
            let (value, print) = self.identity.consult(|connection| {
                Ok::<_, VaultError>((read(connection)?, entries::fingerprint(connection)?))
            })?;
            match print.map(|print| self.for_reading(&print)) {
                // Between the store and the file, another process may have rotated both.
                Some(Err(Locked::WrongMaster(_) | Locked::NoMaster(_))) if attempt < ATTEMPTS => attempt += 1,
                master => return Ok((value, master)),
            }
        }
    }

    /// The key with which the store was sealed.
    fn for_reading(&self, print: &Fingerprint) -> Result<Master, Locked> {
        let mut kept = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(master) = kept.as_ref().filter(|master| master.fingerprint() == *print) {
            return Ok(master.clone());
        }
        let master = match &self.source {
            KeySource::Folder(folder) => keyfile::find(folder, print)?,
            KeySource::Given(text) => keyfile::given(text)?,
        };
        if master.fingerprint() != *print {
            return Err(keyfile::wrong_given());
        }
        *kept = Some(master.clone());
        Ok(master)
    }

    /// The key to seal with, under the store's write lock. It is made if nothing is sealed yet; where something is, it
    /// is the one that opens it, or nothing is written.
    fn for_writing(&self, connection: &Connection) -> Result<Master, VaultError> {
        let standing = entries::standing(connection)?;
        let is_right = |master: &Master| standing.empty || standing.fingerprint == Some(master.fingerprint());
        let master = match &self.source {
            KeySource::Given(text) => {
                Some(keyfile::given(text)?).filter(is_right).ok_or_else(keyfile::wrong_given)?
            }
            KeySource::Folder(folder) => {
                keyfile::settle(folder, &standing)?;
                match keyfile::current(folder)? {
                    Some(master) if is_right(&master) => master,
                    Some(_) => return Err(keyfile::wrong(folder).into()),
                    None if !standing.empty => return Err(keyfile::missing(folder).into()),
                    None => keyfile::create(folder)?,
                }
            }
        };
        if standing.fingerprint != Some(master.fingerprint()) {
            entries::put_fingerprint(connection, &master.fingerprint())?;
        }
        Ok(master)
    }
}

/// The place that somebody may change.
fn may(who: &User, scope: KeyScope, provider: &Provider) -> Result<Place, VaultError> {
    if scope == KeyScope::Shared && !who.owner {
        return Err(VaultError::NotOwner);
    }
    Ok(Place::of(&who.id, scope, provider))
}

/// One user's keys and no other's. Cheap to clone; every reading gives what is there at that moment.
#[derive(Debug, Clone)]
pub struct KeyReader {
    vault: Vault,
    user: UserId,
}

impl KeyReader {
    /// The key for a provider, or why there is none.
    pub fn read(&self, provider: &str) -> Result<Option<Secret>, VaultError> {
        self.vault.get(&self.user, &Provider::parse(provider)?)
    }

    /// The key for a provider, if it can be had. What stands in the way is in the log.
    pub fn get(&self, provider: &str) -> Option<Secret> {
        self.read(provider).unwrap_or_else(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "a provider's key cannot be read");
            None
        })
    }
}

#[cfg(test)]
mod tests;
