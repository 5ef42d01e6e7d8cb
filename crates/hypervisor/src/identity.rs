//! Users and their credentials: sessions, sign-in links, passkeys, recovery codes, tokens, invitations, and the audit
//! trail of all of these, in `hypervisor.sqlite`.
//!
//! The database is separate from every user's event log: signing in is not an event of a computer, and restoring a
//! computer does not bring back old sessions. It stores hashes of secrets, never the secrets. This module knows nothing
//! of HTTP; the client's address and browser are passed in as display text.

mod audit;
mod error;
mod invitations;
pub mod limits;
mod links;
mod passkeys;
mod recovery;
mod schema;
mod secret;
mod sessions;
mod tokens;
mod users;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use shared_types::Timestamp;
use tokio::sync::watch;

pub(crate) use audit::AuditAction;
pub use error::{IdentityError, OpenError};
pub use invitations::NewInvitation;
pub use passkeys::StoredPasskey;
pub use secret::RandomSecret;
pub use sessions::{NewSession, VerifiedSession};
pub use shared_types::wire::Invitation;
pub use tokens::VerifiedToken;
pub use users::User;
pub(crate) use users::check_name;

/// The source of the current time. Tests replace it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The client behind a request, as display text for the audit trail and the list of sessions.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    pub address: String,
    pub browser: String,
}

/// The identity store. Clones share one connection; every call is short.
#[derive(Clone)]
pub struct IdentityStore {
    connection: Arc<Mutex<Connection>>,
    /// Serialises argon2, which takes 19 MB per hash.
    hashing: Arc<Mutex<()>>,
    clock: Clock,
    /// Counts revocations, so that open connections check their credential again.
    revocations: Arc<watch::Sender<u64>>,
}

impl std::fmt::Debug for IdentityStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityStore").finish_non_exhaustive()
    }
}

impl IdentityStore {
    /// Opens the store in a folder. A missing folder is created, accessible to this system user only.
    pub fn open(data: &Path, clock: Clock) -> Result<Self, OpenError> {
        let connection = schema::open(data)?;
        let identity = Self {
            connection: Arc::new(Mutex::new(connection)),
            hashing: Arc::default(),
            clock,
            revocations: Arc::new(watch::Sender::new(0)),
        };
        identity.delete_expired().map_err(OpenError::DeleteExpired)?;
        Ok(identity)
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    /// Changes whenever a session or a token is revoked. Long-lived connections then check their credential again.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.revocations.subscribe()
    }

    fn notify_revocation(&self) {
        self.revocations.send_modify(|count| *count += 1);
    }

    /// Deletes expired links, invitations, tokens and sessions.
    pub fn delete_expired(&self) -> Result<(), IdentityError> {
        let now = self.now().millis();
        self.write(|tx| {
            tx.execute("DELETE FROM links WHERE expires <= ?1", [now])?;
            tx.execute("DELETE FROM invitations WHERE expires <= ?1", [now])?;
            tx.execute("DELETE FROM tokens WHERE expires <= ?1", [now])?;
            tx.execute(
                "DELETE FROM sessions WHERE seen <= ?1 OR created <= ?2",
                [now - limits::SESSION_IDLE_TIMEOUT, now - limits::SESSION_MAX_AGE],
            )?;
            Ok(())
        })
    }

    fn read<T>(&self, f: impl FnOnce(&Connection) -> Result<T, IdentityError>) -> Result<T, IdentityError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        f(&connection)
    }

    /// Runs a read transaction, for modules that share the database.
    pub(crate) fn read_transaction<T, E>(&self, f: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E>
    where
        E: From<rusqlite::Error>,
    {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // A transaction gives all reads the same snapshot while another process writes.
        let tx = connection.transaction()?;
        f(&tx)
    }

    /// Runs a write transaction: a change and its audit entry are committed together.
    fn write<T>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, IdentityError>,
    ) -> Result<T, IdentityError> {
        self.write_transaction(f)
    }

    /// Runs a write transaction, for modules that share the database.
    pub(crate) fn write_transaction<T, E>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, E>,
    ) -> Result<T, E>
    where
        E: From<rusqlite::Error>,
    {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = f(&tx)?;
        tx.commit()?;
        Ok(value)
    }

    /// Truncates the write-ahead log with a WAL checkpoint, unless another process is reading it.
    pub(crate) fn truncate_wal(&self) {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::info!(%error, "could not truncate the write-ahead log");
        }
    }
}
