//! Sign-in links: printed when the server starts, or by `choir link`. Each works once.

use rusqlite::{OptionalExtension, params};
use shared_types::UserId;

use super::audit::{self, AuditAction};
use super::{ClientInfo, IdentityError, IdentityStore, NewSession, RandomSecret, limits, sessions, users};

impl IdentityStore {
    /// Creates the secret of a sign-in link for a user: single use, five minutes.
    pub fn make_link(&self, user: &UserId) -> Result<RandomSecret, IdentityError> {
        let (now, secret) = (self.now(), RandomSecret::generate()?);
        self.write(|tx| {
            let user = users::find(tx, user)?.ok_or(IdentityError::Missing("user"))?.id;
            tx.execute("DELETE FROM links WHERE expires <= ?1", [now.millis()])?;
            tx.execute(
                "INSERT INTO links (hash, user, expires) VALUES (?1, ?2, ?3)",
                params![secret.hash(), user.as_str(), now.millis() + limits::LINK_LIFETIME],
            )?;
            audit::record(tx, now, Some(&user), AuditAction::LinkMade, &ClientInfo::default(), "")
        })?;
        Ok(secret)
    }

    /// Signs in with a link. The link is deleted in the same transaction, so it cannot be used twice.
    pub fn redeem_link(&self, secret: &str, client: &ClientInfo) -> Result<NewSession, IdentityError> {
        let now = self.now();
        let session = self.write(|tx| {
            let Some(secret) = RandomSecret::parse(secret) else { return Ok(None) };
            let sql = "DELETE FROM links WHERE hash = ?1 AND expires > ?2 RETURNING user";
            let user: Option<String> =
                tx.query_row(sql, params![secret.hash(), now.millis()], |row| row.get(0)).optional()?;
            let Some(user) = user.and_then(|id| UserId::parse(&id).ok()) else { return Ok(None) };
            let Some(user) = users::find(tx, &user)? else { return Ok(None) };
            sessions::start(tx, now, user, client, "link").map(Some)
        })?;
        match session {
            Some(session) => Ok(session),
            None => self.refuse_sign_in(client, "link"),
        }
    }
}
