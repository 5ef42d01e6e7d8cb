//! What a server leaves behind when it is ended: nothing, whenever that is.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::{Launched, Program, Secrets, Settings};

const A_WHILE: Duration = Duration::from_millis(200);

/// Counts programs that were begun and programs that are gone. They take a while for both, and say nothing.
#[derive(Default)]
struct House {
    begun: AtomicU32,
    ready: AtomicU32,
    gone: Arc<AtomicU32>,
}

struct Guest {
    gone: Arc<AtomicU32>,
    _theirs: UnixStream,
}

impl Drop for Guest {
    fn drop(&mut self) {
        std::thread::sleep(A_WHILE);
        self.gone.fetch_add(1, Ordering::SeqCst);
    }
}

impl Launch for House {
    fn launch(&self, _: &str, _: &Program, _: Secrets) -> io::Result<Launched> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(A_WHILE);
        let (stream, _theirs) = UnixStream::pair()?;
        self.ready.fetch_add(1, Ordering::SeqCst);
        let guard = Box::new(Guest { gone: Arc::clone(&self.gone), _theirs });
        Ok(Launched { stream, complaints: Arc::new(String::new), is_confined: Arc::new(|| true), guard })
    }
}

fn server(house: &Arc<House>) -> Arc<Server> {
    let table: toml::Table = "[notes]\ncommand = [\"notes\"]".parse().unwrap();
    let settings = Settings::parse(&table, &[]).unwrap().servers.remove("notes").unwrap();
    let launch = Arc::clone(house) as Arc<dyn Launch>;
    Arc::new(Server::new("notes".into(), settings, launch, Arc::new(|_| None), "nowhere".into()))
}

async fn until(count: &AtomicU32) {
    while count.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn ending_a_server_waits_for_a_program_that_is_just_being_started() {
    let house = Arc::new(House::default());
    let server = server(&house);
    let starting = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.reach().await }
    });
    until(&house.begun).await;
    server.end().await;
    assert_eq!(house.gone.load(Ordering::SeqCst), 1);
    starting.await.unwrap();
    server.reach().await;
    assert_eq!(house.begun.load(Ordering::SeqCst), 1, "what was ended is not started again");
}

#[tokio::test]
async fn ending_a_server_waits_for_a_program_that_has_not_answered_yet() {
    let house = Arc::new(House::default());
    let server = server(&house);
    let starting = tokio::spawn({
        let server = Arc::clone(&server);
        async move { server.reach().await }
    });
    until(&house.ready).await;
    server.end().await;
    assert_eq!(house.gone.load(Ordering::SeqCst), 1);
    starting.await.unwrap();
}
