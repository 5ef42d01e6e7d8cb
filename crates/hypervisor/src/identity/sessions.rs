//! Sessions: a browser that is signed in. They end when idle, when old, or when taken back.

use rusqlite::{Connection, OptionalExtension, params};
use shared_types::wire::Session;
use shared_types::{Timestamp, UserId};

use super::audit::{self, What};
use super::users::{self, User, user_of};
use super::{Caller, Identity, IdentityError, Secret, secret, spans};

/// A session that has just begun; its secret goes into the cookie and nowhere else.
#[derive(Debug)]
#[must_use]
pub struct NewSession {
    pub id: String,
    pub user: User,
    pub secret: Secret,
}

/// Whose session it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub session: String,
    pub user: User,
}

/// Begins a session for a user who has just proved who they are, `how`.
pub(super) fn begin(
    connection: &Connection,
    now: Timestamp,
    user: User,
    caller: &Caller,
    how: &str,
) -> Result<NewSession, IdentityError> {
    let secret = Secret::generate()?;
    let id = secret::id()?;
    connection.execute(
        "INSERT INTO sessions (id, hash, user, created, seen, browser, address)
         VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
        params![id, secret.hash(), user.id.as_str(), now.millis(), caller.browser, caller.address],
    )?;
    connection.execute(
        "DELETE FROM sessions WHERE id IN
         (SELECT id FROM sessions WHERE user = ?1 ORDER BY id = ?2 DESC, seen DESC LIMIT -1 OFFSET ?3)",
        params![user.id.as_str(), id, spans::SESSIONS],
    )?;
    audit::record(connection, now, Some(&user.id), What::SignedIn, caller, how)?;
    Ok(NewSession { id, user, secret })
}

/// Whether a session has not run out.
fn alive(now: Timestamp, created: i64, seen: i64) -> bool {
    now.millis() < seen + spans::SESSION_IDLE && now.millis() < created + spans::SESSION_AT_MOST
}

impl Identity {
    /// Whose session a secret opens, if any. Using a session keeps it from going idle.
    pub fn session(&self, secret: &Secret) -> Result<Option<Holder>, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let sql = format!(
                "SELECT {}, sessions.id, sessions.created, sessions.seen
                 FROM sessions JOIN users ON users.id = sessions.user WHERE hash = ?1",
                users::COLUMNS
            );
            let found = connection
                .prepare_cached(&sql)?
                .query_row([secret.hash()], |row| {
                    let (created, seen): (i64, i64) = (row.get(5)?, row.get(6)?);
                    Ok((Holder { user: user_of(row)?, session: row.get(4)? }, created, seen))
                })
                .optional()?;
            let found = found.filter(|(_, created, seen)| alive(now, *created, *seen));
            let Some((holder, _, seen)) = found else { return Ok(None) };
            if now.millis() - seen >= spans::SEEN {
                // On a full disk people must still get in, to make room.
                let sql = "UPDATE sessions SET seen = ?2 WHERE id = ?1";
                if let Err(error) = connection.execute(sql, params![holder.session, now.millis()]) {
                    tracing::warn!(%error, "a session could not be kept from going idle");
                }
            }
            Ok(Some(holder))
        })
    }

    /// Whether a session that was valid a while ago still is.
    pub fn session_holds(&self, id: &str) -> Result<bool, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let sql = "SELECT created, seen FROM sessions WHERE id = ?1";
            let found = connection.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            Ok(found.is_some_and(|(created, seen)| alive(now, created, seen)))
        })
    }

    /// The sessions of a user, the one used last first.
    pub fn sessions(&self, user: &UserId, current: Option<&str>) -> Result<Vec<Session>, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, created, seen, browser, address FROM sessions WHERE user = ?1
                 AND seen > ?2 AND created > ?3 ORDER BY seen DESC, id",
            )?;
            let idle = now.millis() - spans::SESSION_IDLE;
            let old = now.millis() - spans::SESSION_AT_MOST;
            let rows = statement.query_map(params![user.as_str(), idle, old], |row| {
                let id: String = row.get(0)?;
                Ok(Session {
                    current: current == Some(id.as_str()),
                    id,
                    created: Timestamp::from_millis(row.get(1)?),
                    seen: Timestamp::from_millis(row.get(2)?),
                    browser: row.get(3)?,
                    address: row.get(4)?,
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Ends one of the user's sessions, from any of the others.
    pub fn revoke_session(&self, user: &UserId, id: &str, caller: &Caller) -> Result<(), IdentityError> {
        self.end_session(user, id, What::SessionRevoked, caller)
    }

    /// Ends the session that asks.
    pub fn sign_out(&self, user: &UserId, id: &str, caller: &Caller) -> Result<(), IdentityError> {
        self.end_session(user, id, What::SignedOut, caller)
    }

    fn end_session(&self, user: &UserId, id: &str, what: What, caller: &Caller) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM sessions WHERE user = ?1 AND id = ?2";
            if tx.execute(sql, [user.as_str(), id])? == 0 {
                return Err(IdentityError::Missing("session"));
            }
            audit::record(tx, now, Some(user), what, caller, id)
        })?;
        self.revoked();
        Ok(())
    }
}
