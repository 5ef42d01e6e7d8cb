//! Another master key for everything, at once.
//!
//! There is a file and a database, and no transaction over both. So: the new key is written beside the old one and
//! flushed; then one transaction seals every entry anew and names the new key's fingerprint; then the new file takes
//! the place of the old. Whatever the instant of a crash, the key that the fingerprint names is on the disk, and
//! [`keyfile::settle`] does what was left.

use rusqlite::Connection;
use zeroize::Zeroizing;

use super::entries::{self, Stored};
use super::error::Locked;
use super::keyfile::{self, KeySource};
use super::master::Master;
use super::{Vault, VaultError};
use crate::identity::{Caller, User, What};

/// The instants between which a crash must cost nothing; tests die at each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Begun,
    NextWritten,
    Resealed,
    Committed,
    Settled,
}

#[cfg(test)]
pub(super) const STEPS: [Step; 5] =
    [Step::Begun, Step::NextWritten, Step::Resealed, Step::Committed, Step::Settled];

impl Vault {
    /// Seals everything with another master key: the one that is given, or a new one. Says how many entries that
    /// were. Only the owner may.
    pub fn rotate(
        &self,
        who: &User,
        next: Option<&Zeroizing<String>>,
        caller: &Caller,
    ) -> Result<usize, VaultError> {
        self.rotate_by_steps(who, next, caller, &|_| ())
    }

    pub(super) fn rotate_by_steps(
        &self,
        who: &User,
        next: Option<&Zeroizing<String>>,
        caller: &Caller,
        at: &dyn Fn(Step),
    ) -> Result<usize, VaultError> {
        if !who.owner {
            return Err(VaultError::NotOwner);
        }
        let fresh = match (next, &self.source) {
            (Some(text), _) => keyfile::given_next(text)?,
            (None, KeySource::Folder(_)) => Master::generate()?,
            (None, KeySource::Given(_)) => return Err(Locked::NoNext.into()),
        };
        let now = self.identity.now();
        let resealed: Result<usize, VaultError> = self.identity.transact(|tx| {
            let old = self.for_writing(tx)?;
            if fresh.fingerprint() == old.fingerprint() {
                return Err(Locked::Same.into());
            }
            at(Step::Begun);
            if let KeySource::Folder(folder) = &self.source {
                keyfile::put_next(folder, &fresh)?;
            }
            at(Step::NextWritten);
            let count = reseal(tx, &old, &fresh)?;
            let detail = format!("{count} sealed anew");
            self.identity.note(tx, now, &who.id, What::MasterRotated, caller, &detail)?;
            at(Step::Resealed);
            Ok(count)
        });
        if resealed.is_ok() {
            at(Step::Committed);
        }
        // Also where it failed: the next key is dropped then, or kept if the commit went through after all.
        let settled = self.settle();
        let count = resealed?;
        settled?;
        at(Step::Settled);
        // What the old key opens must not stay behind in the write-ahead log.
        self.identity.forget_written();
        Ok(count)
    }

    /// Ends what a crash cut off.
    pub(super) fn settle(&self) -> Result<(), VaultError> {
        let KeySource::Folder(folder) = &self.source else { return Ok(()) };
        if !keyfile::is_unsettled(folder) {
            return Ok(());
        }
        self.identity.transact(|tx| Ok(keyfile::settle(folder, &entries::standing(tx)?)?))
    }
}

/// Seals every entry anew. One that does not open keeps all of them as they are.
fn reseal(tx: &Connection, old: &Master, fresh: &Master) -> Result<usize, VaultError> {
    let stored = entries::all(tx)?;
    for Stored { place, sealed, .. } in &stored {
        let damaged = |_| VaultError::Damaged { provider: place.provider.clone() };
        let secret = old.open(place, sealed).map_err(damaged)?;
        entries::reseal(tx, place, &fresh.seal(place, &secret)?)?;
    }
    entries::put_fingerprint(tx, &fresh.fingerprint())?;
    Ok(stored.len())
}
