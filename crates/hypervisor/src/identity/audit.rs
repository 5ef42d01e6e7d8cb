//! The audit trail: who did what to an account, from where. Never a secret.

use rusqlite::{Connection, params};
use shared_types::wire::AuditLine;
use shared_types::{Timestamp, UserId};

use super::{Caller, Identity, IdentityError, User, spans};

/// What an audit line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
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

impl What {
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

/// Writes a line, within the transaction of what it tells.
pub(super) fn record(
    connection: &Connection,
    now: Timestamp,
    user: Option<&UserId>,
    what: What,
    caller: &Caller,
    detail: &str,
) -> Result<(), IdentityError> {
    connection.execute(
        "INSERT INTO audit (ts, user, what, address, detail) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![now.millis(), user.map(UserId::as_str), what.as_str(), caller.address, detail],
    )?;
    let oldest = connection.last_insert_rowid() - spans::AUDIT_LINES;
    connection.execute("DELETE FROM audit WHERE n <= ?1", [oldest])?;
    Ok(())
}

impl Identity {
    /// The newest lines about a user. The owner also sees the sign-ins that were refused to nobody in particular.
    pub fn audit(&self, user: &User) -> Result<Vec<AuditLine>, IdentityError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT ts, what, address, detail FROM audit
                 WHERE user = ?1 OR (?2 AND user IS NULL) ORDER BY n DESC LIMIT ?3",
            )?;
            let lines =
                statement.query_map(params![user.id.as_str(), user.owner, spans::AUDIT_SHOWN], |row| {
                    Ok(AuditLine {
                        ts: Timestamp::from_millis(row.get(0)?),
                        what: row.get(1)?,
                        address: row.get(2)?,
                        detail: row.get(3)?,
                    })
                })?;
            Ok(lines.collect::<Result<_, _>>()?)
        })
    }

    /// Writes a line for what is kept here and is not identity.
    pub(crate) fn note(
        &self,
        connection: &Connection,
        now: Timestamp,
        user: &UserId,
        what: What,
        caller: &Caller,
        detail: &str,
    ) -> Result<(), IdentityError> {
        record(connection, now, Some(user), what, caller, detail)
    }

    /// Notes a sign-in that was refused, and says so.
    pub(crate) fn refuse<T>(&self, caller: &Caller, detail: &str) -> Result<T, IdentityError> {
        let now = self.now();
        self.write(|tx| record(tx, now, None, What::SignInRefused, caller, detail))?;
        Err(IdentityError::Refused)
    }
}
