//! Errors of SQLite, sorted by what they mean for the log.

use rusqlite::ErrorCode;
use shared_types::{Seq, UserId};

use crate::{OpenError, ReadError};

/// Why a read failed.
#[derive(Debug)]
pub(super) enum Fault {
    Broken { seq: Seq, reason: String },
    Sql(rusqlite::Error),
}

impl Fault {
    pub(super) fn broken(seq: Seq, reason: impl Into<String>) -> Self {
        Self::Broken { seq, reason: reason.into() }
    }

    /// An SQLite error while the event at `seq` was read: a damaged database is a break at that event.
    pub(super) fn at(seq: Seq, error: rusqlite::Error) -> Self {
        if is_damage(&error) { Self::broken(seq, error.to_string()) } else { Self::Sql(error) }
    }

    pub(super) fn into_read_error(self, user: &UserId) -> ReadError {
        match self {
            Self::Broken { seq, reason } => ReadError::Broken { seq, reason },
            Self::Sql(error) => ReadError::Storage { user: user.clone(), source: Box::new(error) },
        }
    }

    pub(super) fn into_open_error(self) -> OpenError {
        match self {
            Self::Broken { seq, reason } => OpenError::Read(ReadError::Broken { seq, reason }),
            Self::Sql(error) => open_error(error),
        }
    }
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

/// Whether the database's own structure is damaged.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    [Some(ErrorCode::DatabaseCorrupt), Some(ErrorCode::NotADatabase)].contains(&error.sqlite_error_code())
}

pub(super) fn open_error(error: rusqlite::Error) -> OpenError {
    if is_damage(&error) {
        OpenError::Damaged(error.to_string())
    } else {
        OpenError::Storage(Box::new(error))
    }
}
