//! Rotation of the master key.
//!
//! A rotation changes a file and a database, and no transaction covers both. So it takes three steps: it writes the new
//! key to a file beside the old one and syncs it; one transaction seals every entry with the new key and stores its
//! fingerprint; the new file replaces the old one. After a crash at any instant, the key with the stored fingerprint is
//! on disk, and [`keyfile::finish_rotation`] completes or cancels the rotation.

use rusqlite::Connection;
use zeroize::Zeroizing;

use super::entries::{self, StoredEntry};
use super::error::MasterKeyError;
use super::keyfile::{self, MasterKeySource};
use super::master_key::MasterKey;
use super::{Vault, VaultError};
use crate::identity::{AuditAction, ClientInfo, User};

/// The steps of a rotation. Tests kill the process after each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Started,
    NextWritten,
    Resealed,
    Committed,
    Finished,
}

#[cfg(test)]
pub(super) const STEPS: [Step; 5] =
    [Step::Started, Step::NextWritten, Step::Resealed, Step::Committed, Step::Finished];

impl Vault {
    /// Seals all entries with another master key: the given one, or a new one. Returns the number of entries. Only the
    /// owner may do this.
    pub fn rotate(
        &self,
        user: &User,
        next: Option<&Zeroizing<String>>,
        client: &ClientInfo,
    ) -> Result<usize, VaultError> {
        self.rotate_by_steps(user, next, client, &|_| ())
    }

    pub(super) fn rotate_by_steps(
        &self,
        user: &User,
        next: Option<&Zeroizing<String>>,
        client: &ClientInfo,
        on_step: &dyn Fn(Step),
    ) -> Result<usize, VaultError> {
        if !user.owner {
            return Err(VaultError::NotOwner);
        }
        let fresh = match (next, &self.source) {
            (Some(text), _) => keyfile::parse_next_value(text)?,
            (None, MasterKeySource::Folder(_)) => MasterKey::generate()?,
            (None, MasterKeySource::Value(_)) => return Err(MasterKeyError::NoNextKey.into()),
        };
        let now = self.identity.now();
        let resealed: Result<usize, VaultError> = self.identity.write_transaction(|tx| {
            let old = self.master_for_writing(tx)?;
            if fresh.fingerprint() == old.fingerprint() {
                return Err(MasterKeyError::Unchanged.into());
            }
            on_step(Step::Started);
            if let MasterKeySource::Folder(folder) = &self.source {
                keyfile::put_next(folder, &fresh)?;
            }
            on_step(Step::NextWritten);
            let count = reseal(tx, &old, &fresh)?;
            let detail = format!("{count} sealed anew");
            self.identity.record_audit(tx, now, &user.id, AuditAction::MasterRotated, client, &detail)?;
            on_step(Step::Resealed);
            Ok(count)
        });
        if resealed.is_ok() {
            on_step(Step::Committed);
        }
        // This runs after a failure, too: it deletes the next key, or keeps it if the commit succeeded after all.
        let finished = self.finish_rotation();
        let count = resealed?;
        finished?;
        on_step(Step::Finished);
        // Entries sealed with the old key must not stay in the write-ahead log.
        self.identity.truncate_wal();
        Ok(count)
    }

    /// Finishes an interrupted rotation.
    pub(super) fn finish_rotation(&self) -> Result<(), VaultError> {
        let MasterKeySource::Folder(folder) = &self.source else { return Ok(()) };
        if !keyfile::is_rotation_unfinished(folder) {
            return Ok(());
        }
        self.identity.write_transaction(|tx| Ok(keyfile::finish_rotation(folder, &entries::seal_state(tx)?)?))
    }
}

/// Seals every entry with the new key. Fails, and so changes nothing, if one of them does not open.
fn reseal(tx: &Connection, old: &MasterKey, fresh: &MasterKey) -> Result<usize, VaultError> {
    let stored = entries::all(tx)?;
    for StoredEntry { entry_id, sealed, .. } in &stored {
        let corrupt = |_| VaultError::Corrupt { provider: entry_id.provider.clone() };
        let secret = old.open(entry_id, sealed).map_err(corrupt)?;
        entries::reseal(tx, entry_id, &fresh.seal(entry_id, &secret)?)?;
    }
    entries::put_fingerprint(tx, &fresh.fingerprint())?;
    Ok(stored.len())
}
