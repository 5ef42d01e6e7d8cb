//! Lifetimes, in milliseconds, and maximum numbers of everything in the identity store and the vault.

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

/// A sign-in link works once within this time.
pub const LINK_LIFETIME: i64 = 5 * MINUTE;
/// A session ends after this time without use.
pub const SESSION_IDLE_TIMEOUT: i64 = 14 * DAY;
/// A session ends after this time, used or not.
pub const SESSION_MAX_AGE: i64 = 90 * DAY;
/// The last use of a session or token is written at most this often.
pub const LAST_SEEN_PRECISION: i64 = MINUTE;
/// An invitation works once within this time.
pub const INVITATION_LIFETIME: i64 = 7 * DAY;
/// A passkey ceremony must be finished within this time.
pub const CEREMONY_TIMEOUT: i64 = 5 * MINUTE;
/// The longest lifetime of a token that has one, in days.
pub const MAX_TOKEN_DAYS: u32 = 3_650;

/// Per user. A further session ends the one that was used least recently.
pub const MAX_SESSIONS: u32 = 100;
/// Per user.
pub const MAX_TOKENS: u32 = 100;
/// Per user.
pub const MAX_PASSKEYS: u32 = 50;
pub const MAX_INVITATIONS: u32 = 100;
/// Provider keys per user.
pub const MAX_KEYS: u32 = 50;
/// Passkey ceremonies that wait for their second request.
pub const MAX_CEREMONIES: usize = 256;
/// Recovery codes that are created at once.
pub const RECOVERY_CODE_COUNT: usize = 10;
/// The audit trail keeps this many of its newest entries.
pub const MAX_AUDIT_ENTRIES: i64 = 50_000;
/// The number of audit entries that a user can list.
pub const LISTED_AUDIT_ENTRIES: i64 = 500;
/// Characters in the name of a user, token or passkey.
pub const MAX_NAME_CHARS: usize = 100;

pub(super) const fn days(days: u32) -> i64 {
    days as i64 * DAY
}
