//! A document in the editor: what the file held when it was read, whether the person changed it since, and whether
//! somebody else changed the file. Saving names what it builds on, so nobody's words are overwritten by accident.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use serde::{Deserialize, Serialize};
use shared_types::{FilePath, WindowId};

use super::file::{self, Base, Unread};
use crate::api::Failure;
use crate::desk::{Desk, Offer};
use crate::dom;
use crate::foreign::Text;

/// What is kept for a reload.
const LARGEST_DRAFT: usize = 1 << 20;

/// How the document stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Stage {
    Loading,
    Ready,
    /// It cannot be edited, and why.
    Refused(String),
    Failed(Failure),
}

/// Changes that the person has not saved, kept over a reload of the page.
#[derive(Serialize, Deserialize)]
struct Draft {
    path: Option<String>,
    base: Base,
    text: String,
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
    editor: CopyValue<Rc<RefCell<Option<Text>>>>,
}

impl Document {
    pub(super) fn new(window: WindowId, path: Option<FilePath>) -> Self {
        Self {
            window,
            path: Signal::new(path),
            stage: Signal::new(Stage::Loading),
            dirty: Signal::new(false),
            saving: Signal::new(false),
            theirs: Signal::new(None),
            base: Signal::new(Base::Absent),
            editor: CopyValue::new(Rc::default()),
        }
    }

    pub(super) fn put_editor(self, editor: Option<Text>) {
        self.editor.peek().replace(editor);
    }

    pub(super) fn with(self, act: impl FnOnce(&Text)) {
        if let Some(editor) = self.editor.peek().borrow().as_ref() {
            act(editor);
        }
    }

    pub(super) fn text(self) -> String {
        self.editor.peek().borrow().as_ref().map(Text::get).unwrap_or_default()
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
                let draft = self.draft().filter(|draft| draft.text != text);
                if let Some(draft) = draft {
                    if draft.base != base {
                        self.theirs.set(Some(base));
                    }
                    self.base.set(draft.base);
                    self.mark(true);
                    self.stage.set(Stage::Ready);
                    return Some(draft.text);
                }
                self.base.set(base);
                self.stage.set(Stage::Ready);
                Some(text)
            }
            Err(Unread::NotText(why)) => {
                self.stage.set(Stage::Refused(why));
                None
            }
            Err(Unread::Failed(failure)) => {
                self.stage.set(Stage::Failed(failure));
                None
            }
        }
    }

    fn draft_key(self) -> String {
        format!("draft:{}", self.window)
    }

    fn draft(self) -> Option<Draft> {
        let draft: Draft = serde_json::from_str(&dom::session_get(&self.draft_key())?).ok()?;
        let path = self.path.peek();
        (draft.path.as_deref() == path.as_ref().map(FilePath::as_str)).then_some(draft)
    }

    /// Keeps what was not saved, in case the page goes away.
    pub(super) fn keep_draft(self) {
        let text = self.text();
        if !*self.dirty.peek() || text.len() > LARGEST_DRAFT {
            return dom::session_set(&self.draft_key(), "");
        }
        let path = self.path.peek().as_ref().map(ToString::to_string);
        let draft = Draft { path, base: self.base.peek().clone(), text };
        if let Ok(json) = serde_json::to_string(&draft) {
            dom::session_set(&self.draft_key(), &json);
        }
    }

    /// Whether the text differs from the file, said in the title bar.
    pub(super) fn mark(mut self, dirty: bool) {
        if *self.dirty.peek() != dirty {
            self.dirty.set(dirty);
        }
        if let Some(bar) = dom::by_id(&format!("bar-{}", self.window)) {
            bar.set_text_content(dirty.then_some("Not saved"));
        }
        if !dirty {
            dom::session_set(&self.draft_key(), "");
        }
    }

    /// Saves over what the text was made from; true if the file holds the text now.
    pub(super) async fn save(mut self, desk: Desk) -> bool {
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
                let is_stale = file::is_stale(&failure);
                if is_stale && theirs != base {
                    self.theirs.set(Some(theirs));
                    return false;
                }
                // Nothing was to be there, and no file is: it is something else.
                let why = if is_stale { "A folder is called that now.".into() } else { failure.text() };
                let text = format!("Not saved. {why} Your text is still here.");
                desk.toast(text, true, Offer::Nothing);
                false
            }
        }
    }

    /// Gives an untitled text its name; why not, if it was refused.
    pub(super) async fn save_as(self, desk: Desk, name: &str) -> Result<(), String> {
        let path = FilePath::parse(name.trim().trim_start_matches('/')).map_err(|error| error.to_string())?;
        match file::write(&path, &Base::Absent, &self.text()).await {
            Ok(_) => {
                self.mark(false);
                desk.change(self.window, |window| {
                    window.title = path.name().into();
                    window.shows = Some(path.as_str().into());
                });
                Ok(())
            }
            Err(failure) if file::is_stale(&failure) => Err(format!("Something is called {path} already.")),
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
            Err(Unread::NotText(why)) => self.stage.set(Stage::Refused(why)),
            Err(Unread::Failed(failure)) => self.stage.set(Stage::Failed(failure)),
        }
    }

    /// From now on the text builds on what is in the file, so that saving replaces it.
    pub(super) fn build_on(mut self, theirs: Base) {
        self.base.set(theirs);
        self.theirs.set(None);
        self.mark(true);
    }
}
