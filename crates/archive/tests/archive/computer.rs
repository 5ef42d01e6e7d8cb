//! A computer to test with: a log on a disk, and its writer.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use archive::{Archive, ImportError, Limits, Manifest, Verified, export};
use event_log::conformance::sample;
use event_log::replay::view_from_nothing;
use event_log::writer::{ChangeRequest, Mode, Options, Origin, Outcome, Submission, SubmitError, Writer};
use event_log::{EventLog, Head, SqliteLog};
use kernel::{Action, Base};
use sha2::{Digest, Sha256};
use shared_types::payload::file::FileNode;
use shared_types::{
    Actor, ContentHash, ContentRef, FilePath, OpId, RootHash, Seq, Source, Timestamp, UserId,
};

pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_763_194_320_000);

pub(crate) fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

pub(crate) fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

pub(crate) fn node(bytes: &[u8]) -> FileNode {
    FileNode::file(ContentRef::of(bytes), FileNode::DEFAULT_MODE)
}

/// A log with its one writer.
pub(crate) struct Computer {
    pub(crate) log: Arc<SqliteLog>,
    writer: Writer,
    thread: std::thread::JoinHandle<()>,
}

impl Computer {
    /// A new computer, with the event that records its creation.
    pub(crate) fn new(state_dir: &Path, name: &str) -> Self {
        let computer = Self::over(SqliteLog::create(state_dir, user(name)).unwrap());
        computer.run(Action::CreateUser { name: name.into() });
        computer
    }

    pub(crate) fn open(state_dir: &Path) -> Self {
        Self::over(SqliteLog::open(state_dir).unwrap())
    }

    fn over(log: SqliteLog) -> Self {
        let log = Arc::new(log);
        let options = Options::new(|| NOW);
        let (writer, thread) = Writer::start(Arc::clone(&log) as _, options).unwrap();
        Self { log, writer, thread }
    }

    pub(crate) fn close(self) {
        drop(self.writer);
        self.thread.join().unwrap();
    }

    pub(crate) fn submit(&self, op: OpId, change: ChangeRequest) -> Result<Outcome, SubmitError> {
        let submission =
            Submission::new(Origin::new(sample::command(), op, Source::User, Actor::CLI), change, Vec::new());
        self.writer.submit(submission, Mode::Commit)
    }

    pub(crate) fn run(&self, action: Action) -> OpId {
        let op = sample::op();
        self.submit(op, ChangeRequest::Do(action)).unwrap();
        op
    }

    /// Stores bytes of any length.
    pub(crate) fn store_bytes(&self, bytes: &[u8]) {
        if let Some(inline) = self.log.stage(&mut &*bytes).unwrap().into_inline() {
            self.log.store(vec![inline]).unwrap();
        }
    }

    pub(crate) fn write(&self, at: &str, bytes: &[u8]) -> OpId {
        self.store_bytes(bytes);
        self.run(Action::WriteFile { path: path(at), node: node(bytes), base: Base::Any })
    }

    pub(crate) fn head(&self) -> Seq {
        self.log.head().seq
    }

    pub(crate) fn log_head(&self) -> Head {
        self.log.head()
    }

    pub(crate) fn root(&self) -> RootHash {
        view_from_nothing(&*self.log, self.head()).unwrap().root()
    }

    /// Every content with its bytes' length, each read and so checked.
    pub(crate) fn contents(&self) -> BTreeMap<ContentHash, u64> {
        let mut found = BTreeMap::new();
        self.log
            .each_content(&mut |hash, size| {
                found.insert(hash, size);
            })
            .unwrap();
        for (hash, size) in &found {
            let read = std::io::copy(&mut self.log.content(hash).unwrap(), &mut std::io::sink()).unwrap();
            assert_eq!(read, *size);
        }
        found
    }

    pub(crate) fn export(&self) -> (Vec<u8>, Manifest) {
        let mut out = Vec::new();
        let manifest = export(&*self.log, self.head(), NOW, &mut out, &|_, _| {}).unwrap();
        (out, manifest)
    }
}

pub(crate) fn verify(archive: &[u8]) -> Result<Verified, ImportError> {
    Archive::verify(archive.to_vec(), Limits::default(), &|_, _| {})
}

/// A computer with most kinds of history: small and large files, an empty one, a link, a batch, an undo, a message, a
/// setting, a purge.
pub(crate) fn with_history(state_dir: &Path) -> Computer {
    let computer = Computer::new(state_dir, "ada");
    computer.write("notes/today.md", b"first\n");
    let second = computer.write("notes/today.md", b"second\n");
    computer.write("empty", b"");
    computer.write("large.bin", &large());
    computer.write("secret.txt", b"a pasted secret");
    let target = "notes/today.md".into();
    computer.run(Action::WriteFile {
        path: path("link"),
        node: FileNode::Symlink { target },
        base: Base::Any,
    });
    computer.run(Action::SetSetting { key: "theme".into(), value: serde_json::json!({"dark": true}) });
    let files = (0..700).map(|n| {
        let bytes = format!("file {n}").into_bytes();
        computer.store_bytes(&bytes);
        (path(&format!("many/{n}")), node(&bytes))
    });
    let origin = shared_types::payload::system::SystemImport {
        user: user("bob"),
        seq: Seq(3),
        hash: shared_types::ChainHash([7; 32]),
        files: 700,
    };
    let files = files.collect();
    computer.run(Action::ImportFiles { origin, files });
    computer
        .submit(sample::op(), ChangeRequest::Undo { target: second, resolutions: Default::default() })
        .unwrap();
    computer.log.purge(&[ContentHash::of(b"a pasted secret")]).unwrap();
    computer
}

pub(crate) fn large() -> Vec<u8> {
    (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Every file below a folder with the hash of its bytes.
pub(crate) fn listing(folder: &Path) -> BTreeMap<String, ContentHash> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().display().to_string();
            if path.is_dir() {
                found.insert(format!("{name}/"), ContentHash::default());
                open.push(path);
            } else {
                let mut bytes = Vec::new();
                std::fs::File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
                found.insert(name, ContentHash(Sha256::digest(&bytes).into()));
            }
        }
    }
    found
}
