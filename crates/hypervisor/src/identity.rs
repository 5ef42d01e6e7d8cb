//! Who there is and how they prove it: users, sessions, links, passkeys, recovery codes, tokens, invitations, and
//! the audit trail of all of these, in `hypervisor.sqlite`.
//!
//! This file stands outside of every user's log: signing in is no event of a computer, and a restored computer does
//! not bring old sessions back. No secret is in it, only what a secret can be compared with. It knows nothing of
//! HTTP; the address and the browser come in as words for the lists that people read.

mod audit;
mod error;
mod invitations;
mod links;
mod passkeys;
mod recovery;
mod schema;
mod secret;
mod sessions;
pub mod spans;
mod tokens;
mod users;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, Transaction, TransactionBehavior};
use shared_types::Timestamp;
use tokio::sync::watch;

pub(crate) use audit::What;
pub use error::{IdentityError, OpenError};
pub use invitations::NewInvitation;
pub use passkeys::StoredPasskey;
pub use secret::Secret;
pub use sessions::{Holder, NewSession};
pub use shared_types::wire::Invitation;
pub use tokens::Bearer;
pub use users::User;
pub(crate) use users::name as checked_name;

/// Where the time comes from. Tests move it.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// From where something is asked, in words for the audit trail and the list of sessions.
#[derive(Debug, Clone, Default)]
pub struct Caller {
    pub address: String,
    pub browser: String,
}

/// The store. Clones share one connection; every call is short.
#[derive(Clone)]
pub struct Identity {
    connection: Arc<Mutex<Connection>>,
    /// Hashing a recovery code takes 19 MB: one at a time.
    hashing: Arc<Mutex<()>>,
    clock: Clock,
    /// Counts what was taken back, so that open connections know when to look again.
    revocations: Arc<watch::Sender<u64>>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    /// Opens the store in a folder, which is made if it is missing and is the owner's alone.
    pub fn open(data: &Path, clock: Clock) -> Result<Self, OpenError> {
        let connection = schema::open(data)?;
        let identity = Self {
            connection: Arc::new(Mutex::new(connection)),
            hashing: Arc::default(),
            clock,
            revocations: Arc::new(watch::Sender::new(0)),
        };
        identity.sweep().map_err(OpenError::Sweep)?;
        Ok(identity)
    }

    pub fn now(&self) -> Timestamp {
        (self.clock)()
    }

    pub fn clock(&self) -> Clock {
        Arc::clone(&self.clock)
    }

    /// Changes whenever a session or a token was taken back. A connection that lives on after its request looks
    /// again then whether its holder still holds.
    pub fn revocations(&self) -> watch::Receiver<u64> {
        self.revocations.subscribe()
    }

    fn revoked(&self) {
        self.revocations.send_modify(|count| *count += 1);
    }

    /// Forgets what has run out.
    pub fn sweep(&self) -> Result<(), IdentityError> {
        let now = self.now().millis();
        self.write(|tx| {
            tx.execute("DELETE FROM links WHERE expires <= ?1", [now])?;
            tx.execute("DELETE FROM invitations WHERE expires <= ?1", [now])?;
            tx.execute("DELETE FROM tokens WHERE expires <= ?1", [now])?;
            tx.execute(
                "DELETE FROM sessions WHERE seen <= ?1 OR created <= ?2",
                [now - spans::SESSION_IDLE, now - spans::SESSION_AT_MOST],
            )?;
            Ok(())
        })
    }

    fn read<T>(&self, f: impl FnOnce(&Connection) -> Result<T, IdentityError>) -> Result<T, IdentityError> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        f(&connection)
    }

    /// Reads, for others who keep something in the same store.
    pub(crate) fn consult<T, E>(&self, f: impl FnOnce(&Connection) -> Result<T, E>) -> Result<T, E>
    where
        E: From<rusqlite::Error>,
    {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // One moment for all that is read, also beside another process that writes.
        let tx = connection.transaction()?;
        f(&tx)
    }

    /// Runs a transaction: all of it, with its audit line, or nothing.
    fn write<T>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> Result<T, IdentityError>,
    ) -> Result<T, IdentityError> {
        self.transact(f)
    }

    /// The same for others who keep something in the store.
    pub(crate) fn transact<T, E>(&self, f: impl FnOnce(&Transaction<'_>) -> Result<T, E>) -> Result<T, E>
    where
        E: From<rusqlite::Error>,
    {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let value = f(&tx)?;
        tx.commit()?;
        Ok(value)
    }

    /// Empties the write-ahead log, where nobody else reads it just now.
    pub(crate) fn forget_written(&self) {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
            tracing::info!(%error, "the write-ahead log was not emptied");
        }
    }
}
