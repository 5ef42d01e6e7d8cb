//! The conformance suite for every backend of this crate, and the test logs that other tests use.

use std::path::PathBuf;
use std::sync::Arc;

use event_log::conformance::Harness;
use event_log::{EventLog, MemoryLog, SqliteLog};
use shared_types::UserId;
use tempfile::TempDir;

pub(crate) fn user() -> UserId {
    UserId::parse("tester").unwrap()
}

pub(crate) struct InMemory(Arc<MemoryLog>);

impl InMemory {
    pub(crate) fn new() -> Self {
        Self(Arc::new(MemoryLog::new(user())))
    }
}

impl Harness for InMemory {
    fn log(&self) -> Arc<dyn EventLog> {
        Arc::clone(&self.0) as _
    }

    fn reopen(&mut self) {}
}

pub(crate) struct OnDisk {
    log: Option<Arc<SqliteLog>>,
    folder: TempDir,
}

impl OnDisk {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let log = SqliteLog::create(&folder.path().join(".choir"), user()).unwrap();
        Self { log: Some(Arc::new(log)), folder }
    }

    /// The `.choir` folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join(".choir")
    }

    pub(crate) fn close(&mut self) {
        let log = self.log.take().map(Arc::try_unwrap);
        assert!(log.is_none_or(|log| log.is_ok()), "another handle still holds the log");
    }
}

impl Harness for OnDisk {
    fn log(&self) -> Arc<dyn EventLog> {
        Arc::clone(self.log.as_ref().unwrap()) as _
    }

    fn reopen(&mut self) {
        self.close();
        self.log = Some(Arc::new(SqliteLog::open(&self.path()).unwrap()));
    }
}

mod memory {
    event_log::conformance_tests!(super::InMemory::new());
}

mod sqlite {
    event_log::conformance_tests!(super::OnDisk::new());
}
