//! WAL checkpoints on a thread of their own: it moves the write-ahead log into the database, so that no append waits.
//!
//! Most pages are moved while the writer appends. A write-ahead log starts over only when all of it has been moved, so
//! the last pages are moved with the writer locked for a moment. If the thread does not keep up, the writer moves the
//! pages itself, as SQLite does by default.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::append::Writer;
use super::connection::open_writer;

/// A WAL checkpoint starts at this many pages: 16 MB keep its flushes rare.
const PAGES: i32 = 4000;
/// At this many pages the thread does not keep up.
const TOO_MANY: i32 = 4 * PAGES;

/// The thread. Dropping this ends it.
#[derive(Debug)]
pub(super) struct WalCheckpointer {
    wake_up: Arc<WakeUp>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct WakeUp {
    state: Mutex<WakeState>,
    requested: Condvar,
}

#[derive(Debug, Default)]
struct WakeState {
    requested: bool,
    closed: bool,
}

impl WalCheckpointer {
    /// Starts the thread for a connection that is about to become the writer's.
    pub(super) fn start(
        path: PathBuf,
        mut conn: Connection,
        writer: impl FnOnce(Connection) -> Writer,
    ) -> rusqlite::Result<(Self, Arc<Mutex<Writer>>)> {
        let wake_up = Arc::new(WakeUp::default());
        let same = Arc::clone(&wake_up);
        conn.wal_hook(Some(move |wal: &mut Wal, pages| {
            if pages >= TOO_MANY {
                // As with SQLite's own hook, a failure here does not affect the commit.
                let _ = wal.checkpoint();
            } else if pages >= PAGES {
                same.request();
            }
            Ok(())
        }))?;
        let writer = Arc::new(Mutex::new(writer(conn)));
        let (same, of_thread) = (Arc::clone(&wake_up), Arc::clone(&writer));
        let thread =
            Builder::new().name("checkpointer".into()).spawn(move || same.serve(&path, &of_thread)).ok();
        Ok((Self { wake_up, thread }, writer))
    }
}

impl WakeUp {
    fn lock(&self) -> MutexGuard<'_, WakeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self) {
        self.lock().requested = true;
        self.requested.notify_one();
    }

    /// Waits for the next call of `request`. False when the thread should end.
    fn wait(&self) -> bool {
        let silent = |state: &mut WakeState| !state.requested && !state.closed;
        !self.requested.wait_while(self.lock(), silent).unwrap_or_else(PoisonError::into_inner).closed
    }

    fn serve(&self, path: &std::path::Path, writer: &Mutex<Writer>) {
        let mut kept = None;
        while self.wait() {
            // A failure is retried at the next request.
            let conn = kept.take().map_or_else(|| open_writer(path), Ok);
            let moved = conn.and_then(|conn| {
                move_pages(&conn)?;
                let _held = writer.lock().unwrap_or_else(PoisonError::into_inner);
                move_pages(&conn).map(|()| conn)
            });
            kept = moved.ok();
            // Requests since then counted pages that are moved now.
            self.lock().requested = false;
        }
    }
}

fn move_pages(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

impl Drop for WalCheckpointer {
    fn drop(&mut self) {
        self.wake_up.lock().closed = true;
        self.wake_up.requested.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
