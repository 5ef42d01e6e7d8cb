//! Sign-in links: printed by the server when it starts, or by `choir link`; opened once.

use rusqlite::{OptionalExtension, params};
use shared_types::UserId;

use super::audit::{self, What};
use super::{Caller, Identity, IdentityError, NewSession, Secret, sessions, spans, users};

impl Identity {
    /// Makes a link's secret for a user: single use, five minutes.
    pub fn make_link(&self, user: &UserId) -> Result<Secret, IdentityError> {
        let (now, secret) = (self.now(), Secret::generate()?);
        self.write(|tx| {
            let user = users::find(tx, user)?.ok_or(IdentityError::Missing("user"))?.id;
            tx.execute("DELETE FROM links WHERE expires <= ?1", [now.millis()])?;
            tx.execute(
                "INSERT INTO links (hash, user, expires) VALUES (?1, ?2, ?3)",
                params![secret.hash(), user.as_str(), now.millis() + spans::LINK],
            )?;
            audit::record(tx, now, Some(&user), What::LinkMade, &Caller::default(), "")
        })?;
        Ok(secret)
    }

    /// Signs in with a link. It is used up in the same transaction, so two tabs cannot both have it.
    pub fn redeem_link(&self, secret: &str, caller: &Caller) -> Result<NewSession, IdentityError> {
        let now = self.now();
        let begun = self.write(|tx| {
            let Some(secret) = Secret::parse(secret) else { return Ok(None) };
            let sql = "DELETE FROM links WHERE hash = ?1 AND expires > ?2 RETURNING user";
            let user: Option<String> =
                tx.query_row(sql, params![secret.hash(), now.millis()], |row| row.get(0)).optional()?;
            let Some(user) = user.and_then(|id| UserId::parse(&id).ok()) else { return Ok(None) };
            let Some(user) = users::find(tx, &user)? else { return Ok(None) };
            sessions::begin(tx, now, user, caller, "link").map(Some)
        })?;
        match begun {
            Some(session) => Ok(session),
            None => self.refuse(caller, "link"),
        }
    }
}
