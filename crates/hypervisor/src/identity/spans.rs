//! How long things last, and how many there may be: every such number of the store, in one place.

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// A sign-in link works once, this long.
pub const LINK: i64 = 5 * MINUTE;
/// A session ends when nobody used it for so long,
pub const SESSION_IDLE: i64 = 14 * DAY;
/// and in any case after this.
pub const SESSION_AT_MOST: i64 = 90 * DAY;
/// How exact "last seen" is: a session is written at most this often.
pub const SEEN: i64 = MINUTE;
/// An invitation works once, this long.
pub const INVITATION: i64 = 7 * DAY;
/// A ceremony of a passkey must be finished within this.
pub const CEREMONY: i64 = 5 * MINUTE;
/// A token may be given a life of so many days.
pub const TOKEN_DAYS: u32 = 3_650;

/// The oldest session goes when one more is made.
pub const SESSIONS: u32 = 100;
pub const TOKENS: u32 = 100;
pub const PASSKEYS: u32 = 50;
pub const INVITATIONS: u32 = 100;
/// Providers with a key, of one user.
pub const KEYS: u32 = 50;
pub const CEREMONIES: usize = 256;
pub const RECOVERY_CODES: usize = 10;
/// The audit trail keeps its newest lines.
pub const AUDIT_LINES: i64 = 50_000;
/// How many of them are shown.
pub const AUDIT_SHOWN: i64 = 500;
/// Letters in a name that a person gives.
pub const NAME: usize = 100;

pub(super) const fn days(days: u32) -> i64 {
    days as i64 * DAY
}
