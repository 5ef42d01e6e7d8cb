//! A document in the editor: what the file held when it was read, whether the person changed it since, and whether the
//! file changed elsewhere. Saving names the version that it builds on, so that no change is overwritten by accident.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use serde::{Deserialize, Serialize};
use shared_types::{FilePath, WindowId};

use super::file::{self, Base, ReadError};
use crate::api::Failure;
use crate::dom::{self, DRAFT};
use crate::js_parts::TextEditor;
use crate::state::{AppState, Offer, mark_unsaved};
use crate::words;

/// How the document stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    Loading,
    Ready,
    /// It cannot be edited, and why.
    Refused(String),
    Failed(Failure),
}

/// Changes that the person has not saved: what they build on, and the text. The editor part keeps them.
#[derive(Serialize, Deserialize)]
struct Draft {
    #[serde(flatten)]
    head: DraftHead,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct DraftHead {
    base: Base,
}

/// Cheap to copy; the editor itself is shared.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Document {
    pub(super) window: WindowId,
    pub(super) path: Signal<Option<FilePath>>,
    pub(super) stage: Signal<Stage>,
    pub(super) dirty: Signal<bool>,
    pub(super) saving: Signal<bool>,
    /// What stands in the file now, if that is not what the text was made from.
    pub(super) theirs: Signal<Option<Base>>,
    base: Signal<Base>,
    draft_key: Signal<String>,
    editor: CopyValue<Rc<RefCell<Option<TextEditor>>>>,
}

impl Document {
    /// Its signals belong to the page and not to the window: a save that is under way ends after the window closed.
    pub(super) fn new(app_state: AppState, window: WindowId, path: Option<FilePath>) -> Self {
        fn signal<T: 'static>(value: T) -> Signal<T> {
            Signal::new_in_scope(value, ScopeId::ROOT)
        }
        let user = app_state.me.peek().as_ref().map(|me| me.user.to_string()).unwrap_or_default();
        let what = path.as_ref().map_or_else(|| format!("untitled:{window}"), |path| format!("file:{path}"));
        Self {
            window,
            path: signal(path),
            stage: signal(Stage::Loading),
            dirty: signal(false),
            saving: signal(false),
            theirs: signal(None),
            base: signal(Base::Absent),
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

    /// What the text was made from.
    pub(super) fn base(self) -> Base {
        self.base.peek().clone()
    }

    /// What to begin with: the draft that a reload left, or what the file holds.
    pub(super) async fn begin(mut self) -> Option<String> {
        let path = self.path.peek().clone();
        let read = match &path {
            Some(path) => file::read(path).await,
            None => Ok((Base::Absent, String::new())),
        };
        match read {
            Ok((base, text)) => {
                let draft = self.draft().await;
                if draft.as_ref().is_some_and(|draft| draft.text == text) {
                    TextEditor::forget_draft(&self.draft_key.peek().clone()).await;
                } else if let Some(Draft { head: DraftHead { base: from }, text }) = draft {
                    if from != base {
                        self.theirs.set(Some(base));
                    }
                    self.base.set(from);
                    self.mark(true);
                    self.stage.set(Stage::Ready);
                    return Some(text);
                }
                self.base.set(base);
                self.stage.set(Stage::Ready);
                Some(text)
            }
            Err(ReadError::NotText(why)) => {
                self.stage.set(Stage::Refused(why));
                None
            }
            Err(ReadError::Failed(failure)) => {
                self.stage.set(Stage::Failed(failure));
                None
            }
        }
    }

    /// What a reload or a closed window left.
    async fn draft(self) -> Option<Draft> {
        let key = self.draft_key.peek().clone();
        serde_json::from_str(&TextEditor::find_draft(&key).await?).ok()
    }

    /// Lets the editor keep the text for as long as it is not saved.
    pub(super) fn keep_draft(self) {
        let head = DraftHead { base: self.base.peek().clone() };
        if let Ok(head) = serde_json::to_string(&head) {
            self.with(|editor| editor.keep_draft(&self.draft_key.peek(), &head));
        }
    }

    /// Whether the text differs from the file, said in the title bar.
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

    /// Saves over what the text was made from; true if the file holds the text now.
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
                self.theirs.set(None);
                // What was typed while this was on its way is not saved yet.
                self.mark(self.text() != text);
                true
            }
            Err(failure) => {
                let current = failure.problem().and_then(|problem| problem.current);
                let theirs = current.map_or(Base::Absent, |hash| Base::Hash(hash.to_string()));
                let is_stale = failure.is_stale();
                if is_stale && theirs != base {
                    self.theirs.set(Some(theirs));
                    return false;
                }
                // Nothing was to be there, and no file is: it is something else.
                let why = if is_stale { words::editor::FOLDER_HAS_THE_NAME.into() } else { failure.text() };
                app_state.toast(words::editor::not_saved(&why), true, Offer::Nothing);
                false
            }
        }
    }

    /// Gives an untitled text its name; why not, if it was refused.
    pub(super) async fn save_as(self, app_state: AppState, name: &str) -> Result<(), String> {
        let path = FilePath::parse(name.trim().trim_start_matches('/')).map_err(|error| error.to_string())?;
        match file::write(&path, &Base::Absent, &self.text()).await {
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

    /// Looks whether the file is still what the text was made from; a text without changes follows the file.
    pub(super) async fn follow(mut self) {
        let Some(path) = self.path.peek().clone() else { return };
        if *self.stage.peek() != Stage::Ready || *self.saving.peek() {
            return;
        }
        let Some(now) = file::head(&path).await else { return };
        if *self.saving.peek() {
            return;
        }
        if now == *self.base.peek() {
            if self.theirs.peek().is_some() {
                self.theirs.set(None);
            }
        } else if *self.dirty.peek() || now == Base::Absent {
            if self.theirs.peek().as_ref() != Some(&now) {
                self.theirs.set(Some(now));
            }
        } else {
            self.reload().await;
        }
    }

    /// Takes what is in the file, and forgets what was not saved.
    pub(super) async fn reload(mut self) {
        let Some(path) = self.path.peek().clone() else { return };
        match file::read(&path).await {
            Ok((base, text)) => {
                self.with(|editor| editor.set(&text));
                self.base.set(base);
                self.theirs.set(None);
                self.mark(false);
            }
            Err(ReadError::NotText(why)) => self.stage.set(Stage::Refused(why)),
            Err(ReadError::Failed(failure)) => self.stage.set(Stage::Failed(failure)),
        }
    }

    /// From now on the text builds on what is in the file, so that saving replaces it.
    pub(super) fn build_on(mut self, theirs: Base) {
        self.base.set(theirs);
        self.theirs.set(None);
        self.mark(true);
    }
}
