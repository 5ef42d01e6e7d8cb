//! A document in the editor: the version of the file that its text was made from, whether the person changed the text
//! since, and whether the file changed elsewhere. A save names that version, so that no change is overwritten by accident.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use serde::{Deserialize, Serialize};
use shared_types::{FilePath, WindowId};

use super::file::{self, ReadError, SavedVersion};
use crate::api::ApiFailure;
use crate::dom::{self, DRAFT};
use crate::ids;
use crate::js_modules::TextEditor;
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
    pub(super) saving: Signal<bool>,
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
            saving: signal(false),
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

    pub(super) fn text(self) -> String {
        self.editor.peek().borrow().as_ref().map(TextEditor::get).unwrap_or_default()
    }

    /// The version that the text was made from.
    pub(super) fn base(self) -> SavedVersion {
        self.base.peek().clone()
    }

    /// The text to start with: the draft that a reload left, or the text of the file.
    pub(super) async fn begin(mut self, app_state: AppState) -> Option<String> {
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
                } else if let Some(Draft { head: DraftHead { base: from }, text }) = draft {
                    if from != base {
                        self.on_disk.set(Some(base));
                    }
                    self.base.set(from);
                    self.mark(true);
                    self.load_state.set(LoadState::Ready);
                    return Some(text);
                }
                self.base.set(base);
                self.load_state.set(LoadState::Ready);
                Some(text)
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
            bar.set_text_content(dirty.then_some(words::editor::NOT_SAVED));
        }
        mark_unsaved(self.window, dirty);
        if dirty {
            self.keep_draft();
        } else {
            self.with(TextEditor::drop_draft);
        }
    }

    /// Saves, if the file is still the version that the text was made from; true if it was saved.
    pub(super) async fn save(mut self, app_state: AppState) -> bool {
        let Some(path) = self.path.peek().clone() else { return false };
        if *self.saving.peek() {
            return false;
        }
        self.saving.set(true);
        let text = self.text();
        let base = self.base.peek().clone();
        let answer = file::write(&path, &base, &text).await;
        self.saving.set(false);
        match answer {
            Ok(done) => {
                self.base.set(file::hash_after(&done, &path).or(file::head(&path).await).unwrap_or(base));
                self.on_disk.set(None);
                // Text typed during the save is not saved yet.
                self.mark(self.text() != text);
                true
            }
            Err(failure) => {
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
        match file::write(&path, &SavedVersion::Absent, &self.text()).await {
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
        if *self.load_state.peek() != LoadState::Ready || *self.saving.peek() {
            return;
        }
        let Some(now) = file::head(&path).await else { return };
        if *self.saving.peek() {
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
                self.with(|editor| editor.set(&text));
                self.base.set(base);
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
        self.mark(true);
    }
}
