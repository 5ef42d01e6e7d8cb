//! The local model with small test weights and scripted child processes.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

#[test]
fn the_process_reads_as_much_as_the_catalog_says() {
    let data = tempfile::tempdir().unwrap();
    let built_in = Catalog::load(None).unwrap();
    let said = built_in.models["local"].context;
    let own = Catalog::load(Some(&"model.local.context = 5000".parse().unwrap())).unwrap();
    for (catalog, context) in [(built_in, said), (own, 5000)] {
        let local = MachineModel::new(data.path(), &catalog);
        assert_eq!(local.runner.options().context as u64, context);
    }
}

/// A child process that reports ready, and the task that answers in its place.
struct Child {
    folder: tempfile::TempDir,
    port: u16,
    /// How often its speed was measured.
    asked: Arc<AtomicUsize>,
}

impl Child {
    /// Its answer to a measurement of the speed.
    fn saying(speed: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<AtomicUsize> = Arc::default();
        let count = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                let length = stream.read(&mut request).unwrap();
                assert!(request[..length].starts_with(b"POST /speed "));
                count.fetch_add(1, Ordering::SeqCst);
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    speed.len()
                );
                stream.write_all(format!("{head}{speed}").as_bytes()).unwrap();
            }
        });
        Self { folder, port, asked }
    }

    /// A process with such a child; every call starts another.
    fn local(&self) -> MachineModel {
        let program = self.folder.path().join("child.sh");
        let script = format!(
            "#!/bin/sh\nread -r _\necho '{{\"ready\":{{\"port\":{}}}}}'\ncat > /dev/null\n",
            self.port
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let manifest =
            WeightsManifest { file: "small.gguf".into(), bytes: 1, ..WeightsManifest::qwen_coder() };
        let store = WeightsStore::new(self.folder.path().join("weights"));
        std::fs::create_dir_all(self.folder.path().join("weights")).unwrap();
        std::fs::write(store.path(&manifest), "w").unwrap();
        let runner = LocalModelRunner::with_program(program, RunnerOptions::new(store.path(&manifest), 100));
        MachineModel::of(manifest, store, runner)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn weights_that_were_brought_by_hand_are_measured_once_before_the_first_answer() {
    let child = Child::saying(r#"{"prefill":21.5,"decode":3.25}"#);
    let local = child.local();
    assert_eq!(local.line().speed, None);
    assert_eq!(child.asked(), 0, "nothing is started to look at it");
    local.endpoint().await.unwrap();
    assert_eq!(local.line().speed, Some((2150, 325)));
    assert_eq!(local.status(), LocalModelStatus::Running { tokens_per_second: Some(3.25) });
    local.endpoint().await.unwrap();
    let later = child.local();
    assert_eq!(later.line().speed, Some((2150, 325)), "it is kept beside the weights");
    later.endpoint().await.unwrap();
    assert_eq!(child.asked(), 1);
}

#[tokio::test]
async fn a_speed_that_cannot_be_kept_is_known_for_as_long_as_the_process_lives() {
    let child = Child::saying(r#"{"prefill":21.5,"decode":3.25}"#);
    let local = child.local();
    // A folder with the name of the file, so that the file cannot be written, not even by root.
    std::fs::create_dir_all(child.folder.path().join("weights/small.gguf.speed.json/in-the-way")).unwrap();
    local.endpoint().await.unwrap();
    local.endpoint().await.unwrap();
    assert_eq!((local.line().speed, child.asked()), (Some((2150, 325)), 1));
}

#[tokio::test]
async fn a_model_that_cannot_be_measured_answers_all_the_same() {
    let child = Child::saying("no idea");
    let local = child.local();
    for _ in 0..2 {
        local.endpoint().await.unwrap();
    }
    assert_eq!((local.line().speed, child.asked()), (None, 1), "it is tried once");
}

#[tokio::test]
async fn a_declined_download_stays_declined_in_every_process_until_it_is_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let local = || {
        let manifest = WeightsManifest { sources: Vec::new(), ..WeightsManifest::qwen_coder() };
        let store = WeightsStore::new(folder.path());
        let runner = LocalModelRunner::with_program(
            "/no/such/program",
            RunnerOptions::new(store.path(&manifest), 100),
        );
        MachineModel::of(manifest, store, runner)
    };
    let first = local();
    assert_eq!(first.status(), LocalModelStatus::Absent { bytes: first.manifest.bytes });
    first.decline().unwrap();
    for each in [first, local()] {
        let line = each.line();
        assert_eq!((each.status(), line.declined, line.ready), (LocalModelStatus::Declined, true, false));
        assert!(line.problem.unwrap().contains("choir models fetch"));
    }
    let asked = local();
    asked.fetch();
    let ended = async {
        while matches!(asked.status(), LocalModelStatus::Fetching { .. }) {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), ended).await.unwrap();
    assert!(
        matches!(asked.status(), LocalModelStatus::Failed { .. }),
        "there is no source: {:?}",
        asked.status()
    );
    assert!(!asked.line().declined && local().is_offered(), "a fetch ends the refusal");
    asked.decline().unwrap();
    assert_eq!(asked.status(), LocalModelStatus::Declined, "also after a failure");
}
