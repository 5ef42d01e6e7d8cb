//! Recovery codes: ten lines on paper, each of which signs in once.
//!
//! A code is short enough to be copied by hand, so it is kept with argon2. Its first five letters say which row to
//! compare with; the twenty after them are the secret. Hashing happens outside of the store's lock.

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use rusqlite::{OptionalExtension, params};
use shared_types::UserId;
use std::sync::PoisonError;

use super::audit::{self, What};
use super::users::{self, User, user_of};
use super::{Caller, Identity, IdentityError, NewSession, secret, sessions, spans};

/// Letters that are not mistaken for one another.
const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const SELECTOR: usize = 5;
const LENGTH: usize = 25;

/// A code in two parts, however the person spaced it.
struct Code {
    selector: String,
    secret: String,
}

impl Code {
    fn generate() -> Result<Self, IdentityError> {
        let letters = secret::random::<LENGTH>()?.map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
        Ok(Self {
            selector: letters[..SELECTOR].iter().collect(),
            secret: letters[SELECTOR..].iter().collect(),
        })
    }

    fn parse(text: &str) -> Option<Self> {
        if text.len() > 4 * LENGTH {
            return None;
        }
        let letters: Vec<char> =
            text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
        (letters.len() == LENGTH).then(|| Self {
            selector: letters[..SELECTOR].iter().collect(),
            secret: letters[SELECTOR..].iter().collect(),
        })
    }

    fn shown(&self) -> String {
        let whole = format!("{}{}", self.selector, self.secret);
        whole.as_bytes().chunks(5).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
    }
}

fn hash(secret: &str) -> Result<String, IdentityError> {
    let failed = |e: argon2::password_hash::Error| IdentityError::Damaged(e.to_string());
    let salt = SaltString::encode_b64(&secret::random::<16>()?).map_err(failed)?;
    Ok(Argon2::default().hash_password(secret.as_bytes(), &salt).map_err(failed)?.to_string())
}

fn matches(secret: &str, kept: &str) -> bool {
    PasswordHash::new(kept)
        .is_ok_and(|kept| Argon2::default().verify_password(secret.as_bytes(), &kept).is_ok())
}

impl Identity {
    /// Makes ten new codes in place of all older ones. Takes a moment: call it where blocking is allowed.
    pub fn make_recovery_codes(&self, user: &UserId, caller: &Caller) -> Result<Vec<String>, IdentityError> {
        let mut codes: Vec<(Code, String)> = Vec::with_capacity(spans::RECOVERY_CODES);
        {
            let _one = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
            while codes.len() < spans::RECOVERY_CODES {
                let code = Code::generate()?;
                if codes.iter().all(|(other, _)| other.selector != code.selector) {
                    let kept = hash(&code.secret)?;
                    codes.push((code, kept));
                }
            }
        }
        let now = self.now();
        self.write(|tx| {
            tx.execute("DELETE FROM recovery WHERE user = ?1", [user.as_str()])?;
            for (code, kept) in &codes {
                let sql = "INSERT INTO recovery (user, selector, argon2) VALUES (?1, ?2, ?3)";
                tx.execute(sql, params![user.as_str(), code.selector, kept])?;
            }
            audit::record(tx, now, Some(user), What::RecoveryCodesMade, caller, "")
        })?;
        Ok(codes.iter().map(|(code, _)| code.shown()).collect())
    }

    /// Signs in with a code, which is used up. Takes a moment: call it where blocking is allowed.
    pub fn recover(&self, user: &str, code: &str, caller: &Caller) -> Result<NewSession, IdentityError> {
        let code = Code::parse(code);
        let row = match &code {
            Some(code) => self.recovery_row(user, &code.selector)?,
            None => None,
        };
        let (Some(code), Some((user, kept))) = (code, row) else {
            // As slow as a code that is there, so that the time does not tell who has an account.
            let _one = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
            hash("")?;
            return self.refuse(caller, "recovery code");
        };
        let right = {
            let _one = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
            matches(&code.secret, &kept)
        };
        let now = self.now();
        let begun = self.write(|tx| {
            // The row is compared again: somebody else may have used it, or made new ones, in the meantime.
            let sql = "DELETE FROM recovery WHERE user = ?1 AND selector = ?2 AND argon2 = ?3";
            if !right || tx.execute(sql, [user.id.as_str(), &code.selector, &kept])? == 0 {
                return Ok(None);
            }
            sessions::begin(tx, now, user, caller, "recovery code").map(Some)
        })?;
        match begun {
            Some(session) => Ok(session),
            None => self.refuse(caller, "recovery code"),
        }
    }

    /// How many codes a user has left.
    pub fn recovery_codes_left(&self, user: &UserId) -> Result<u32, IdentityError> {
        self.read(|connection| {
            let sql = "SELECT count(*) FROM recovery WHERE user = ?1";
            Ok(connection.query_row(sql, [user.as_str()], |row| row.get(0))?)
        })
    }

    /// The row that a code must match: of the user with this id, or with this name.
    fn recovery_row(&self, user: &str, selector: &str) -> Result<Option<(User, String)>, IdentityError> {
        self.read(|connection| {
            let sql = format!(
                "SELECT {}, argon2 FROM recovery JOIN users ON users.id = recovery.user
                 WHERE selector = ?2 AND (users.id = ?1 OR users.name = ?1 COLLATE NOCASE)
                 ORDER BY users.id = ?1 DESC LIMIT 1",
                users::COLUMNS
            );
            let row =
                connection.query_row(&sql, [user.trim(), selector], |row| Ok((user_of(row)?, row.get(4)?)));
            Ok(row.optional()?)
        })
    }
}
