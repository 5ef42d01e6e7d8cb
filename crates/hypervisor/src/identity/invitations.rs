//! Invitations: how the owner gives another person an account with a computer of its own.

use rusqlite::{Connection, OptionalExtension, params};
use shared_types::wire::Invitation;
use shared_types::{Timestamp, UserId};

use super::audit::{self, AuditAction};
use super::{
    ClientInfo, IdentityError, IdentityStore, NewSession, RandomSecret, limits, secret, sessions, users,
};

/// A new invitation, with the secret for the invited person.
#[derive(Debug)]
pub struct NewInvitation {
    pub invitation: Invitation,
    pub secret: RandomSecret,
}

/// A free user id that resembles the user's name.
fn free_user_id(connection: &Connection, name: &str) -> Result<UserId, IdentityError> {
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

impl IdentityStore {
    /// Creates an invitation for single use within seven days. The route's access rule ensures that only the owner
    /// calls it.
    pub fn invite(
        &self,
        owner: &UserId,
        name: &str,
        client: &ClientInfo,
    ) -> Result<NewInvitation, IdentityError> {
        let name = users::check_name(name)?;
        let (now, id, secret) = (self.now(), secret::id()?, RandomSecret::generate()?);
        let expires = Timestamp::from_millis(now.millis() + limits::INVITATION_LIFETIME);
        self.write(|tx| {
            tx.execute("DELETE FROM invitations WHERE expires <= ?1", [now.millis()])?;
            let count: u32 = tx.query_row("SELECT count(*) FROM invitations", [], |row| row.get(0))?;
            if count >= limits::MAX_INVITATIONS {
                return Err(IdentityError::LimitReached {
                    what: "invitations",
                    limit: limits::MAX_INVITATIONS,
                });
            }
            tx.execute(
                "INSERT INTO invitations (id, hash, name, created, expires) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![id, secret.hash(), name, now.millis(), expires.millis()],
            )?;
            audit::record(tx, now, Some(owner), AuditAction::Invited, client, &name)
        })?;
        Ok(NewInvitation { invitation: Invitation { id, name, created: now, expires }, secret })
    }

    /// The pending invitations, newest first.
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
        client: &ClientInfo,
    ) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM invitations WHERE id = ?1 RETURNING name";
            let name: Option<String> = tx.query_row(sql, [id], |row| row.get(0)).optional()?;
            let name = name.ok_or(IdentityError::Missing("invitation"))?;
            audit::record(tx, now, Some(owner), AuditAction::InvitationWithdrawn, client, &name)
        })
    }

    /// Accepts an invitation: creates the account and signs in to it.
    pub fn accept(&self, secret: &str, client: &ClientInfo) -> Result<NewSession, IdentityError> {
        let now = self.now();
        let session = self.write(|tx| {
            let Some(secret) = RandomSecret::parse(secret) else { return Ok(None) };
            let sql = "DELETE FROM invitations WHERE hash = ?1 AND expires > ?2 RETURNING name";
            let name: Option<String> =
                tx.query_row(sql, params![secret.hash(), now.millis()], |row| row.get(0)).optional()?;
            let Some(name) = name else { return Ok(None) };
            let id = free_user_id(tx, &name)?;
            users::insert(tx, &id, &name, false, now.millis())?;
            let user = users::find(tx, &id)?.ok_or(IdentityError::Missing("user"))?;
            audit::record(tx, now, Some(&id), AuditAction::InvitationAccepted, client, &name)?;
            sessions::start(tx, now, user, client, "invitation").map(Some)
        })?;
        match session {
            Some(session) => Ok(session),
            None => self.refuse_sign_in(client, "invitation"),
        }
    }
}
