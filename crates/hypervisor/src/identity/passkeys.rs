//! Passkeys at rest: public keys, with the counters that show a cloned one.

use rusqlite::{OptionalExtension, params};
use shared_types::wire::Passkey;
use shared_types::{Timestamp, UserId};
use webauthn_rs::prelude::Passkey as Key;

use super::audit::{self, What};
use super::users::{self, User, user_of};
use super::{Caller, Identity, IdentityError, NewSession, secret, sessions, spans};

/// A passkey with its user, as signing in needs it.
#[derive(Debug, Clone)]
pub struct StoredPasskey {
    pub id: String,
    pub user: User,
    pub key: Key,
}

fn encode(key: &Key) -> Result<String, IdentityError> {
    serde_json::to_string(key).map_err(|e| IdentityError::Damaged(e.to_string()))
}

fn decode(text: &str) -> Result<Key, IdentityError> {
    serde_json::from_str(text).map_err(|e| IdentityError::Damaged(format!("a passkey: {e}")))
}

impl Identity {
    /// Adds a passkey to an account. The caller has made sure that a session of this account asks.
    pub(crate) fn add_passkey(
        &self,
        user: &UserId,
        given: &str,
        key: &Key,
        caller: &Caller,
    ) -> Result<Passkey, IdentityError> {
        let (name, now, id, text) = (users::name(given)?, self.now(), secret::id()?, encode(key)?);
        let credential: &[u8] = key.cred_id().as_ref();
        self.write(|tx| {
            let there: u32 =
                tx.query_row("SELECT count(*) FROM passkeys WHERE user = ?1", [user.as_str()], |row| {
                    row.get(0)
                })?;
            if there >= spans::PASSKEYS {
                return Err(IdentityError::Full { what: "passkeys", limit: spans::PASSKEYS });
            }
            let added = tx.execute(
                "INSERT OR IGNORE INTO passkeys (id, credential, user, name, key, created)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![id, credential, user.as_str(), name, text, now.millis()],
            )?;
            if added == 0 {
                return Err(IdentityError::Known);
            }
            audit::record(tx, now, Some(user), What::PasskeyAdded, caller, &name)
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

    /// The keys of a user, which an authenticator must not register again.
    pub(crate) fn passkey_keys(&self, user: &UserId) -> Result<Vec<Key>, IdentityError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached("SELECT key FROM passkeys WHERE user = ?1")?;
            let rows = statement.query_map([user.as_str()], |row| row.get::<_, String>(0))?;
            rows.map(|text| decode(&text?)).collect()
        })
    }

    /// The passkey with a credential id, if it is known.
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

    /// Signs in with a passkey that has just been verified, and keeps its new counter.
    pub(crate) fn enter_by_passkey(
        &self,
        passkey: StoredPasskey,
        caller: &Caller,
    ) -> Result<NewSession, IdentityError> {
        let (now, text) = (self.now(), encode(&passkey.key)?);
        let begun = self.write(|tx| {
            let sql = "UPDATE passkeys SET key = ?2, used = ?3 WHERE id = ?1";
            if tx.execute(sql, params![passkey.id, text, now.millis()])? == 0 {
                return Ok(None);
            }
            sessions::begin(tx, now, passkey.user, caller, "passkey").map(Some)
        })?;
        match begun {
            Some(session) => Ok(session),
            None => self.refuse(caller, "passkey"),
        }
    }

    pub fn remove_passkey(&self, user: &UserId, id: &str, caller: &Caller) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM passkeys WHERE user = ?1 AND id = ?2 RETURNING name";
            let name: Option<String> = tx.query_row(sql, [user.as_str(), id], |row| row.get(0)).optional()?;
            let name = name.ok_or(IdentityError::Missing("passkey"))?;
            audit::record(tx, now, Some(user), What::PasskeyRemoved, caller, &name)
        })
    }
}
