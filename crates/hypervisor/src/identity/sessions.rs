//! Sessions of signed-in browsers. They end when idle, when old, or when revoked.

use rusqlite::{Connection, OptionalExtension, params};
use shared_types::wire::Session;
use shared_types::{Timestamp, UserId};

use super::audit::{self, AuditAction};
use super::users::{self, User, user_of};
use super::{ClientInfo, IdentityError, IdentityStore, RandomSecret, limits, secret};

/// A new session. Its secret goes into the cookie and nowhere else.
#[derive(Debug)]
#[must_use]
pub struct NewSession {
    pub id: String,
    pub user: User,
    pub secret: RandomSecret,
}

/// A valid session and its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedSession {
    pub id: String,
    pub user: User,
}

/// Starts a session for a user who was authenticated by this method.
pub(super) fn start(
    connection: &Connection,
    now: Timestamp,
    user: User,
    client: &ClientInfo,
    method: &str,
) -> Result<NewSession, IdentityError> {
    let secret = RandomSecret::generate()?;
    let id = secret::id()?;
    connection.execute(
        "INSERT INTO sessions (id, hash, user, created, seen, browser, address)
         VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
        params![id, secret.hash(), user.id.as_str(), now.millis(), client.browser, client.address],
    )?;
    connection.execute(
        "DELETE FROM sessions WHERE id IN
         (SELECT id FROM sessions WHERE user = ?1 ORDER BY id = ?2 DESC, seen DESC LIMIT -1 OFFSET ?3)",
        params![user.id.as_str(), id, limits::MAX_SESSIONS],
    )?;
    audit::record(connection, now, Some(&user.id), AuditAction::SignedIn, client, method)?;
    Ok(NewSession { id, user, secret })
}

/// Whether a session has not expired.
fn is_valid(now: Timestamp, created: i64, seen: i64) -> bool {
    now.millis() < seen + limits::SESSION_IDLE_TIMEOUT && now.millis() < created + limits::SESSION_MAX_AGE
}

impl IdentityStore {
    /// The session with this secret, if it is valid. The lookup counts as use of the session.
    pub fn session(&self, secret: &RandomSecret) -> Result<Option<VerifiedSession>, IdentityError> {
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
                    Ok((VerifiedSession { user: user_of(row)?, id: row.get(4)? }, created, seen))
                })
                .optional()?;
            let found = found.filter(|(_, created, seen)| is_valid(now, *created, *seen));
            let Some((session, _, seen)) = found else { return Ok(None) };
            if now.millis() - seen >= limits::LAST_SEEN_PRECISION {
                // On a full disk people must still get in, to make room.
                let sql = "UPDATE sessions SET seen = ?2 WHERE id = ?1";
                if let Err(error) = connection.execute(sql, params![session.id, now.millis()]) {
                    tracing::warn!(%error, "could not record the use of a session");
                }
            }
            Ok(Some(session))
        })
    }

    /// Whether a session exists and has not expired.
    pub fn is_session_valid(&self, id: &str) -> Result<bool, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let sql = "SELECT created, seen FROM sessions WHERE id = ?1";
            let found = connection.query_row(sql, [id], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
            Ok(found.is_some_and(|(created, seen)| is_valid(now, created, seen)))
        })
    }

    /// The sessions of a user, most recently used first.
    pub fn sessions(&self, user: &UserId, current: Option<&str>) -> Result<Vec<Session>, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, created, seen, browser, address FROM sessions WHERE user = ?1
                 AND seen > ?2 AND created > ?3 ORDER BY seen DESC, id",
            )?;
            let idle = now.millis() - limits::SESSION_IDLE_TIMEOUT;
            let old = now.millis() - limits::SESSION_MAX_AGE;
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

    /// Ends one of the user's sessions.
    pub fn revoke_session(&self, user: &UserId, id: &str, client: &ClientInfo) -> Result<(), IdentityError> {
        self.end_session(user, id, AuditAction::SessionRevoked, client)
    }

    /// Ends the session of the request itself.
    pub fn sign_out(&self, user: &UserId, id: &str, client: &ClientInfo) -> Result<(), IdentityError> {
        self.end_session(user, id, AuditAction::SignedOut, client)
    }

    fn end_session(
        &self,
        user: &UserId,
        id: &str,
        action: AuditAction,
        client: &ClientInfo,
    ) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM sessions WHERE user = ?1 AND id = ?2";
            if tx.execute(sql, [user.as_str(), id])? == 0 {
                return Err(IdentityError::Missing("session"));
            }
            audit::record(tx, now, Some(user), action, client, id)
        })?;
        self.notify_revocation();
        Ok(())
    }
}
