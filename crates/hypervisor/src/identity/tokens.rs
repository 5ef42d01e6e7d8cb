//! API tokens: what a script shows instead of a cookie. A token can do what its scopes say and never touches the
//! account.

use rusqlite::{OptionalExtension, Row, params};
use shared_types::wire::{ApiToken, NewToken, Scope};
use shared_types::{Timestamp, UserId};

use super::audit::{self, What};
use super::users::{self, User, user_of};
use super::{Caller, Identity, IdentityError, Secret, secret, spans};

/// Makes a token recognisable to people and to scanners of leaked secrets.
pub(crate) const PREFIX: &str = "choir_";

/// Who shows a token, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    pub token: String,
    pub user: User,
    pub scopes: Vec<Scope>,
}

const fn word(scope: Scope) -> &'static str {
    match scope {
        Scope::Read => "read",
        Scope::Write => "write",
        Scope::Terminal => "terminal",
        Scope::Account => "account",
    }
}

fn words(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| word(*scope)).collect::<Vec<_>>().join(" ")
}

/// The scopes in a row. Whatever stands there, `Account` is not among them.
fn scopes_of(words: &str) -> Vec<Scope> {
    let known = [Scope::Read, Scope::Write, Scope::Terminal];
    known.into_iter().filter(|scope| words.split(' ').any(|w| w == word(*scope))).collect()
}

fn token_of(row: &Row<'_>) -> rusqlite::Result<ApiToken> {
    let scopes: String = row.get(2)?;
    let at = |millis: Option<i64>| millis.map(Timestamp::from_millis);
    Ok(ApiToken {
        id: row.get(0)?,
        name: row.get(1)?,
        scopes: scopes_of(&scopes),
        created: Timestamp::from_millis(row.get(3)?),
        used: at(row.get(4)?),
        expires: at(row.get(5)?),
        secret: None,
    })
}

/// What is wrong with a wish for a token, if anything.
fn check(wish: &NewToken) -> Result<(String, Vec<Scope>), IdentityError> {
    let name = users::name(&wish.name)?;
    let mut scopes = wish.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(IdentityError::Invalid("a token needs at least one scope: read, write, terminal".into()));
    }
    if scopes.contains(&Scope::Account) {
        return Err(IdentityError::Invalid("a token never has the scope account; sign in for that".into()));
    }
    if wish.days.is_some_and(|days| days == 0 || days > spans::TOKEN_DAYS) {
        return Err(IdentityError::Invalid(format!("a token lives 1 to {} days", spans::TOKEN_DAYS)));
    }
    Ok((name, scopes))
}

impl Identity {
    /// Makes a token; its secret is in the answer and nowhere else.
    pub fn make_token(
        &self,
        user: &UserId,
        wish: &NewToken,
        caller: &Caller,
    ) -> Result<ApiToken, IdentityError> {
        let (name, scopes) = check(wish)?;
        let (now, id, secret) = (self.now(), secret::id()?, Secret::generate()?);
        let expires = wish.days.map(|days| Timestamp::from_millis(now.millis() + spans::days(days)));
        self.write(|tx| {
            let there: u32 =
                tx.query_row("SELECT count(*) FROM tokens WHERE user = ?1", [user.as_str()], |row| {
                    row.get(0)
                })?;
            if there >= spans::TOKENS {
                return Err(IdentityError::Full { what: "tokens", limit: spans::TOKENS });
            }
            tx.execute(
                "INSERT INTO tokens (id, hash, user, name, scopes, created, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    id,
                    secret.hash(),
                    user.as_str(),
                    name,
                    words(&scopes),
                    now.millis(),
                    expires.map(Timestamp::millis)
                ],
            )?;
            let detail = format!("{name} ({})", words(&scopes));
            audit::record(tx, now, Some(user), What::TokenMade, caller, &detail)
        })?;
        let secret = Some(format!("{PREFIX}{}", secret.reveal()));
        Ok(ApiToken { id, name, scopes, created: now, used: None, expires, secret })
    }

    /// Whose token a text is, if it is one. Its use is noted at most once a minute.
    pub fn token(&self, text: &str) -> Result<Option<Bearer>, IdentityError> {
        let Some(secret) = text.strip_prefix(PREFIX).and_then(Secret::parse) else { return Ok(None) };
        let now = self.now();
        self.read(|connection| {
            let sql = format!(
                "SELECT {}, tokens.id, scopes, used FROM tokens JOIN users ON users.id = tokens.user
                 WHERE hash = ?1 AND (expires IS NULL OR expires > ?2)",
                users::COLUMNS
            );
            let found = connection
                .prepare_cached(&sql)?
                .query_row(params![secret.hash(), now.millis()], |row| {
                    let (words, used): (String, Option<i64>) = (row.get(5)?, row.get(6)?);
                    Ok((Bearer { user: user_of(row)?, token: row.get(4)?, scopes: scopes_of(&words) }, used))
                })
                .optional()?;
            let Some((bearer, used)) = found else { return Ok(None) };
            if used.is_none_or(|used| now.millis() - used >= spans::SEEN) {
                let sql = "UPDATE tokens SET used = ?2 WHERE id = ?1";
                if let Err(error) = connection.execute(sql, params![bearer.token, now.millis()]) {
                    tracing::warn!(%error, "the use of a token could not be noted");
                }
            }
            Ok(Some(bearer))
        })
    }

    /// Whether a token that was valid a while ago still is.
    pub fn token_holds(&self, id: &str) -> Result<bool, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let sql = "SELECT count(*) FROM tokens WHERE id = ?1 AND (expires IS NULL OR expires > ?2)";
            Ok(connection.query_row(sql, params![id, now.millis()], |row| row.get::<_, i64>(0))? > 0)
        })
    }

    /// The tokens of a user that have not run out, newest first.
    pub fn tokens(&self, user: &UserId) -> Result<Vec<ApiToken>, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id, name, scopes, created, used, expires FROM tokens
                 WHERE user = ?1 AND (expires IS NULL OR expires > ?2) ORDER BY created DESC, id",
            )?;
            let rows = statement.query_map(params![user.as_str(), now.millis()], token_of)?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    pub fn revoke_token(&self, user: &UserId, id: &str, caller: &Caller) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM tokens WHERE user = ?1 AND id = ?2 RETURNING name";
            let name: Option<String> = tx.query_row(sql, [user.as_str(), id], |row| row.get(0)).optional()?;
            let name = name.ok_or(IdentityError::Missing("token"))?;
            audit::record(tx, now, Some(user), What::TokenRevoked, caller, &name)
        })?;
        self.revoked();
        Ok(())
    }
}
