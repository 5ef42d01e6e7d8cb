//! The users of a machine: one owner, and the users that the owner invited.

use rusqlite::{Connection, OptionalExtension, Row, params};
use shared_types::UserId;

use super::audit::{self, AuditAction};
use super::{ClientInfo, IdentityError, IdentityStore, limits, secret};

/// A user account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub id: UserId,
    pub name: String,
    /// Whether the user owns the machine.
    pub owner: bool,
    /// The WebAuthn user handle: a random id that the user's passkeys store.
    pub handle: [u8; 16],
}

pub(super) const COLUMNS: &str = "users.id, users.name, users.owner, users.handle";

/// Reads [`COLUMNS`].
pub(super) fn user_of(row: &Row<'_>) -> rusqlite::Result<User> {
    let id: String = row.get(0)?;
    let id = UserId::parse(&id).map_err(|e| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(e))
    })?;
    Ok(User { id, name: row.get(1)?, owner: row.get(2)?, handle: row.get(3)? })
}

pub(super) fn find(connection: &Connection, id: &UserId) -> Result<Option<User>, IdentityError> {
    let sql = format!("SELECT {COLUMNS} FROM users WHERE id = ?1");
    Ok(connection.query_row(&sql, [id.as_str()], user_of).optional()?)
}

pub(super) fn insert(
    connection: &Connection,
    id: &UserId,
    name: &str,
    owner: bool,
    now: i64,
) -> Result<(), IdentityError> {
    connection.execute(
        "INSERT INTO users (id, name, owner, handle, created) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![id.as_str(), name, owner, secret::random::<16>()?, now],
    )?;
    Ok(())
}

/// Trims and checks a name that a user typed: not empty, not too long, and on one line.
pub(crate) fn check_name(name: &str) -> Result<String, IdentityError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > limits::MAX_NAME_CHARS || name.chars().any(char::is_control)
    {
        return Err(IdentityError::Invalid(format!("a name has 1 to {} characters", limits::MAX_NAME_CHARS)));
    }
    Ok(name.to_owned())
}

impl IdentityStore {
    /// Creates the owner's account if there is none. A machine has one owner, whose id never changes.
    pub fn ensure_owner(&self, id: &UserId, name: &str) -> Result<User, IdentityError> {
        let name = check_name(name).unwrap_or_else(|_| id.to_string());
        let now = self.now();
        self.write(|tx| {
            let sql = format!("SELECT {COLUMNS} FROM users WHERE owner = 1");
            if let Some(owner) = tx.query_row(&sql, [], user_of).optional()? {
                return if owner.id == *id {
                    Ok(owner)
                } else {
                    Err(IdentityError::Invalid(format!("this machine is owned by {}, not by {id}", owner.id)))
                };
            }
            insert(tx, id, &name, true, now.millis())?;
            audit::record(tx, now, Some(id), AuditAction::OwnerCreated, &ClientInfo::default(), &name)?;
            find(tx, id)?.ok_or(IdentityError::Missing("user"))
        })
    }

    pub fn user(&self, id: &UserId) -> Result<Option<User>, IdentityError> {
        self.read(|connection| find(connection, id))
    }

    /// All users, the owner first.
    pub fn users(&self) -> Result<Vec<User>, IdentityError> {
        self.read(|connection| {
            let sql = format!("SELECT {COLUMNS} FROM users ORDER BY owner DESC, created, id");
            let mut statement = connection.prepare(&sql)?;
            Ok(statement.query_map([], user_of)?.collect::<Result<_, _>>()?)
        })
    }
}
