//! A document in the editor: the version of the file that its text was made from, whether the person changed the text
//! since, and whether the file changed elsewhere. A save names that version, so that no change is overwritten by accident.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use serde::{Deserialize, Serialize};
use shared_types::{FilePath, WindowId};

use super::file::{self, Attempt, ReadError, SavedVersion};
use crate::api::ApiFailure;
use crate::dom::{self, DRAFT};
use crate::ids;
use crate::js_modules::{TextEditor, TextStatus};
use crate::state::{AppState, ToastAction, mark_unsaved};
use crate::words;

/// Whether the document is loaded.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LoadState {
    Loading,
    Ready,
    /// The file cannot be edited; the reason.
    Refused(String),
    Failed(ApiFailure),
}

/// Whether a save is under way.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SaveState {
    Idle,
    Sending,
    /// The server did not answer; the save is sent again when it is back.
    Queued(Attempt),
}

/// The text to start with.
pub(super) struct Opening {
    pub(super) text: String,
    /// The text of the version that it was made from, if it is known.
    pub(super) saved: Option<String>,
}

/// Unsaved text and the version that it was made from. The editor module stores it.
#[derive(Serialize, Deserialize)]
struct Draft {
    #[serde(flatten)]
    head: DraftHead,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct DraftHead {
    base: SavedVersion,
}

/// A draft that cannot be read and could not be copied.
struct DraftInTheWay;

/// Cheap to copy; the editor itself is shared.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Document {
    pub(super) window: WindowId,
    pub(super) path: Signal<Option<FilePath>>,
    pub(super) load_state: Signal<LoadState>,
    pub(super) dirty: Signal<bool>,
    pub(super) save_state: Signal<SaveState>,
    pub(super) status: Signal<TextStatus>,
    /// The version in the file, if the text was made from another one.
    pub(super) on_disk: Signal<Option<SavedVersion>>,
    base: Signal<SavedVersion>,
    draft_key: Signal<String>,
    editor: CopyValue<Rc<RefCell<Option<TextEditor>>>>,
}

impl Document {
    /// Its signals belong to the page and not to the window: a save that has started ends after the window is closed.
    pub(super) fn new(app_state: AppState, window: WindowId, path: Option<FilePath>) -> Self {
        fn signal<T: 'static>(value: T) -> Signal<T> {
            Signal::new_in_scope(value, ScopeId::ROOT)
        }
        let user = app_state.me.peek().as_ref().map(|me| me.user.to_string()).unwrap_or_default();
        let what = path.as_ref().map_or_else(|| format!("untitled:{window}"), |path| format!("file:{path}"));
        Self {
            window,
            path: signal(path),
            load_state: signal(LoadState::Loading),
            dirty: signal(false),
            save_state: signal(SaveState::Idle),
            status: signal(TextStatus::default()),
            on_disk: signal(None),
            base: signal(SavedVersion::Absent),
            draft_key: signal(format!("{DRAFT}{user}:{what}")),
            editor: CopyValue::new_in_scope(Rc::default(), ScopeId::ROOT),
        }
    }

    pub(super) fn put_editor(self, editor: Option<TextEditor>) {
        self.editor.peek().replace(editor);
    }

    pub(super) fn with(self, act: impl FnOnce(&TextEditor)) {
        if let Some(editor) = self.editor.peek().borrow().as_ref() {
            act(editor);
        }
    }

    fn is_open(self) -> bool {
        self.editor.peek().borrow().is_some()
    }

    pub(super) fn text(self) -> String {
        self.editor.peek().borrow().as_ref().map(TextEditor::get).unwrap_or_default()
    }

    /// What the person is told about the text; reads the signals, so that the caller is run again.
    pub(super) fn saved_words(self) -> &'static str {
        match &*self.save_state.read() {
            SaveState::Queued(_) => words::editor::QUEUED,
            SaveState::Sending => words::editor::SAVING,
            SaveState::Idle if *self.dirty.read() || self.on_disk.read().is_some() => {
                words::editor::NOT_SAVED
            }
            SaveState::Idle if *self.base.read() == SavedVersion::Absent => words::editor::NEW_FILE,
            SaveState::Idle => words::editor::SAVED,
        }
    }

    /// The version that the text was made from.
    pub(super) fn base(self) -> SavedVersion {
        self.base.peek().clone()
    }

    /// The text to start with: the draft that a reload left, or the text of the file.
    pub(super) async fn begin(mut self, app_state: AppState) -> Option<Opening> {
        let path = self.path.peek().clone();
        let read = match &path {
            Some(path) => file::read(path).await,
            None => Ok((SavedVersion::Absent, String::new())),
        };
        match read {
            Ok((base, text)) => {
                let Ok(draft) = self.draft(app_state).await else {
                    self.load_state.set(LoadState::Refused(words::editor::DRAFT_IN_THE_WAY.into()));
                    return None;
                };
                if draft.as_ref().is_some_and(|draft| draft.text == text) {
                    TextEditor::forget_draft(&self.draft_key.peek().clone()).await;
                } else if let Some(Draft { head: DraftHead { base: from }, text: unsaved }) = draft {
                    let saved = (from == base).then_some(text);
                    if from != base {
                        self.on_disk.set(Some(base));
                    }
                    self.base.set(from);
                    self.mark(true);
                    self.load_state.set(LoadState::Ready);
                    return Some(Opening { text: unsaved, saved });
                }
                self.base.set(base);
                self.load_state.set(LoadState::Ready);
                Some(Opening { saved: Some(text.clone()), text })
            }
            Err(ReadError::NotText(why)) => {
                self.load_state.set(LoadState::Refused(why));
                None
            }
            Err(ReadError::Failed(failure)) => {
                self.load_state.set(LoadState::Failed(failure));
                None
            }
        }
    }

    /// The draft that a reload or a closed window left. One that cannot be read is moved aside, since typing would
    /// overwrite it, and the person is told.
    async fn draft(self, app_state: AppState) -> Result<Option<Draft>, DraftInTheWay> {
        let key = self.draft_key.peek().clone();
        let Some(json) = TextEditor::find_draft(&key).await else { return Ok(None) };
        match serde_json::from_str(&json) {
            Ok(draft) => Ok(Some(draft)),
            Err(error) => {
                dom::warn(&format!("{key}: {error}"));
                let copy = format!("{key}:unreadable:{}", ids::now().millis());
                if !dom::keep_safe(&copy, &json) {
                    return Err(DraftInTheWay);
                }
                TextEditor::forget_draft(&key).await;
                app_state.toast(words::editor::draft_unreadable(&copy), true, ToastAction::Nothing);
                Ok(None)
            }
        }
    }

    /// Makes the editor keep a draft until the text is saved.
    pub(super) fn keep_draft(self) {
        let head = DraftHead { base: self.base.peek().clone() };
        match serde_json::to_string(&head) {
            Ok(head) => self.with(|editor| editor.keep_draft(&self.draft_key.peek(), &head)),
            Err(error) => dom::warn(&format!("no draft is kept: {error}")),
        }
    }

    /// Marks the text as saved or not, also in the title bar.
    pub(super) fn mark(mut self, dirty: bool) {
        if *self.dirty.peek() != dirty {
            self.dirty.set(dirty);
        }
        if let Some(bar) = dom::by_id(&format!("bar-{}", self.window)) {
            let queued = matches!(*self.save_state.peek(), SaveState::Queued(_));
            let words = if queued { words::editor::QUEUED } else { words::editor::NOT_SAVED };
            bar.set_text_content(dirty.then_some(words));
        }
        mark_unsaved(self.window, dirty);
        if dirty {
            self.keep_draft();
        } else {
            self.with(TextEditor::drop_draft);
        }
    }

    /// Marks the text after the person changed it. Undoing back to the saved text makes it a saved one again, unless a
    /// save of another text waits for the server.
    pub(super) fn changed(self) {
        let queued = matches!(*self.save_state.peek(), SaveState::Queued(_));
        let saved = self.editor.peek().borrow().as_ref().is_some_and(TextEditor::is_saved);
        self.mark(queued || !saved);
    }

    /// Saves, if the file is still the version that the text was made from; true if it was saved. Without an answer the
    /// save is queued. A queued one is sent as it was, since the server may have carried it out; then what was typed
    /// since is saved.
    pub(super) async fn save(mut self, app_state: AppState) -> bool {
        let Some(path) = self.path.peek().clone() else { return false };
        let base = self.base();
        let queued = match &*self.save_state.peek() {
            SaveState::Sending => return false,
            SaveState::Queued(attempt) if attempt.base == base => Some(attempt.clone()),
            SaveState::Queued(_) | SaveState::Idle => None,
        };
        let resent = queued.is_some();
        let attempt = match queued {
            Some(attempt) => attempt,
            None => Attempt { command: ids::command(), base: base.clone(), text: self.text() },
        };
        self.save_state.set(SaveState::Sending);
        match file::write(&path, &attempt).await {
            Ok(done) => {
                let now = match file::hash_after(&done, &path) {
                    Some(now) => Some(now),
                    None => file::head(&path).await,
                };
                self.base.set(now.unwrap_or(base));
                self.on_disk.set(None);
                self.save_state.set(SaveState::Idle);
                if !self.is_open() {
                    return true;
                }
                self.with(|editor| editor.set_saved(Some(&attempt.text)));
                // Text typed during the save is not saved yet.
                self.changed();
                if resent && *self.dirty.peek() {
                    return Box::pin(self.save(app_state)).await;
                }
                if resent {
                    self.follow().await;
                }
                true
            }
            Err(ApiFailure::Unreachable) if self.is_open() => {
                self.save_state.set(SaveState::Queued(attempt));
                self.mark(true);
                false
            }
            Err(failure) => {
                self.save_state.set(SaveState::Idle);
                if self.is_open() {
                    self.mark(true);
                }
                let current = failure.problem().and_then(|problem| problem.current);
                let on_disk = current.map_or(SavedVersion::Absent, SavedVersion::Hash);
                let is_stale = failure.is_stale();
                if is_stale && on_disk != base {
                    self.on_disk.set(Some(on_disk));
                    return false;
                }
                // The path is not a file: a folder has this name.
                let why = if is_stale { words::editor::FOLDER_HAS_THE_NAME.into() } else { failure.text() };
                app_state.toast(words::editor::not_saved(&why), true, ToastAction::Nothing);
                false
            }
        }
    }

    /// Saves an untitled text under a name, or returns why not.
    pub(super) async fn save_as(self, app_state: AppState, name: &str) -> Result<(), String> {
        let path = FilePath::parse(name.trim().trim_start_matches('/')).map_err(|error| error.to_string())?;
        let attempt = Attempt { command: ids::command(), base: SavedVersion::Absent, text: self.text() };
        match file::write(&path, &attempt).await {
            Ok(_) => {
                self.mark(false);
                app_state.change(self.window, |window| {
                    window.title = path.name().into();
                    window.shows = Some(path.as_str().into());
                });
                Ok(())
            }
            Err(failure) if failure.is_stale() => Err(words::editor::name_taken(path.as_str())),
            Err(failure) => Err(failure.text()),
        }
    }

    /// Checks whether the file changed. A text without unsaved changes is reloaded.
    pub(super) async fn follow(mut self) {
        let Some(path) = self.path.peek().clone() else { return };
        // A save that is under way or queued finds out by itself.
        if *self.load_state.peek() != LoadState::Ready || *self.save_state.peek() != SaveState::Idle {
            return;
        }
        let Some(now) = file::head(&path).await else { return };
        if *self.save_state.peek() != SaveState::Idle {
            return;
        }
        if now == *self.base.peek() {
            if self.on_disk.peek().is_some() {
                self.on_disk.set(None);
            }
        } else if *self.dirty.peek() || now == SavedVersion::Absent {
            if self.on_disk.peek().as_ref() != Some(&now) {
                self.on_disk.set(Some(now));
            }
        } else {
            self.reload().await;
        }
    }

    /// Replaces the text by that of the file; unsaved changes are lost.
    pub(super) async fn reload(mut self) {
        let Some(path) = self.path.peek().clone() else { return };
        match file::read(&path).await {
            Ok((base, text)) => {
                self.with(|editor| {
                    editor.set(&text);
                    editor.set_saved(Some(&text));
                });
                self.base.set(base);
                if matches!(*self.save_state.peek(), SaveState::Queued(_)) {
                    self.save_state.set(SaveState::Idle);
                }
                self.on_disk.set(None);
                self.mark(false);
            }
            Err(ReadError::NotText(why)) => self.load_state.set(LoadState::Refused(why)),
            Err(ReadError::Failed(failure)) => self.load_state.set(LoadState::Failed(failure)),
        }
    }

    /// Makes the next save replace this version of the file.
    pub(super) fn build_on(mut self, on_disk: SavedVersion) {
        self.base.set(on_disk);
        self.on_disk.set(None);
        self.with(|editor| editor.set_saved(None));
        self.mark(true);
    }
}
