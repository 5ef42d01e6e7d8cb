//! Verifying an archive: everything is read once, nothing is written.
//!
//! What passes is a log that this program could have written itself: linked from the first event to the head, with
//! every content that its events need or the word that it is absent, and with the root that the manifest says.

use std::collections::{BTreeMap, BTreeSet};

use event_log::find_hashes;
use kernel::{VIEW_VERSION, View, evolve};
use shared_types::path::link_stays_inside;
use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::{ContentHash, Event, FilePath, Payload, Seq, StoredEvent};

use super::events::Events;
use super::naming::{each_needed, names_lists};
use super::open::{Archive, Zip};
use super::{ImportError, Limits, Manifest, Progress, Source};

/// An archive that holds what it says, with the state that its log leads to.
#[derive(Debug)]
pub struct Verified {
    pub(super) archive: Archive,
    pub(super) view: View,
}

impl Verified {
    pub fn manifest(&self) -> &Manifest {
        self.archive.manifest()
    }

    /// The computer as the archive's log leaves it.
    pub fn view(&self) -> &View {
        &self.view
    }
}

impl Archive {
    /// Opens an archive and reads all of it.
    pub fn verify(
        source: impl Source + 'static,
        limits: Limits,
        progress: Progress<'_>,
    ) -> Result<Verified, ImportError> {
        Self::open(source, limits)?.verified(progress)
    }

    /// Reads all of an opened archive.
    pub fn verified(self, progress: Progress<'_>) -> Result<Verified, ImportError> {
        let total = self.manifest().events.size.saturating_add(self.manifest().contents.size);
        let mut checker = Checker::new(&self);
        let mut zip = self.zip();
        let mut events = Events::new(&self, &mut zip)?;
        while let Some(stored) = events.next() {
            checker.take(&stored?)?;
            progress(events.position(), total);
        }
        drop(events);
        let view = checker.finish()?;

        let mut done = self.manifest().events.size;
        for hash in self.contents() {
            self.check_content(&mut zip, hash, &mut |piece| {
                done = done.saturating_add(piece.len() as u64);
                progress(done, total);
            })?;
        }
        Ok(Verified { archive: self, view })
    }
}

/// What is known of an archive while its events go by.
struct Checker<'a> {
    archive: &'a Archive,
    zip: Zip,
    view: View,
    /// Contents that no event has named yet: those in the archive, and those declared absent.
    unnamed: BTreeSet<ContentHash>,
    absent: BTreeSet<ContentHash>,
    /// How many bytes of lists may still be unpacked: each event may name the same one again.
    lists: u64,
}

impl<'a> Checker<'a> {
    fn new(archive: &'a Archive) -> Self {
        let absent: BTreeSet<ContentHash> = archive.manifest().absent().collect();
        Self {
            archive,
            zip: archive.zip(),
            view: View::default(),
            unnamed: archive.contents().chain(absent.iter().copied()).collect(),
            absent,
            lists: archive.limits().unpacked(archive.size()),
        }
    }

    fn take(&mut self, stored: &StoredEvent<'_>) -> Result<(), ImportError> {
        let seq = stored.seq;
        let mut event = stored.decode().map_err(|source| ImportError::Undecodable { seq, source })?;
        let mut lists = BTreeMap::new();
        find_hashes(stored.payload.as_bytes(), &mut |hash| {
            self.unnamed.remove(&hash);
            if names_lists(stored) {
                lists.insert(hash, None);
            }
        });
        for (hash, list) in &mut lists {
            if let Some(bytes) = self.list(*hash)? {
                find_hashes(&bytes, &mut |hash| {
                    self.unnamed.remove(&hash);
                });
                *list = Some(bytes);
            }
        }
        if let Payload::File(FileEvent::Batch(batch)) = &mut event.payload {
            let hash = batch.list.hash;
            let list = lists.get(&hash).and_then(Option::as_ref).ok_or(ImportError::NoList { seq, hash })?;
            batch.attach(list).map_err(|source| ImportError::Batch { seq, source })?;
        }
        self.check_needed(&event)?;
        check_links(&event)?;
        evolve(&mut self.view, &event);
        Ok(())
    }

    /// The list behind a name, if the archive holds it.
    fn list(&mut self, hash: ContentHash) -> Result<Option<Vec<u8>>, ImportError> {
        let Some(size) = self.archive.content_size(&hash) else { return Ok(None) };
        let limit = self.archive.limits().list.min(self.lists);
        if size > limit {
            return Err(ImportError::TooLarge { what: format!("the list {hash}"), size, limit });
        }
        self.lists -= size;
        self.archive.read_content(&mut self.zip, hash).map(Some)
    }

    fn check_needed(&self, event: &Event) -> Result<(), ImportError> {
        let mut lacking = None;
        each_needed(event, &mut |hash| {
            if self.archive.content_size(&hash).is_none() && !self.absent.contains(&hash) {
                lacking = Some(hash);
            }
        });
        match lacking {
            Some(hash) => Err(ImportError::NoContent { seq: event.seq, hash }),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<View, ImportError> {
        if let Some(hash) = self.unnamed.first() {
            return Err(ImportError::Unnamed(*hash));
        }
        check_tree(&self.view)?;
        let (declared, found) = (self.archive.manifest().root, self.view.root());
        // What another version hashed cannot be compared; the chain and the contents were.
        if declared == found || self.archive.manifest().view != VIEW_VERSION {
            Ok(self.view)
        } else {
            Err(ImportError::Root { declared, found })
        }
    }
}

fn check_links(event: &Event) -> Result<(), ImportError> {
    match &event.payload {
        Payload::File(FileEvent::Batch(batch)) => {
            batch.changes.iter().try_for_each(|change| check_link(change, event.seq))
        }
        Payload::File(file @ (FileEvent::Write(_) | FileEvent::Delete(_) | FileEvent::Move(_))) => {
            file.changes().iter().try_for_each(|change| check_link(change, event.seq))
        }
        Payload::Window(_)
        | Payload::Setting(_)
        | Payload::Message(_)
        | Payload::Note(_)
        | Payload::Checkpoint(_)
        | Payload::Tool(_)
        | Payload::Run(_)
        | Payload::Task(_)
        | Payload::Llm(_)
        | Payload::Capability(_)
        | Payload::Revert(_)
        | Payload::User(_)
        | Payload::System(_)
        | Payload::Unknown(_) => Ok(()),
    }
}

/// No log that the kernel decided holds such a link, and one in the workspace would reach out of it.
fn check_link(change: &FileChange, seq: Seq) -> Result<(), ImportError> {
    let (path, node) = match change {
        FileChange::Write(p) => (&p.path, &p.node),
        FileChange::Move(p) => (&p.to, &p.node),
        FileChange::Delete(_) => return Ok(()),
    };
    match node {
        FileNode::Symlink { target } if !link_stays_inside(path, target) => {
            Err(ImportError::LinkLeaves { seq, path: path.clone() })
        }
        FileNode::Symlink { .. } | FileNode::File { .. } | FileNode::Folder => Ok(()),
    }
}

fn check_tree(view: &View) -> Result<(), ImportError> {
    let stands_on_file = |path: &FilePath| {
        path.ancestors().any(|above| view.files.get(&above).is_some_and(|node| *node != FileNode::Folder))
    };
    match view.files.iter().map(|(path, _)| path).filter(|path| stands_on_file(path)).min() {
        Some(path) => Err(ImportError::NotATree { path: path.clone() }),
        None => Ok(()),
    }
}
