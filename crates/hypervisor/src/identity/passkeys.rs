//! Stored passkeys: public keys, with the counters that reveal a cloned authenticator.

use rusqlite::{OptionalExtension, params};
use shared_types::wire::Passkey;
use shared_types::{Timestamp, UserId};
use webauthn_rs::prelude::Passkey as Key;

use super::audit::{self, AuditAction};
use super::users::{self, User, user_of};
use super::{ClientInfo, IdentityError, IdentityStore, NewSession, limits, secret, sessions};

/// A passkey with its user.
#[derive(Debug, Clone)]
pub struct StoredPasskey {
    pub id: String,
    pub user: User,
    pub key: Key,
}

fn encode(key: &Key) -> Result<String, IdentityError> {
    serde_json::to_string(key).map_err(|e| IdentityError::Corrupt(e.to_string()))
}

fn decode(text: &str) -> Result<Key, IdentityError> {
    serde_json::from_str(text).map_err(|e| IdentityError::Corrupt(format!("a passkey: {e}")))
}

impl IdentityStore {
    /// Adds a passkey to an account. The caller has checked that the request comes from a session of this account.
    pub(crate) fn add_passkey(
        &self,
        user: &UserId,
        name: &str,
        key: &Key,
        client: &ClientInfo,
    ) -> Result<Passkey, IdentityError> {
        let (name, now, id, text) = (users::check_name(name)?, self.now(), secret::id()?, encode(key)?);
        let credential: &[u8] = key.cred_id().as_ref();
        self.write(|tx| {
            let count: u32 =
                tx.query_row("SELECT count(*) FROM passkeys WHERE user = ?1", [user.as_str()], |row| {
                    row.get(0)
                })?;
            if count >= limits::MAX_PASSKEYS {
                return Err(IdentityError::LimitReached { what: "passkeys", limit: limits::MAX_PASSKEYS });
            }
            let added = tx.execute(
                "INSERT OR IGNORE INTO passkeys (id, credential, user, name, key, created)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, credential, user.as_str(), name, text, now.millis()],
            )?;
            if added == 0 {
                return Err(IdentityError::PasskeyExists);
            }
            audit::record(tx, now, Some(user), AuditAction::PasskeyAdded, client, &name)
        })?;
        Ok(Passkey { id, name, created: now, used: None })
    }

    /// The passkeys of a user, oldest first.
    pub fn passkeys(&self, user: &UserId) -> Result<Vec<Passkey>, IdentityError> {
        self.read(|connection| {
            let sql = "SELECT id, name, created, used FROM passkeys WHERE user = ?1 ORDER BY created, id";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([user.as_str()], |row| {
                let used: Option<i64> = row.get(3)?;
                Ok(Passkey {
                    id: row.get(0)?,
                    name: row.get(1)?,
                    created: Timestamp::from_millis(row.get(2)?),
                    used: used.map(Timestamp::from_millis),
                })
            })?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// The public keys of a user's passkeys. An authenticator must not register them again.
    pub(crate) fn passkey_keys(&self, user: &UserId) -> Result<Vec<Key>, IdentityError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT key FROM passkeys WHERE user = ?1")?;
            let rows = statement.query_map([user.as_str()], |row| row.get::<_, String>(0))?;
            rows.map(|text| decode(&text?)).collect()
        })
    }

    /// The passkey with a credential id.
    pub(crate) fn passkey(&self, credential: &[u8]) -> Result<Option<StoredPasskey>, IdentityError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {}, passkeys.id, key FROM passkeys JOIN users ON users.id = passkeys.user
                 WHERE credential = ?1",
                users::COLUMNS
            );
            let found = connection
                .query_row(&sql, [credential], |row| {
                    Ok((user_of(row)?, row.get::<_, String>(4)?, row.get::<_, String>(5)?))
                })
                .optional()?;
            let Some((user, id, text)) = found else { return Ok(None) };
            Ok(Some(StoredPasskey { id, user, key: decode(&text)? }))
        })
    }

    /// Signs in with a verified passkey, and stores its new counter.
    pub(crate) fn sign_in_with_passkey(
        &self,
        passkey: StoredPasskey,
        client: &ClientInfo,
    ) -> Result<NewSession, IdentityError> {
        let (now, text) = (self.now(), encode(&passkey.key)?);
        let session = self.write(|tx| {
            let sql = "UPDATE passkeys SET key = ?2, used = ?3 WHERE id = ?1";
            if tx.execute(sql, params![passkey.id, text, now.millis()])? == 0 {
                return Ok(None);
            }
            sessions::start(tx, now, passkey.user, client, "passkey").map(Some)
        })?;
        match session {
            Some(session) => Ok(session),
            None => self.refuse_sign_in(client, "passkey"),
        }
    }

    pub fn remove_passkey(&self, user: &UserId, id: &str, client: &ClientInfo) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM passkeys WHERE user = ?1 AND id = ?2 RETURNING name";
            let name: Option<String> = tx.query_row(sql, [user.as_str(), id], |row| row.get(0)).optional()?;
            let name = name.ok_or(IdentityError::Missing("passkey"))?;
            audit::record(tx, now, Some(user), AuditAction::PasskeyRemoved, client, &name)
        })
    }
}
