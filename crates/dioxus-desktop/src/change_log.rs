//! Recent changes on the computer, so that a window fetches only the lists that changed.
//!
//! Each event adds a [`Change`] once the server's lists contain it. A reader remembers the newest change that it has seen;
//! `state::use_changes` counts up when a later one concerns it.

use std::collections::VecDeque;

use shared_types::payload::DesktopEvent;
use shared_types::payload::file::{FileEvent, FileNode};
use shared_types::wire::SentEvent;
use shared_types::{FilePath, OpId, Seq};

/// How many changes are kept. A reader that is further behind assumes that everything changed.
const KEPT: usize = 500;

/// What an event changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    seq: Seq,
    op: OpId,
    subject: ChangedSubject,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ChangedSubject {
    /// Paths of files, links and folders, each with its change.
    Paths(Vec<(FilePath, PathChange)>),
    /// Files that the event does not name.
    SomeFiles,
    Window,
    Setting(Box<str>),
    Checkpoint,
    /// An undo, a redo or a restore: other operations are undone now, or are not any more.
    OtherOperations,
    Grants,
    /// A model answered, which costs something.
    Spending,
    ToolCall,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathChange {
    Written { is_folder: bool },
    Gone,
}

impl ChangedSubject {
    fn of(event: &SentEvent, what: &DesktopEvent) -> Self {
        let written = |node: &FileNode| PathChange::Written { is_folder: matches!(node, FileNode::Folder) };
        match what {
            DesktopEvent::File(FileEvent::Write(p)) => Self::Paths(vec![(p.path.clone(), written(&p.node))]),
            DesktopEvent::File(FileEvent::Delete(p)) => Self::Paths(vec![(p.path.clone(), PathChange::Gone)]),
            DesktopEvent::File(FileEvent::Move(p)) => {
                Self::Paths(vec![(p.from.clone(), PathChange::Gone), (p.to.clone(), written(&p.node))])
            }
            DesktopEvent::File(FileEvent::Batch(_)) => Self::SomeFiles,
            DesktopEvent::Window(_) => Self::Window,
            DesktopEvent::Setting(event) => Self::Setting(event.key().into()),
            DesktopEvent::Checkpoint(_) => Self::Checkpoint,
            DesktopEvent::ModelAnswered(_) => Self::Spending,
            DesktopEvent::NotFollowed => match event.name.split('.').next().unwrap_or_default() {
                // A later version of an event that is known here.
                "file" => Self::SomeFiles,
                "checkpoint" => Self::Checkpoint,
                "undo" | "redo" | "restore" => Self::OtherOperations,
                "capability" => Self::Grants,
                "llm" => Self::Spending,
                "tool" => Self::ToolCall,
                _ => Self::Other,
            },
        }
    }
}

impl Change {
    pub(crate) fn of(event: &SentEvent, what: &DesktopEvent) -> Self {
        Self { seq: event.seq, op: event.op, subject: ChangedSubject::of(event, what) }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    pub(crate) fn is_of_file(&self) -> bool {
        matches!(self.subject, ChangedSubject::Paths(_) | ChangedSubject::SomeFiles)
    }

    pub(crate) fn is_of_window(&self) -> bool {
        self.subject == ChangedSubject::Window
    }

    pub(crate) fn is_of_checkpoint(&self) -> bool {
        self.subject == ChangedSubject::Checkpoint
    }

    pub(crate) fn is_of_grants(&self) -> bool {
        self.subject == ChangedSubject::Grants
    }

    pub(crate) fn is_of_tool_call(&self) -> bool {
        self.subject == ChangedSubject::ToolCall
    }

    /// Whether it may change the models of roles, or today's spending.
    pub(crate) fn is_of_models(&self) -> bool {
        if let ChangedSubject::Setting(key) = &self.subject {
            return key.starts_with("models.") || key.starts_with("runs.");
        }
        self.subject == ChangedSubject::Spending
    }

    /// Whether it may change how an operation is shown.
    pub(crate) fn is_of_operation(&self, op: OpId) -> bool {
        self.op == op || self.subject == ChangedSubject::OtherOperations
    }

    /// Whether it may change the content of a file, or remove or create it.
    pub(crate) fn is_of_path(&self, path: &FilePath) -> bool {
        self.any_path(|changed, _| path == changed || path.is_within(changed))
    }

    /// Whether it may change the list of a folder. The list has the time of the newest change below each folder, so
    /// that everything within counts.
    pub(crate) fn is_in_folder(&self, folder: Option<&FilePath>) -> bool {
        self.any_path(|path, _| folder.is_none_or(|folder| path.is_within(folder) || folder.is_within(path)))
    }

    /// Whether it may change which folders are in a folder, where these are there now.
    pub(crate) fn is_of_folders_in(&self, folder: Option<&FilePath>, known: &[FilePath]) -> bool {
        self.any_path(|path, change| {
            let Some(child) = child_of(folder, path) else {
                // The folder itself, or one above it.
                return folder.is_some_and(|folder| folder.is_within(path)) && change == PathChange::Gone;
            };
            let is_known = known.contains(&child);
            match change {
                PathChange::Written { is_folder } if child == *path => is_folder != is_known,
                PathChange::Written { .. } => !is_known,
                PathChange::Gone => is_known,
            }
        })
    }

    fn any_path(&self, fits: impl Fn(&FilePath, PathChange) -> bool) -> bool {
        if let ChangedSubject::Paths(paths) = &self.subject {
            return paths.iter().any(|(path, change)| fits(path, *change));
        }
        self.subject == ChangedSubject::SomeFiles
    }
}

/// The entry of a folder that a path is, or is below.
fn child_of(folder: Option<&FilePath>, path: &FilePath) -> Option<FilePath> {
    let rest = match folder {
        None => path.as_str(),
        Some(folder) => path.as_str().strip_prefix(folder.as_str())?.strip_prefix('/')?,
    };
    let below = rest.find('/').map_or(0, |at| rest.len() - at);
    FilePath::parse(&path.as_str()[..path.as_str().len() - below]).ok()
}

/// The newest changes that the lists of the server have followed.
#[derive(Debug, Default)]
pub(crate) struct ChangeLog {
    kept: VecDeque<Change>,
    /// Changes up to here are not kept.
    forgotten: Seq,
    through: Seq,
}

impl ChangeLog {
    /// Everything may have changed.
    pub(crate) fn reset(&mut self, seq: Seq) {
        self.kept.clear();
        (self.forgotten, self.through) = (seq, seq);
    }

    /// The lists have followed these changes.
    pub(crate) fn extend(&mut self, changes: impl IntoIterator<Item = Change>, through: Seq) {
        self.kept.extend(changes);
        while self.kept.len() > KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            self.forgotten = oldest.seq;
        }
        self.through = self.through.max(through);
    }

    pub(crate) fn through(&self) -> Seq {
        self.through
    }

    /// Whether a change after `seen` concerns a reader.
    pub(crate) fn has(&self, seen: Seq, concerns: impl FnMut(&Change) -> bool) -> bool {
        seen < self.forgotten || self.kept.iter().filter(|change| change.seq > seen).any(concerns)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn change(seq: u64, name: &str, payload: serde_json::Value) -> Change {
        let op = OpId::from_bytes([seq as u8; 16]);
        let event = json!({ "seq": seq, "source": "user", "type": name, "op": op, "payload": payload });
        let event: SentEvent = serde_json::from_value(event).unwrap();
        let what = DesktopEvent::decode(&event.name, event.version, &event.payload).unwrap();
        Change::of(&event, &what)
    }

    fn write(path: &str) -> Change {
        change(1, "file.write", json!({ "path": path, "node": { "symlink": { "target": "x" } } }))
    }

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    #[test]
    fn a_file_concerns_its_folders_and_itself() {
        let changed = write("notes/a.md");
        assert!(changed.is_in_folder(None) && changed.is_in_folder(Some(&path("notes"))));
        assert!(!changed.is_in_folder(Some(&path("note"))) && !changed.is_in_folder(Some(&path("other"))));
        assert!(changed.is_of_path(&path("notes/a.md")) && !changed.is_of_path(&path("notes/b.md")));
        assert!(changed.is_of_operation(OpId::from_bytes([1; 16])));
    }

    #[test]
    fn folders_are_concerned_only_where_one_comes_or_goes() {
        let known = [path("notes")];
        assert!(!write("a.md").is_of_folders_in(None, &known));
        assert!(!write("notes/a.md").is_of_folders_in(None, &known));
        assert!(write("new/a.md").is_of_folders_in(None, &known));
        assert!(write("notes").is_of_folders_in(None, &known), "it is a link now");
        assert!(write("notes/deep/a.md").is_of_folders_in(Some(&path("notes")), &[]));
        let folder = change(1, "file.write", json!({ "path": "more", "node": "folder" }));
        assert!(folder.is_of_folders_in(None, &known));
        let gone = change(1, "file.delete", json!({ "path": "notes/a.md", "prev": "folder" }));
        assert!(gone.is_of_folders_in(None, &known), "the last file takes its folder along");
        assert!(!gone.is_of_folders_in(Some(&path("other")), &[]));
    }

    #[test]
    fn a_reader_hears_of_changes_once_and_of_everything_after_a_gap() {
        let mut log = ChangeLog::default();
        log.reset(Seq(3));
        assert!(log.has(Seq(2), |_| false) && !log.has(Seq(3), |_| true));
        log.extend([change(4, "setting.set", json!({ "key": "theme", "value": 1 }))], Seq(4));
        assert!(log.has(Seq(3), |_| true) && !log.has(Seq(4), |_| true));
        assert!(!log.has(Seq(3), Change::is_of_file));
        for seq in 5..1000 {
            log.extend([change(seq, "window.other", json!({}))], Seq(seq));
        }
        assert!(log.has(Seq(4), |_| false), "too much happened since");
        assert_eq!(log.through(), Seq(999));
    }
}
