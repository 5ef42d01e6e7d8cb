//! The changes of a command, read from its layer: edits for the log, ignored files that are only moved, and notes about
//! what can be neither. The cost depends on the number of changes, not on the size of the workspace.
//!
//! Everything in a layer was written by an untrusted command. It is opened without following links, as
//! the workspace is. What the log cannot store is left out, with a note.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use event_log::{EventLog, decode_event};
use isolation::layer::{self, Entry, EntryKind, Visit};
use kernel::{OutsideEdit, file_effects};
use projector::scan::IgnoreRules;
use projector::workspace::{Observed, ObservedKind, Workspace};
use shared_types::path::link_stays_inside;
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, Event, FilePath, OpId};

use super::git_files;
use super::ignored::IgnoredFileMove;
use super::{CommandStart, Computer};
use crate::error::{ComputerError, ErrorCode};
use crate::paths::STATE;

/// Small contents are stored in the log in batches of this many bytes.
const FLUSH_AT: usize = 8 << 20;

/// The changes of a layer.
#[derive(Debug, Default)]
pub(super) struct LayerChanges {
    pub(super) edits: Vec<OutsideEdit>,
    pub(super) ignored: Vec<IgnoredFileMove>,
    pub(super) notes: Vec<Box<str>>,
    pub(super) contents: Vec<(ContentHash, Vec<u8>)>,
}

/// The files in the log when the command started: the current view with all later changes reverted.
struct LogAtStart {
    now: BTreeMap<FilePath, FileNode>,
    since: BTreeMap<FilePath, Option<FileNode>>,
    /// Folders that are not empty.
    held: BTreeSet<FilePath>,
}

impl LogAtStart {
    fn get(&self, path: &FilePath) -> Option<&FileNode> {
        match self.since.get(path) {
            Some(before) => before.as_ref(),
            None => self.now.get(path),
        }
    }

    /// Nodes at and below a path.
    fn within<'a>(&'a self, path: &'a FilePath) -> impl Iterator<Item = (&'a FilePath, &'a FileNode)> {
        let is_in = move |other: &FilePath| other == path || is_below(other, path);
        let range = |map: &'a BTreeMap<FilePath, FileNode>| {
            map.range(path.clone()..).take_while(move |(p, _)| p.as_str().starts_with(path.as_str()))
        };
        let today = range(&self.now).filter(move |(p, _)| is_in(p) && !self.since.contains_key(*p));
        let before =
            self.since.iter().filter_map(move |(p, node)| Some((p, node.as_ref()?)).filter(|_| is_in(p)));
        today.chain(before)
    }

    /// True if the log has something at or below a path, or had it when the command started.
    fn holds(&self, path: &FilePath) -> bool {
        let mut now =
            self.now.range(path.clone()..).take_while(|(p, _)| p.as_str().starts_with(path.as_str()));
        self.held.contains(path)
            || self.within(path).next().is_some()
            || now.any(|(p, _)| p == path || is_below(p, path))
    }
}

fn is_below(path: &FilePath, folder: &FilePath) -> bool {
    path.as_str().strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'))
}

/// Reads the layer of a call that started at a seq.
pub(super) fn read(
    computer: &Computer,
    call: OpId,
    start: CommandStart,
    captured: Option<OpId>,
    upper: &Path,
) -> Result<LayerChanges, ComputerError> {
    let failed = |e: io::Error| {
        ComputerError::new(ErrorCode::Failed, format!("the command's layer cannot be read: {e}"))
    };
    let mut entries = Vec::new();
    let mut notes = BTreeSet::new();
    layer::walk(upper, &mut |entry: &Entry| {
        if entry.path == Path::new(STATE) {
            // The whiteout that hides the computer's own folder, or a folder of that name that the command made.
            if entry.kind != EntryKind::Whiteout {
                notes
                    .insert(format!("{STATE} is a reserved name; what the command wrote there was left out"));
            }
            return Visit::Skip;
        }
        match FilePath::from_bytes(entry.path.as_os_str().as_bytes()) {
            Ok(path) => {
                entries.push((path, entry.kind));
                Visit::Enter
            }
            Err(e) => {
                notes.insert(format!("{} was left out: {e}", entry.path.display()));
                Visit::Skip
            }
        }
    })
    .map_err(failed)?;
    entries.sort_by(|a, b| a.0.cmp(&b.0));
    let scratch = computer.paths.state.join("tmp");
    let opened = |root: &Path| {
        Workspace::open(root, &scratch)
            .map_err(|e| ComputerError::new(ErrorCode::Failed, format!("{}: {e}", root.display())))
    };
    let (lower, layer) = (opened(&computer.paths.workspace)?, opened(upper)?);
    let (entries, left_out) = git_files::remove_git_files(upper, &lower, &layer, entries).map_err(failed)?;
    notes.extend(left_out);
    let base = base(computer, call, start, captured, &lower, &entries)?;
    let rules = IgnoreRules::new(&lower);
    let mut reader = LayerReader {
        log: &**computer.log(),
        lower: &lower,
        layer: &layer,
        rules: &rules,
        base: &base,
        upper,
        edits: BTreeMap::new(),
        changes: LayerChanges::default(),
        gathered: 0,
    };
    reader.read_all(&entries)?;
    let LayerReader { edits, mut changes, .. } = reader;
    changes.edits = edits
        .into_iter()
        .map(|(path, now)| OutsideEdit { base: base.get(&path).cloned(), path, now })
        .filter(|edit| edit.base != edit.now)
        .collect();
    changes.notes.extend(notes.into_iter().map(Into::into));
    Ok(changes)
}

/// The log's nodes at and below every path of the layer, as of the start of the command.
///
/// An outside edit that was captured after the command (`captured`) counts as made before it if its timestamp on disk
/// says so: the command saw it, so the two do not conflict.
fn base(
    computer: &Computer,
    call: OpId,
    start: CommandStart,
    captured: Option<OpId>,
    lower: &Workspace,
    entries: &[(FilePath, EntryKind)],
) -> Result<LogAtStart, ComputerError> {
    let whole: BTreeSet<FilePath> = entries
        .iter()
        .filter(|(_, kind)| matches!(kind, EntryKind::Whiteout | EntryKind::OpaqueFolder))
        .map(|(path, _)| path.clone())
        .collect();
    let single: Vec<FilePath> = entries.iter().map(|(path, _)| path.clone()).collect();
    let (seq, now, held) = computer.writer().inspect(move |view| {
        let mut now: BTreeMap<FilePath, FileNode> = BTreeMap::new();
        let mut held = BTreeSet::new();
        for path in single {
            if let Some(node) = view.files.get(&path) {
                now.insert(path.clone(), node.clone());
            }
            if view.files.count_below(&path) > 0 {
                held.insert(path);
            }
        }
        // Files below deleted folders are found in one pass, for any number of folders.
        if whole.iter().any(|path| held.contains(path)) {
            let gone =
                view.files.iter().filter(|(path, _)| path.ancestors().any(|above| whole.contains(&above)));
            now.extend(gone.map(|(path, node)| (path.clone(), node.clone())));
        }
        (view.seq(), now, held)
    })?;
    let mut events: Vec<Event> = Vec::new();
    let mut failure = None;
    computer.log().scan(start.seq.next(), &mut |stored| {
        if stored.seq > seq {
            return ControlFlow::Break(());
        }
        if stored.op != call {
            match decode_event(&**computer.log(), stored) {
                Ok(event) => events.push(event),
                Err(e) => failure = Some(e),
            }
        }
        ControlFlow::Continue(())
    })?;
    if let Some(e) = failure {
        return Err(e.into());
    }
    let (late, others): (Vec<Event>, Vec<Event>) =
        events.into_iter().partition(|event| Some(event.op) == captured);
    let mut since: BTreeMap<FilePath, Option<FileNode>> =
        file_effects(&others).into_iter().map(|effect| (effect.path, effect.before)).collect();
    let was_there = |path: &FilePath| {
        let seen = lower.observe(path).ok().flatten();
        seen.is_none_or(|seen| seen.stat.ctime_ns / 1_000_000 < start.at.millis())
    };
    for effect in file_effects(&late) {
        if !was_there(&effect.path) {
            since.entry(effect.path).or_insert(effect.before);
        }
    }
    Ok(LogAtStart { now, since, held })
}

struct LayerReader<'a> {
    log: &'a dyn EventLog,
    lower: &'a Workspace,
    layer: &'a Workspace,
    rules: &'a IgnoreRules<'a>,
    base: &'a LogAtStart,
    upper: &'a Path,
    /// The node at each path after the command.
    edits: BTreeMap<FilePath, Option<FileNode>>,
    changes: LayerChanges,
    gathered: usize,
}

impl LayerReader<'_> {
    fn read_all(&mut self, entries: &[(FilePath, EntryKind)]) -> Result<(), ComputerError> {
        // A folder that was handled with everything below it.
        let mut dealt: Option<FilePath> = None;
        for (path, kind) in entries {
            if dealt.as_ref().is_some_and(|folder| is_below(path, folder)) {
                continue;
            }
            let is_dir = matches!(kind, EntryKind::Folder | EntryKind::OpaqueFolder);
            if *kind != EntryKind::Whiteout && self.rules.is_ignored(path, is_dir) && !self.base.holds(path) {
                if self.read_ignored(path, *kind) {
                    dealt = Some(path.clone());
                }
                continue;
            }
            match kind {
                EntryKind::Whiteout => self.read_deletion(path),
                EntryKind::File => self.read_file(path)?,
                EntryKind::Symlink => self.read_link(path),
                EntryKind::Folder => self.read_folder(path),
                EntryKind::OpaqueFolder => {
                    self.read_deletion(path);
                    self.read_folder(path);
                }
                EntryKind::Special => self.leave_out(path, "it is a socket, a fifo or a device"),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &FilePath, why: &str) {
        self.changes.notes.push(format!("{path} was left out: {why}").into());
    }

    /// The command deleted this path: files of the log become edits, ignored files go to the trash.
    fn read_deletion(&mut self, path: &FilePath) {
        let known: Vec<FilePath> = self.base.within(path).map(|(path, _)| path.clone()).collect();
        for path in known {
            self.edits.insert(path, None);
        }
        self.trash_ignored_below(path, path);
    }

    /// Finds ignored files at and below a path, which the log does not have.
    fn trash_ignored_below(&mut self, path: &FilePath, gone: &FilePath) {
        let Ok(Some(seen)) = self.lower.observe(path) else { return };
        let is_folder = seen.kind == ObservedKind::Folder;
        // A path that is neither in the log nor ignored is an outside edit that is not captured yet.
        if !self.base.holds(path) && self.rules.is_ignored(path, is_folder) {
            self.changes.ignored.push(IgnoredFileMove::Trash { path: path.clone(), gone: gone.clone() });
            return;
        }
        if is_folder {
            let names = self.lower.names(path).unwrap_or_default();
            for below in names.iter().filter_map(|name| path.join(name).ok()) {
                self.trash_ignored_below(&below, gone);
            }
        }
    }

    /// An ignored path: it is moved into the workspace without an event. True if this includes everything below it.
    fn read_ignored(&mut self, path: &FilePath, kind: EntryKind) -> bool {
        let below = self.lower.observe(path).ok().flatten();
        match (kind, below) {
            (EntryKind::Special, _) => false,
            // The lower folder shows through a merged folder, so only the folder's own entries are moved.
            (EntryKind::Folder, Some(Observed { kind: ObservedKind::Folder, .. })) => false,
            (EntryKind::Folder | EntryKind::OpaqueFolder, _) => {
                self.changes.ignored.push(IgnoredFileMove::IntoWorkspace { path: path.clone() });
                true
            }
            (EntryKind::File | EntryKind::Symlink | EntryKind::Whiteout, _) => {
                self.changes.ignored.push(IgnoredFileMove::IntoWorkspace { path: path.clone() });
                false
            }
        }
    }

    fn read_file(&mut self, path: &FilePath) -> Result<(), ComputerError> {
        let seen = self.layer.observe(path).ok().flatten();
        layer::make_readable(&self.upper.join(path.as_str()));
        let hashed = projector::workspace::hash_file(self.layer, path).ok();
        let Some((seen, (content, _))) = seen.zip(hashed) else {
            self.leave_out(path, "it cannot be read");
            return Ok(());
        };
        let mode = seen.stat.permissions();
        let node = FileNode::file(content, mode);
        let same = self.base.get(path).and_then(FileNode::content) == Some(content);
        if !same && !self.log.has_content(&content.hash)? {
            let mut file = self
                .layer
                .open_file(path)
                .map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
            let staged = self.log.stage(&mut file)?;
            if let Some((hash, bytes)) = staged.into_inline() {
                self.gathered += bytes.len();
                self.changes.contents.push((hash, bytes));
            }
            if self.gathered > FLUSH_AT {
                self.log.store(std::mem::take(&mut self.changes.contents))?;
                self.gathered = 0;
            }
        }
        self.edits.insert(path.clone(), Some(node));
        Ok(())
    }

    fn read_link(&mut self, path: &FilePath) {
        match self.layer.observe(path) {
            Ok(Some(Observed { kind: ObservedKind::Symlink { target }, .. }))
                if link_stays_inside(path, &target) =>
            {
                self.edits.insert(path.clone(), Some(FileNode::Symlink { target }));
            }
            Ok(Some(_)) => self.leave_out(path, "it is a link that leaves the workspace"),
            Ok(None) | Err(_) => self.leave_out(path, "it cannot be read"),
        }
    }

    /// The log has folders only while they are empty. A file that was at this path is deleted.
    fn read_folder(&mut self, path: &FilePath) {
        if self.base.get(path).is_some_and(|node| *node != FileNode::Folder) {
            self.edits.insert(path.clone(), None);
        }
        if self.is_empty(path) {
            self.edits.insert(path.clone(), Some(FileNode::Folder));
        }
    }

    /// True if the folder is empty after the command.
    fn is_empty(&self, path: &FilePath) -> bool {
        let own = layer::folder_names(&self.upper.join(path.as_str())).unwrap_or_default();
        if own.kept > 0 {
            return false;
        }
        let shows_through = !own.opaque;
        let below = if shows_through { self.lower.names(path).unwrap_or_default() } else { Vec::new() };
        below.iter().all(|name| own.whiteouts.contains(name))
    }
}
