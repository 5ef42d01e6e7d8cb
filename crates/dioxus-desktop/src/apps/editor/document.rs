//! A document in the editor: what the file held when it was read, whether the person changed it since, and whether
//! somebody else changed the file. Saving names what it builds on, so nobody's words are overwritten by accident.

use std::cell::RefCell;
use std::rc::Rc;

use dioxus::prelude::*;
use gloo_net::http::{Method, RequestBuilder};
use serde::{Deserialize, Serialize};
use shared_types::payload::file::FileNode;
use shared_types::wire::Done;
use shared_types::{FilePath, WindowId};

use crate::api::{self, Answer, Failure};
use crate::desk::{Desk, Offer};
use crate::dom;
use crate::foreign::Text;

/// What can be edited here without the page becoming slow.
const LARGEST: usize = 4 << 20;
/// What is kept for a reload.
const LARGEST_DRAFT: usize = 1 << 20;

/// What the text on screen was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Base {
    /// There was no file.
    Absent,
    Hash(String),
}

impl Base {
    fn name(&self) -> &str {
        match self {
            Self::Absent => "absent",
            Self::Hash(hash) => hash,
        }
    }
}

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

    /// What to begin with: the draft that a reload left, or what the file holds.
    pub(super) async fn begin(mut self) -> Option<String> {
        let path = self.path.peek().clone();
        let read = match &path {
            Some(path) => read(path).await,
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
        let answer = write(&path, &base, &text).await;
        self.saving.set(false);
        match answer {
            Ok(done) => {
                self.base.set(hash_after(&done, &path).or(head(&path).await).unwrap_or(base));
                self.theirs.set(None);
                // What was typed while this was on its way is not saved yet.
                self.mark(self.text() != text);
                true
            }
            Err(failure) if is_stale(&failure) => {
                let current = failure.problem().and_then(|problem| problem.current);
                self.theirs.set(Some(current.map_or(Base::Absent, |hash| Base::Hash(hash.to_string()))));
                false
            }
            Err(failure) => {
                desk.toast(format!("Not saved. {} Your text is still here.", failure.text()), true, Offer::Nothing);
                false
            }
        }
    }

    /// Gives an untitled text its name; why not, if it was refused.
    pub(super) async fn save_as(self, desk: Desk, name: &str) -> Result<(), String> {
        let path = FilePath::parse(name.trim().trim_start_matches('/')).map_err(|error| error.to_string())?;
        match write(&path, &Base::Absent, &self.text()).await {
            Ok(_) => {
                self.mark(false);
                desk.change(self.window, |window| {
                    window.title = path.name().into();
                    window.shows = Some(path.as_str().into());
                });
                Ok(())
            }
            Err(failure) if is_stale(&failure) => Err(format!("There is already a file {path}.")),
            Err(failure) => Err(failure.text()),
        }
    }

    /// Looks whether the file is still what the text was made from; a text without changes follows the file.
    pub(super) async fn follow(mut self) {
        let Some(path) = self.path.peek().clone() else { return };
        if *self.stage.peek() != Stage::Ready || *self.saving.peek() {
            return;
        }
        let Some(now) = head(&path).await else { return };
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
        match read(&path).await {
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

enum Unread {
    NotText(String),
    Failed(Failure),
}

/// What a file holds; one that is not there is empty.
async fn read(path: &FilePath) -> Result<(Base, String), Unread> {
    match api::bytes(&api::query("/content", &[("path", path.as_str())])).await {
        Ok((bytes, _)) if bytes.len() > LARGEST => {
            Err(Unread::NotText("It is larger than 4 MB, which is more than this editor takes.".into()))
        }
        Ok((bytes, hash)) => match String::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok((hash.map_or(Base::Absent, Base::Hash), text)),
            Ok(_) | Err(_) => Err(Unread::NotText("It does not hold text.".into())),
        },
        Err(failure) if failure.status() == 404 => Ok((Base::Absent, String::new())),
        Err(failure) => Err(Unread::Failed(failure)),
    }
}

/// What is in the file, for the merge.
pub(super) async fn theirs(path: &FilePath) -> Answer<(Base, String)> {
    read(path).await.map_err(|unread| match unread {
        Unread::NotText(why) => Failure::Unreadable(why),
        Unread::Failed(failure) => failure,
    })
}

async fn write(path: &FilePath, base: &Base, text: &str) -> Answer<Done> {
    let route = api::query("/content", &[("path", path.as_str()), ("base", base.name())]);
    api::put_bytes(&route, text.as_bytes()).await
}

/// Only which content a file holds; nothing if the computer does not answer.
async fn head(path: &FilePath) -> Option<Base> {
    let route = api::url(&api::query("/content", &[("path", path.as_str())]));
    let response = RequestBuilder::new(&route).method(Method::HEAD).send().await.ok()?;
    match response.status() {
        200 => response.headers().get("x-choir-hash").map(Base::Hash),
        404 => Some(Base::Absent),
        _ => None,
    }
}

fn is_stale(failure: &Failure) -> bool {
    failure.problem().is_some_and(|problem| problem.code == "stale")
}

fn hash_after(done: &Done, path: &FilePath) -> Option<Base> {
    let change = done.changes.iter().find(|change| change.path == *path)?;
    match &change.after {
        Some(FileNode::File { hash, .. }) => Some(Base::Hash(hash.to_string())),
        Some(FileNode::Symlink { .. } | FileNode::Folder) | None => None,
    }
}
