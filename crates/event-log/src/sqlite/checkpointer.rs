//! Moving the write-ahead log into the database, on a thread of its own, so that no append waits for it.
//!
//! Most pages are moved while others append. A write-ahead log starts over only when all of it has been moved, so the
//! last few follow with the writer held back for a moment. If the thread does not keep up, the writer moves what there
//! is itself, as SQLite does by default.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use rusqlite::Connection;
use rusqlite::hooks::Wal;

use super::append::Writer;
use super::connection::open_writer;

/// Pages in the write-ahead log that are worth moving: 16 MB keep the flushes rare.
const PAGES: i32 = 4000;
/// So many show that the thread does not keep up.
const TOO_MANY: i32 = 4 * PAGES;

/// The thread; dropping this ends it.
#[derive(Debug)]
pub(super) struct Checkpointer {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Bell {
    state: Mutex<State>,
    rung: Condvar,
}

#[derive(Debug, Default)]
struct State {
    rung: bool,
    closed: bool,
}

impl Checkpointer {
    /// Starts the thread for a connection that is about to become the writer's.
    pub(super) fn start(
        path: PathBuf,
        mut conn: Connection,
        writer: impl FnOnce(Connection) -> Writer,
    ) -> rusqlite::Result<(Self, Arc<Mutex<Writer>>)> {
        let bell = Arc::new(Bell::default());
        let same = Arc::clone(&bell);
        conn.wal_hook(Some(move |wal: &mut Wal, pages| {
            if pages >= TOO_MANY {
                // As with SQLite's own hook, the commit stands whatever becomes of this.
                let _ = wal.checkpoint();
            } else if pages >= PAGES {
                same.ring();
            }
            Ok(())
        }))?;
        let writer = Arc::new(Mutex::new(writer(conn)));
        let (same, of_thread) = (Arc::clone(&bell), Arc::clone(&writer));
        let thread =
            Builder::new().name("checkpointer".into()).spawn(move || same.serve(&path, &of_thread)).ok();
        Ok((Self { bell, thread }, writer))
    }
}

impl Bell {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        self.lock().rung = true;
        self.rung.notify_one();
    }

    /// True when it has rung, false when it will ring no more.
    fn wait(&self) -> bool {
        let silent = |state: &mut State| !state.rung && !state.closed;
        !self.rung.wait_while(self.lock(), silent).unwrap_or_else(PoisonError::into_inner).closed
    }

    fn serve(&self, path: &std::path::Path, writer: &Mutex<Writer>) {
        let mut kept = None;
        while self.wait() {
            // What fails here is tried again at the next ring.
            let conn = kept.take().map_or_else(|| open_writer(path), Ok);
            let moved = conn.and_then(|conn| {
                move_pages(&conn)?;
                let _held = writer.lock().unwrap_or_else(PoisonError::into_inner);
                move_pages(&conn).map(|()| conn)
            });
            kept = moved.ok();
            // Whoever rang meanwhile saw the pages that were moved.
            self.lock().rung = false;
        }
    }
}

fn move_pages(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.bell.lock().closed = true;
        self.bell.rung.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
