//! Recovery codes: ten codes on paper, each of which signs in once.
//!
//! A code is short enough to copy by hand, so it is stored as an argon2 hash. Its first five letters select the row to
//! compare with; the other twenty are the secret. Hashing happens outside the store's lock.

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use rusqlite::{OptionalExtension, params};
use shared_types::UserId;
use std::sync::PoisonError;

use super::audit::{self, AuditAction};
use super::users::{self, User, user_of};
use super::{ClientInfo, IdentityError, IdentityStore, NewSession, limits, secret, sessions};

/// Letters and digits that are not mistaken for one another.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
const SELECTOR_LENGTH: usize = 5;
const LENGTH: usize = 25;

/// A recovery code, split into its two parts.
struct Code {
    selector: String,
    secret: String,
}

impl Code {
    fn generate() -> Result<Self, IdentityError> {
        let letters = secret::random::<LENGTH>()?.map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
        Ok(Self {
            selector: letters[..SELECTOR_LENGTH].iter().collect(),
            secret: letters[SELECTOR_LENGTH..].iter().collect(),
        })
    }

    /// Parses a code, ignoring case, spaces and dashes.
    fn parse(text: &str) -> Option<Self> {
        if text.len() > 4 * LENGTH {
            return None;
        }
        let letters: Vec<char> =
            text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_uppercase()).collect();
        (letters.len() == LENGTH).then(|| Self {
            selector: letters[..SELECTOR_LENGTH].iter().collect(),
            secret: letters[SELECTOR_LENGTH..].iter().collect(),
        })
    }

    fn display(&self) -> String {
        let letters = format!("{}{}", self.selector, self.secret);
        letters.as_bytes().chunks(5).map(String::from_utf8_lossy).collect::<Vec<_>>().join("-")
    }
}

fn hash(secret: &str) -> Result<String, IdentityError> {
    let failed = |e: argon2::password_hash::Error| IdentityError::Corrupt(e.to_string());
    let salt = SaltString::encode_b64(&secret::random::<16>()?).map_err(failed)?;
    Ok(Argon2::default().hash_password(secret.as_bytes(), &salt).map_err(failed)?.to_string())
}

fn matches(secret: &str, stored: &str) -> bool {
    PasswordHash::new(stored)
        .is_ok_and(|stored| Argon2::default().verify_password(secret.as_bytes(), &stored).is_ok())
}

impl IdentityStore {
    /// Replaces all codes of a user with ten new ones. Blocks for a moment.
    pub fn make_recovery_codes(
        &self,
        user: &UserId,
        client: &ClientInfo,
    ) -> Result<Vec<String>, IdentityError> {
        let mut codes: Vec<(Code, String)> = Vec::with_capacity(limits::RECOVERY_CODE_COUNT);
        {
            let _lock = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
            while codes.len() < limits::RECOVERY_CODE_COUNT {
                let code = Code::generate()?;
                if codes.iter().all(|(other, _)| other.selector != code.selector) {
                    let hash = hash(&code.secret)?;
                    codes.push((code, hash));
                }
            }
        }
        let now = self.now();
        self.write(|tx| {
            tx.execute("DELETE FROM recovery WHERE user = ?1", [user.as_str()])?;
            for (code, hash) in &codes {
                let sql = "INSERT INTO recovery (user, selector, argon2) VALUES (?1, ?2, ?3)";
                tx.execute(sql, params![user.as_str(), code.selector, hash])?;
            }
            audit::record(tx, now, Some(user), AuditAction::RecoveryCodesMade, client, "")
        })?;
        Ok(codes.iter().map(|(code, _)| code.display()).collect())
    }

    /// Signs in with a code and deletes it. Blocks for a moment.
    pub fn recover(&self, user: &str, code: &str, client: &ClientInfo) -> Result<NewSession, IdentityError> {
        let code = Code::parse(code);
        let row = match &code {
            Some(code) => self.recovery_row(user, &code.selector)?,
            None => None,
        };
        let (Some(code), Some((user, hash))) = (code, row) else {
            // Takes as long as a known code, so that the response time does not reveal who has an account.
            let _lock = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
            self::hash("")?;
            return self.refuse_sign_in(client, "recovery code");
        };
        let is_match = {
            let _lock = self.hashing.lock().unwrap_or_else(PoisonError::into_inner);
            matches(&code.secret, &hash)
        };
        let now = self.now();
        let session = self.write(|tx| {
            // The delete compares the hash again: another request may have used or replaced the code in the meantime.
            let sql = "DELETE FROM recovery WHERE user = ?1 AND selector = ?2 AND argon2 = ?3";
            if !is_match || tx.execute(sql, [user.id.as_str(), &code.selector, &hash])? == 0 {
                return Ok(None);
            }
            sessions::start(tx, now, user, client, "recovery code").map(Some)
        })?;
        match session {
            Some(session) => Ok(session),
            None => self.refuse_sign_in(client, "recovery code"),
        }
    }

    /// The number of codes that a user has left.
    pub fn recovery_codes_left(&self, user: &UserId) -> Result<u32, IdentityError> {
        self.read(|connection| {
            let sql = "SELECT count(*) FROM recovery WHERE user = ?1";
            Ok(connection.query_row(sql, [user.as_str()], |row| row.get(0))?)
        })
    }

    /// The user with this id or name, and the hash that the code must match.
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
