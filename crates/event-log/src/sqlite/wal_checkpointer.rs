//! WAL checkpoints on a thread of their own: it moves the write-ahead log into the database, so that no append waits.
//! It is started when the write-ahead log is large for the first time, which in most computers never happens.
//!
//! Most pages are moved while the writer appends. A write-ahead log starts over only when all of it has been moved, so
//! the last pages are moved with the writer locked for a moment. If the thread does not keep up, the writer moves the
//! pages itself, as SQLite does by default.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::append::Writer;
use super::connection::open_writer;

/// A WAL checkpoint starts at this many pages: 16 MB keep its flushes rare.
const PAGES: i32 = 4000;
/// At this many pages the thread does not keep up.
const TOO_MANY: i32 = 4 * PAGES;

/// The thread, if it was needed. Dropping this ends it.
#[derive(Debug)]
pub(super) struct WalCheckpointer(Arc<Checkpointer>);

#[derive(Debug)]
struct Checkpointer {
    path: PathBuf,
    state: Mutex<CheckpointerState>,
    requested: Condvar,
}

#[derive(Debug, Default)]
struct CheckpointerState {
    requested: bool,
    closed: bool,
    writer: Weak<Mutex<Writer>>,
    thread: Option<JoinHandle<()>>,
}

impl WalCheckpointer {
    /// Prepares for a connection that is about to become the writer's.
    pub(super) fn start(
        path: PathBuf,
        mut conn: Connection,
        writer: impl FnOnce(Connection) -> Writer,
    ) -> rusqlite::Result<(Self, Arc<Mutex<Writer>>)> {
        let state = Mutex::new(CheckpointerState::default());
        let checkpointer = Arc::new(Checkpointer { path, state, requested: Condvar::new() });
        let same = Arc::clone(&checkpointer);
        conn.wal_hook(Some(move |wal: &mut Wal, pages| {
            // As with SQLite's own hook, a failure here does not affect the commit.
            if pages >= TOO_MANY || (pages >= PAGES && !same.request()) {
                let _ = wal.checkpoint();
            }
            Ok(())
        }))?;
        let writer = Arc::new(Mutex::new(writer(conn)));
        checkpointer.lock().writer = Arc::downgrade(&writer);
        Ok((Self(checkpointer), writer))
    }
}

impl Checkpointer {
    fn lock(&self) -> MutexGuard<'_, CheckpointerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the thread for a checkpoint, and starts it if there is none. False if it cannot be started.
    fn request(self: &Arc<Self>) -> bool {
        let mut state = self.lock();
        state.requested = true;
        self.requested.notify_one();
        if state.thread.is_none() {
            let (same, writer) = (Arc::clone(self), Weak::clone(&state.writer));
            state.thread = Builder::new().name("wal".into()).spawn(move || same.serve(&writer)).ok();
        }
        state.thread.is_some()
    }

    /// Waits for the next call of `request`. False when the thread should end.
    fn wait(&self) -> bool {
        let silent = |state: &mut CheckpointerState| !state.requested && !state.closed;
        !self.requested.wait_while(self.lock(), silent).unwrap_or_else(PoisonError::into_inner).closed
    }

    fn serve(&self, writer: &Weak<Mutex<Writer>>) {
        let mut kept = None;
        while self.wait() {
            let Some(writer) = writer.upgrade() else { return };
            // A failure is retried at the next request.
            kept = checkpoint(&self.path, kept.take(), &writer).ok();
            // Requests since then counted pages that are moved now.
            self.lock().requested = false;
        }
    }
}

/// Moves all pages and returns the connection for the next time.
fn checkpoint(path: &Path, kept: Option<Connection>, writer: &Mutex<Writer>) -> rusqlite::Result<Connection> {
    let conn = kept.map_or_else(|| open_writer(path), Ok)?;
    move_pages(&conn)?;
    let _held = writer.lock().unwrap_or_else(PoisonError::into_inner);
    move_pages(&conn).map(|()| conn)
}

fn move_pages(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

impl Drop for WalCheckpointer {
    fn drop(&mut self) {
        let thread = {
            let mut state = self.0.lock();
            state.closed = true;
            state.thread.take()
        };
        self.0.requested.notify_one();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}
