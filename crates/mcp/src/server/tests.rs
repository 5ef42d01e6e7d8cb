//! Ending a server leaves no program behind, at any moment.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::{LaunchedProgram, Program, Secrets, Settings};

const A_WHILE: Duration = Duration::from_millis(200);

/// Counts programs that were started and that have ended. Both take a while, and the programs send nothing.
#[derive(Default)]
struct FakeLauncher {
    started: AtomicU32,
    ready: AtomicU32,
    ended: Arc<AtomicU32>,
}

struct FakeProgram {
    ended: Arc<AtomicU32>,
    _theirs: UnixStream,
}

impl Drop for FakeProgram {
    fn drop(&mut self) {
        std::thread::sleep(A_WHILE);
        self.ended.fetch_add(1, Ordering::SeqCst);
    }
}

impl Launch for FakeLauncher {
    fn launch(&self, _: &str, _: &Program, _: Secrets) -> io::Result<LaunchedProgram> {
        self.started.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(A_WHILE);
        let (stream, _theirs) = UnixStream::pair()?;
        self.ready.fetch_add(1, Ordering::SeqCst);
        let guard = Box::new(FakeProgram { ended: Arc::clone(&self.ended), _theirs });
        Ok(LaunchedProgram {
            stream,
            stderr_tail: Arc::new(String::new),
            is_confined: Arc::new(|| true),
            guard,
        })
    }
}

fn server(launcher: &Arc<FakeLauncher>) -> Arc<Server> {
    let table: toml::Table = "[notes]\ncommand = [\"notes\"]".parse().unwrap();
    let settings = Settings::parse(&table, &[]).unwrap().servers.remove("notes").unwrap();
    let launch = Arc::clone(launcher) as Arc<dyn Launch>;
    Arc::new(Server::new("notes".into(), settings, launch, Arc::new(|_| None), "nowhere".into()))
}

async fn until(count: &AtomicU32) {
    while count.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn ending_a_server_waits_for_a_program_that_is_starting() {
    let launcher = Arc::new(FakeLauncher::default());
    let server = server(&launcher);
    let starting = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.ensure_started().await }
    });
    until(&launcher.started).await;
    server.end().await;
    assert_eq!(launcher.ended.load(Ordering::SeqCst), 1);
    starting.await.unwrap();
    server.ensure_started().await;
    assert_eq!(launcher.started.load(Ordering::SeqCst), 1, "what was ended is not started again");
}

#[tokio::test]
async fn ending_a_server_waits_for_a_program_that_has_not_answered_yet() {
    let launcher = Arc::new(FakeLauncher::default());
    let server = server(&launcher);
    let starting = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.ensure_started().await }
    });
    until(&launcher.ready).await;
    server.end().await;
    assert_eq!(launcher.ended.load(Ordering::SeqCst), 1);
    starting.await.unwrap();
}
