//! Invitations: how the owner lets a further person have an account, with a computer of their own.

use rusqlite::{Connection, OptionalExtension, params};
use shared_types::wire::Invitation;
use shared_types::{Timestamp, UserId};

use super::audit::{self, What};
use super::{Caller, Identity, IdentityError, NewSession, Secret, secret, sessions, spans, users};

/// An invitation that was just made; its secret goes to the invited person.
#[derive(Debug)]
pub struct NewInvitation {
    pub invitation: Invitation,
    pub secret: Secret,
}

/// An id for a new user that reads like their name and is nobody else's.
fn free_id(connection: &Connection, name: &str) -> Result<UserId, IdentityError> {
    let mut stem: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .take(UserId::MAX_LEN / 2)
        .collect();
    while stem.contains("--") {
        stem = stem.replace("--", "-");
    }
    let stem = match stem.trim_matches('-') {
        "" => "user",
        stem => stem,
    };
    let mut id = UserId::parse(stem);
    loop {
        let candidate = id.map_err(|e| IdentityError::Invalid(e.to_string()))?;
        if users::find(connection, &candidate)?.is_none() {
            return Ok(candidate);
        }
        id = UserId::parse(&format!("{stem}-{:04x}", u16::from_le_bytes(secret::random()?)));
    }
}

impl Identity {
    /// Invites somebody: single use, seven days. That only the owner may is for the routes to say.
    pub fn invite(
        &self,
        owner: &UserId,
        given: &str,
        caller: &Caller,
    ) -> Result<NewInvitation, IdentityError> {
        let name = users::name(given)?;
        let (now, id, secret) = (self.now(), secret::id()?, Secret::generate()?);
        let expires = Timestamp::from_millis(now.millis() + spans::INVITATION);
        self.write(|tx| {
            tx.execute("DELETE FROM invitations WHERE expires <= ?1", [now.millis()])?;
            let there: u32 = tx.query_row("SELECT count(*) FROM invitations", [], |row| row.get(0))?;
            if there >= spans::INVITATIONS {
                return Err(IdentityError::Full { what: "invitations", limit: spans::INVITATIONS });
            }
            tx.execute(
                "INSERT INTO invitations (id, hash, name, created, expires) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, secret.hash(), name, now.millis(), expires.millis()],
            )?;
            audit::record(tx, now, Some(owner), What::Invited, caller, &name)
        })?;
        Ok(NewInvitation { invitation: Invitation { id, name, created: now, expires }, secret })
    }

    /// Those that can still be accepted, newest first.
    pub fn invitations(&self) -> Result<Vec<Invitation>, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let sql = "SELECT id, name, created, expires FROM invitations WHERE expires > ?1
                       ORDER BY created DESC, id";
            let mut statement = connection.prepare(sql)?;
            let rows = statement.query_map([now.millis()], |row| {
                Ok(Invitation {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    created: Timestamp::from_millis(row.get(2)?),
                    expires: Timestamp::from_millis(row.get(3)?),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub fn withdraw_invitation(
        &self,
        owner: &UserId,
        id: &str,
        caller: &Caller,
    ) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM invitations WHERE id = ?1 RETURNING name";
            let name: Option<String> = tx.query_row(sql, [id], |row| row.get(0)).optional()?;
            let name = name.ok_or(IdentityError::Missing("invitation"))?;
            audit::record(tx, now, Some(owner), What::InvitationWithdrawn, caller, &name)
        })
    }

    /// Accepts an invitation: makes the account and signs in to it.
    pub fn accept(&self, secret: &str, caller: &Caller) -> Result<NewSession, IdentityError> {
        let now = self.now();
        let begun = self.write(|tx| {
            let Some(secret) = Secret::parse(secret) else { return Ok(None) };
            let sql = "DELETE FROM invitations WHERE hash = ?1 AND expires > ?2 RETURNING name";
            let name: Option<String> =
                tx.query_row(sql, params![secret.hash(), now.millis()], |row| row.get(0)).optional()?;
            let Some(name) = name else { return Ok(None) };
            let id = free_id(tx, &name)?;
            users::insert(tx, &id, &name, false, now.millis())?;
            let user = users::find(tx, &id)?.ok_or(IdentityError::Missing("user"))?;
            audit::record(tx, now, Some(&id), What::InvitationAccepted, caller, &name)?;
            sessions::begin(tx, now, user, caller, "invitation").map(Some)
        })?;
        match begun {
            Some(session) => Ok(session),
            None => self.refuse(caller, "invitation"),
        }
    }
}
