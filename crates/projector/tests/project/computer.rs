//! A test computer in a temporary folder: log, writer and projector, with ids and times from a counter.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread::JoinHandle;

use event_log::writer::{ChangeRequest, Mode, Options, Origin, Outcome, Submission, SubmitError, Writer};
use event_log::{Append, EventLog, SqliteLog};
use kernel::{Action, Base, Resolutions, View};
use projector::{CaptureIds, Captured, CaughtUp, Extent, ProgressPhase, Projector, Views};
use rusqlite::Connection;
use rusqlite::types::Value;
use shared_types::payload::file::FileNode;
use shared_types::{
    Actor, CommandId, ContentHash, ContentRef, EffectId, Event, EventId, FilePath, OpId, Payload, RootHash,
    RunId, Seq, Source, Timestamp, UserId,
};
use tempfile::TempDir;

/// Ids and times come from one counter, so that they are unique and in order.
static COUNTER: AtomicI64 = AtomicI64::new(1);

fn count() -> (Timestamp, [u8; 10]) {
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let mut bits = [0; 10];
    bits[..8].copy_from_slice(&number.to_be_bytes());
    (Timestamp::from_millis(1_700_000_000_000 + number), bits)
}

pub(crate) fn new_op() -> OpId {
    let (at, bits) = count();
    OpId::mint(at, bits)
}

pub(crate) fn new_effect() -> EffectId {
    let (at, bits) = count();
    EffectId::mint(at, bits)
}

fn new_command() -> CommandId {
    let (at, bits) = count();
    CommandId::mint(at, bits)
}

pub(crate) fn at(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

pub(crate) fn quietly(_: ProgressPhase, _: u64, _: u64) {}

/// The parts that are open while the computer runs.
struct Running {
    projector: Projector,
    writer: Writer,
    log: Arc<SqliteLog>,
    thread: JoinHandle<()>,
}

pub(crate) struct Computer {
    base: TempDir,
    running: Option<Running>,
}

impl Computer {
    /// A computer in memory, where a flush costs nothing, or where `CHOIR_TEST_FOLDER` says.
    pub(crate) fn new() -> Self {
        let wanted = std::env::var_os("CHOIR_TEST_FOLDER").map(PathBuf::from);
        let memory = Some(PathBuf::from("/dev/shm")).filter(|folder| folder.is_dir());
        Self::in_folder(&wanted.or(memory).unwrap_or_else(std::env::temp_dir))
    }

    pub(crate) fn in_folder(folder: &Path) -> Self {
        let base = tempfile::Builder::new().prefix("choir-project-").tempdir_in(folder).unwrap();
        let (workspace, state) = (base.path().join("workspace"), base.path().join("state"));
        fs::create_dir_all(&workspace).unwrap();
        drop(SqliteLog::create(&state, UserId::parse("tester").unwrap()).unwrap());
        let mut computer = Self { base, running: None };
        computer.start();
        computer
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.path().join("workspace")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.base.path().join("state")
    }

    pub(crate) fn start(&mut self) {
        assert!(self.running.is_none());
        let log = Arc::new(SqliteLog::open(&self.state()).unwrap());
        let options = Options::new(|| count().0);
        let (writer, thread) = Writer::start(Arc::clone(&log) as Arc<dyn EventLog>, options).unwrap();
        let mint = Box::new(|| CaptureIds { command: new_command(), op: new_op() });
        let shared = Arc::clone(&log) as Arc<dyn EventLog>;
        let projector =
            Projector::open(shared, writer.clone(), &self.state(), &self.workspace(), mint).unwrap();
        self.running = Some(Running { projector, writer, log, thread });
    }

    /// Stops everything without another step of the projector.
    pub(crate) fn stop(&mut self) {
        let Running { projector, writer, log, thread } = self.running.take().unwrap();
        drop((projector, writer));
        thread.join().unwrap();
        drop(log);
    }

    pub(crate) fn restart(&mut self) {
        self.stop();
        self.start();
    }

    fn running(&self) -> &Running {
        self.running.as_ref().unwrap()
    }

    pub(crate) fn projector(&self) -> &Projector {
        &self.running().projector
    }

    pub(crate) fn log(&self) -> &SqliteLog {
        &self.running().log
    }

    pub(crate) fn views(&self) -> &Views {
        self.projector().views()
    }

    pub(crate) fn head(&self) -> Seq {
        self.log().head().seq
    }

    pub(crate) fn submit(
        &self,
        change: ChangeRequest,
        contents: &[&[u8]],
    ) -> Result<(OpId, Outcome), SubmitError> {
        self.submit_as(Source::User, change, contents)
    }

    pub(crate) fn submit_as(
        &self,
        source: Source,
        change: ChangeRequest,
        contents: &[&[u8]],
    ) -> Result<(OpId, Outcome), SubmitError> {
        let op = new_op();
        self.submit_in(op, source, change, contents).map(|outcome| (op, outcome))
    }

    /// Submits as a part of a new or an existing operation.
    pub(crate) fn submit_in(
        &self,
        op: OpId,
        source: Source,
        change: ChangeRequest,
        contents: &[&[u8]],
    ) -> Result<Outcome, SubmitError> {
        self.submit_within(None, op, source, change, contents)
    }

    pub(crate) fn submit_within(
        &self,
        run_id: Option<RunId>,
        op: OpId,
        source: Source,
        change: ChangeRequest,
        contents: &[&[u8]],
    ) -> Result<Outcome, SubmitError> {
        let submission = self.submission(run_id, op, source, change, contents);
        self.running().writer.submit(submission, Mode::Commit)
    }

    fn submission(
        &self,
        run_id: Option<RunId>,
        op: OpId,
        source: Source,
        change: ChangeRequest,
        contents: &[&[u8]],
    ) -> Submission {
        Submission::new(
            Origin { run_id, ..Origin::new(new_command(), op, source, Actor::CLI) },
            change,
            contents.iter().map(|bytes| (ContentHash::of(bytes), bytes.to_vec())).collect(),
        )
    }

    pub(crate) fn act(&self, action: Action) -> OpId {
        self.submit(ChangeRequest::Do(action), &[]).unwrap().0
    }

    /// Appends an event that no command makes any more, as an older version recorded it.
    pub(crate) fn record(&self, payload: impl Into<Payload>, contents: &[&[u8]]) -> OpId {
        let (ts, bits) = count();
        let (op, expected) = (new_op(), self.head());
        let event = Event {
            seq: expected.next(),
            id: EventId::mint(ts, bits),
            ts,
            source: Source::User,
            op,
            actor: Actor::CLI,
            run_id: None,
            cause: None,
            taint: Vec::new(),
            payload: payload.into(),
        };
        let contents = contents.iter().map(|bytes| (ContentHash::of(bytes), bytes.to_vec())).collect();
        let append = Append { command: new_command(), expected, events: vec![event], contents };
        self.log().append(&[append]).remove(0).unwrap();
        self.reload_writer();
        op
    }

    /// Makes the writer read events that were appended without it: it does so when it decides something.
    fn reload_writer(&self) {
        let action = Action::SetSetting { key: "unused".into(), value: 1.into() };
        let submission = self.submission(None, new_op(), Source::User, ChangeRequest::Do(action), &[]);
        let _ = self.running().writer.submit(submission, Mode::Preview).unwrap();
    }

    /// The view of everything that the log holds.
    pub(crate) fn view(&self) -> View {
        event_log::replay::view_at(self.log(), self.head()).unwrap()
    }

    /// Writes a file through the log; the disk follows later.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) -> OpId {
        let bytes = text.as_ref();
        let staged = self.log().stage(&mut &bytes[..]).unwrap();
        let node = FileNode::file(staged.content(), 0o644);
        let inline = staged.into_inline();
        let contents: Vec<&[u8]> = inline.iter().map(|(_, bytes)| bytes.as_slice()).collect();
        let action = Action::WriteFile { path: at(path), node, base: Base::Any };
        self.submit(ChangeRequest::Do(action), &contents).unwrap().0
    }

    pub(crate) fn place(&self, path: &str, node: FileNode) -> OpId {
        self.act(Action::WriteFile { path: at(path), node, base: Base::Any })
    }

    pub(crate) fn delete(&self, path: &str) -> OpId {
        self.act(Action::DeletePaths { paths: vec![at(path)] })
    }

    pub(crate) fn rename(&self, from: &str, to: &str) -> OpId {
        self.act(Action::MovePaths { moves: vec![(at(from), at(to))] })
    }

    pub(crate) fn undo(&self, target: OpId) -> OpId {
        self.submit(ChangeRequest::Undo { target, resolutions: Resolutions::default() }, &[]).unwrap().0
    }

    /// Purges bytes as the command line does: request, delete, record.
    pub(crate) fn purge(&self, text: impl AsRef<[u8]>) {
        let hashes = vec![ContentHash::of(text.as_ref())];
        let effect = new_effect();
        self.act(Action::RequestPurge { effect, hashes: hashes.clone(), reason: "a secret".into() });
        let dropped = self.log().purge(&hashes).unwrap();
        self.act(Action::RecordPurge { effect, dropped });
    }

    /// Deletes bytes without a record, as damage would.
    pub(crate) fn log_purge(&self, hashes: &[ContentHash]) {
        assert_eq!(self.log().purge(hashes).unwrap(), hashes.len() as u64);
    }

    pub(crate) fn capture(&self) -> Captured {
        self.projector().capture(&Extent::Everything, &quietly).unwrap()
    }

    pub(crate) fn capture_paths(&self, paths: &[&str]) -> Captured {
        let paths = paths.iter().map(|path| at(path)).collect();
        self.projector().capture(&Extent::Paths(paths), &quietly).unwrap()
    }

    /// Stops the projector at its n-th step on the disk, as a crash would. False if there are fewer steps.
    pub(crate) fn catch_up_until(&self, step: usize) -> bool {
        let steps = Cell::new(0);
        let stopping = |phase, _, _| {
            if matches!(phase, ProgressPhase::Writing | ProgressPhase::Syncing) {
                steps.set(steps.get() + 1);
                if steps.get() > step {
                    resume_unwind(Box::new("stopped"));
                }
            }
        };
        catch_unwind(AssertUnwindSafe(|| self.projector().catch_up(&stopping).unwrap())).is_err()
    }

    /// Catches up, and calls `work` before the n-th file is written, if there are that many.
    pub(crate) fn while_writing(&self, step: usize, work: &dyn Fn()) -> CaughtUp {
        let steps = Cell::new(0);
        let working = |phase, _, _| {
            if phase == ProgressPhase::Writing {
                steps.set(steps.get() + 1);
                if steps.get() == step {
                    work();
                }
            }
        };
        self.projector().catch_up(&working).unwrap()
    }

    pub(crate) fn catch_up(&self) -> CaughtUp {
        self.projector().catch_up(&quietly).unwrap()
    }

    /// Everything that a command of the person does around its own change.
    pub(crate) fn settle(&self) {
        self.capture();
        self.catch_up();
        assert_eq!(self.projector().lag().unwrap().events(), 0);
    }

    /// Deletes the read models, as a curious user might.
    pub(crate) fn forget_views(&self) {
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(self.state().join(format!("{}{suffix}", Views::FILE)));
        }
    }

    /// A copy of the read models as they are now, to be put back later.
    pub(crate) fn copy_views(&self) -> Vec<u8> {
        let copy = self.base.path().join("copy.sqlite");
        let conn = Connection::open(self.state().join(Views::FILE)).unwrap();
        conn.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        let bytes = fs::read(&copy).unwrap();
        fs::remove_file(copy).unwrap();
        bytes
    }

    pub(crate) fn put_back_views(&self, copy: &[u8]) {
        self.forget_views();
        fs::write(self.state().join(Views::FILE), copy).unwrap();
    }

    /// The node that the log has at every path.
    pub(crate) fn nodes(&self) -> BTreeMap<FilePath, FileNode> {
        let look = |view: &mut kernel::View| {
            view.files.iter().map(|(path, node)| (path.clone(), node.clone())).collect()
        };
        self.running().writer.inspect(look).unwrap()
    }

    pub(crate) fn root(&self) -> RootHash {
        self.running().writer.inspect(|view| view.root()).unwrap()
    }

    /// The text that the log has at a path.
    pub(crate) fn logged(&self, path: &str) -> Option<String> {
        let content = self.nodes().get(&at(path))?.content()?;
        let bytes = event_log::read_content(self.log(), &content.hash).unwrap();
        Some(String::from_utf8(bytes).unwrap())
    }

    /// Whether the log stores these bytes.
    pub(crate) fn holds(&self, bytes: &[u8]) -> bool {
        self.log().has_content(&ContentHash::of(bytes)).unwrap()
    }

    pub(crate) fn on_disk(&self, path: &str) -> PathBuf {
        self.workspace().join(path)
    }

    /// Writes a file as another program would.
    pub(crate) fn edit(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.on_disk(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.on_disk(path)).ok()
    }

    /// Every file, link and empty folder on disk, as nodes.
    pub(crate) fn disk(&self) -> BTreeMap<FilePath, FileNode> {
        let mut found = BTreeMap::new();
        walk(&self.workspace(), &self.workspace(), &mut found);
        found
    }

    /// The disk holds exactly the files of the log, byte for byte, and the rows equal those of a rebuild.
    #[track_caller]
    pub(crate) fn assert_faithful(&self) {
        let mut expected = self.nodes();
        // A scan does not list a folder that is not empty.
        let paths: Vec<FilePath> = expected.keys().cloned().collect();
        expected.retain(|path, node| {
            *node != FileNode::Folder || !paths.iter().any(|other| other != path && other.is_within(path))
        });
        assert_eq!(self.disk(), expected, "the disk is not what the log says");
        let computed = projector::verify::computed_rows(self.log()).unwrap();
        let difference = projector::verify::first_row_difference(self.views(), &computed).unwrap();
        assert_eq!(difference, None, "the rows are not those of a rebuild");
    }

    /// All rows of all read models, in order.
    pub(crate) fn rows(&self) -> Vec<(&'static str, Vec<Vec<Value>>)> {
        let conn = Connection::open(self.state().join(Views::FILE)).unwrap();
        let table = |(name, columns): &(&'static str, &str)| {
            let mut statement =
                conn.prepare(&format!("SELECT {columns} FROM {name} ORDER BY {columns}")).unwrap();
            let width = statement.column_count();
            let rows = statement.query_map([], |row| (0..width).map(|column| row.get(column)).collect());
            (*name, rows.unwrap().collect::<Result<_, _>>().unwrap())
        };
        projector::READ_MODELS.iter().map(table).collect()
    }
}

fn walk(root: &Path, folder: &Path, found: &mut BTreeMap<FilePath, FileNode>) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = at(path.strip_prefix(root).unwrap().to_str().unwrap());
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_symlink() {
            let target = fs::read_link(&path).unwrap().to_str().unwrap().into();
            found.insert(name, FileNode::Symlink { target });
        } else if meta.is_dir() {
            let before = found.len();
            walk(root, &path, found);
            if found.len() == before {
                found.insert(name, FileNode::Folder);
            }
        } else {
            let content = ContentRef::of(&fs::read(&path).unwrap());
            found.insert(name, FileNode::file(content, (meta.permissions().mode() & 0o777) as u16));
        }
    }
}
