//! API tokens for scripts. A token can do what its scopes allow, and never change the account.

use rusqlite::{OptionalExtension, Row, params};
use shared_types::wire::{ApiToken, NewToken, TokenScope};
use shared_types::{Timestamp, UserId};

use super::audit::{self, AuditAction};
use super::users::{self, User, user_of};
use super::{ClientInfo, IdentityError, IdentityStore, RandomSecret, limits, secret};

/// Makes tokens recognisable to people and to scanners for leaked secrets.
pub(crate) const PREFIX: &str = "choir_";

/// A valid token, with its user and its scopes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedToken {
    pub id: String,
    pub user: User,
    pub scopes: Vec<TokenScope>,
}

const fn scope_name(scope: TokenScope) -> &'static str {
    match scope {
        TokenScope::Read => "read",
        TokenScope::Write => "write",
        TokenScope::Terminal => "terminal",
        TokenScope::Account => "account",
    }
}

fn scope_list(scopes: &[TokenScope]) -> String {
    scopes.iter().map(|scope| scope_name(*scope)).collect::<Vec<_>>().join(" ")
}

/// Parses the scopes of a row. `Account` is never accepted.
fn parse_scopes(text: &str) -> Vec<TokenScope> {
    let known = [TokenScope::Read, TokenScope::Write, TokenScope::Terminal];
    known.into_iter().filter(|scope| text.split(' ').any(|name| name == scope_name(*scope))).collect()
}

fn token_of(row: &Row<'_>) -> rusqlite::Result<ApiToken> {
    let scopes: String = row.get(2)?;
    let at = |millis: Option<i64>| millis.map(Timestamp::from_millis);
    Ok(ApiToken {
        id: row.get(0)?,
        name: row.get(1)?,
        scopes: parse_scopes(&scopes),
        created: Timestamp::from_millis(row.get(3)?),
        used: at(row.get(4)?),
        expires: at(row.get(5)?),
        secret: None,
    })
}

/// Checks the request for a token. Returns its name and its distinct scopes.
fn check(new: &NewToken) -> Result<(String, Vec<TokenScope>), IdentityError> {
    let name = users::check_name(&new.name)?;
    let mut scopes = new.scopes.clone();
    scopes.sort_unstable();
    scopes.dedup();
    if scopes.is_empty() {
        return Err(IdentityError::Invalid("a token needs at least one scope: read, write, terminal".into()));
    }
    if scopes.contains(&TokenScope::Account) {
        return Err(IdentityError::Invalid("a token cannot have the scope account; sign in instead".into()));
    }
    if new.days.is_some_and(|days| days == 0 || days > limits::MAX_TOKEN_DAYS) {
        return Err(IdentityError::Invalid(format!(
            "the lifetime of a token is 1 to {} days",
            limits::MAX_TOKEN_DAYS
        )));
    }
    Ok((name, scopes))
}

impl IdentityStore {
    /// Creates a token. Only this result contains its secret.
    pub fn make_token(
        &self,
        user: &UserId,
        new: &NewToken,
        client: &ClientInfo,
    ) -> Result<ApiToken, IdentityError> {
        let (name, scopes) = check(new)?;
        let (now, id, secret) = (self.now(), secret::id()?, RandomSecret::generate()?);
        let expires = new.days.map(|days| Timestamp::from_millis(now.millis() + limits::days(days)));
        self.write(|tx| {
            let count: u32 =
                tx.query_row("SELECT count(*) FROM tokens WHERE user = ?1", [user.as_str()], |row| {
                    row.get(0)
                })?;
            if count >= limits::MAX_TOKENS {
                return Err(IdentityError::LimitReached { what: "tokens", limit: limits::MAX_TOKENS });
            }
            tx.execute(
                "INSERT INTO tokens (id, hash, user, name, scopes, created, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![
                    id,
                    secret.hash(),
                    user.as_str(),
                    name,
                    scope_list(&scopes),
                    now.millis(),
                    expires.map(Timestamp::millis)
                ],
            )?;
            let detail = format!("{name} ({})", scope_list(&scopes));
            audit::record(tx, now, Some(user), AuditAction::TokenMade, client, &detail)
        })?;
        let secret = Some(format!("{PREFIX}{}", secret.reveal()));
        Ok(ApiToken { id, name, scopes, created: now, used: None, expires, secret })
    }

    /// The token with this text, if it is valid. Its last use is recorded at most once a minute.
    pub fn token(&self, text: &str) -> Result<Option<VerifiedToken>, IdentityError> {
        let Some(secret) = text.strip_prefix(PREFIX).and_then(RandomSecret::parse) else { return Ok(None) };
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
                    let (scopes, used): (String, Option<i64>) = (row.get(5)?, row.get(6)?);
                    Ok((
                        VerifiedToken { user: user_of(row)?, id: row.get(4)?, scopes: parse_scopes(&scopes) },
                        used,
                    ))
                })
                .optional()?;
            let Some((token, used)) = found else { return Ok(None) };
            if used.is_none_or(|used| now.millis() - used >= limits::LAST_SEEN_PRECISION) {
                let sql = "UPDATE tokens SET used = ?2 WHERE id = ?1";
                if let Err(error) = connection.execute(sql, params![token.id, now.millis()]) {
                    tracing::warn!(%error, "could not record the use of a token");
                }
            }
            Ok(Some(token))
        })
    }

    /// Whether a token exists and has not expired.
    pub fn is_token_valid(&self, id: &str) -> Result<bool, IdentityError> {
        let now = self.now();
        self.read(|connection| {
            let sql = "SELECT count(*) FROM tokens WHERE id = ?1 AND (expires IS NULL OR expires > ?2)";
            Ok(connection.query_row(sql, params![id, now.millis()], |row| row.get::<_, i64>(0))? > 0)
        })
    }

    /// The valid tokens of a user, newest first.
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

    pub fn revoke_token(&self, user: &UserId, id: &str, client: &ClientInfo) -> Result<(), IdentityError> {
        let now = self.now();
        self.write(|tx| {
            let sql = "DELETE FROM tokens WHERE user = ?1 AND id = ?2 RETURNING name";
            let name: Option<String> = tx.query_row(sql, [user.as_str(), id], |row| row.get(0)).optional()?;
            let name = name.ok_or(IdentityError::Missing("token"))?;
            audit::record(tx, now, Some(user), AuditAction::TokenRevoked, client, &name)
        })?;
        self.notify_revocation();
        Ok(())
    }
}
