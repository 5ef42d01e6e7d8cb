//! The audit trail: changes to an account, with the time and the client's address. It contains no secrets.

use rusqlite::{Connection, params};
use shared_types::wire::AuditLine;
use shared_types::{Timestamp, UserId};

use super::{ClientInfo, IdentityError, IdentityStore, User, limits};

/// What an audit line is description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditAction {
    OwnerCreated,
    LinkMade,
    SignedIn,
    SignInRefused,
    SignedOut,
    SessionRevoked,
    TokenMade,
    TokenRevoked,
    PasskeyAdded,
    PasskeyRemoved,
    RecoveryCodesMade,
    Invited,
    InvitationWithdrawn,
    InvitationAccepted,
    KeySet,
    KeyCleared,
    MasterRotated,
}

impl AuditAction {
    const fn as_str(self) -> &'static str {
        match self {
            Self::OwnerCreated => "owner.created",
            Self::LinkMade => "link.made",
            Self::SignedIn => "signed_in",
            Self::SignInRefused => "sign_in.refused",
            Self::SignedOut => "signed_out",
            Self::SessionRevoked => "session.revoked",
            Self::TokenMade => "token.made",
            Self::TokenRevoked => "token.revoked",
            Self::PasskeyAdded => "passkey.added",
            Self::PasskeyRemoved => "passkey.removed",
            Self::RecoveryCodesMade => "recovery.made",
            Self::Invited => "invitation.made",
            Self::InvitationWithdrawn => "invitation.withdrawn",
            Self::InvitationAccepted => "invitation.accepted",
            Self::KeySet => "key.set",
            Self::KeyCleared => "key.cleared",
            Self::MasterRotated => "master_key.rotated",
        }
    }
}

/// Writes an entry, in the same transaction as the change it records.
pub(super) fn record(
    connection: &Connection,
    now: Timestamp,
    user: Option<&UserId>,
    action: AuditAction,
    client: &ClientInfo,
    detail: &str,
) -> Result<(), IdentityError> {
    connection.execute(
        "INSERT INTO audit (ts, user, what, address, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![now.millis(), user.map(UserId::as_str), action.as_str(), client.address, detail],
    )?;
    let last_dropped = connection.last_insert_rowid() - limits::MAX_AUDIT_ENTRIES;
    connection.execute("DELETE FROM audit WHERE n <= ?1", [last_dropped])?;
    Ok(())
}

impl IdentityStore {
    /// The newest entries about a user. The owner also sees refused sign-ins, which belong to no user.
    pub fn audit(&self, user: &User) -> Result<Vec<AuditLine>, IdentityError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT ts, what, address, detail FROM audit
                 WHERE user = ?1 OR (?2 AND user IS NULL) ORDER BY n DESC LIMIT ?3",
            )?;
            let entries = statement.query_map(
                params![user.id.as_str(), user.owner, limits::LISTED_AUDIT_ENTRIES],
                |row| {
                    Ok(AuditLine {
                        ts: Timestamp::from_millis(row.get(0)?),
                        what: row.get(1)?,
                        address: row.get(2)?,
                        detail: row.get(3)?,
                    })
                },
            )?;
            Ok(entries.collect::<Result<_, _>>()?)
        })
    }

    /// Writes an audit entry for a module that shares the database.
    pub(crate) fn record_audit(
        &self,
        connection: &Connection,
        now: Timestamp,
        user: &UserId,
        action: AuditAction,
        client: &ClientInfo,
        detail: &str,
    ) -> Result<(), IdentityError> {
        record(connection, now, Some(user), action, client, detail)
    }

    /// Records a refused sign-in and returns the error for it.
    pub(crate) fn refuse_sign_in<T>(&self, client: &ClientInfo, detail: &str) -> Result<T, IdentityError> {
        let now = self.now();
        self.write(|tx| record(tx, now, None, AuditAction::SignInRefused, client, detail))?;
        Err(IdentityError::SignInRefused)
    }
}
