//! Verifies an archive: reads everything once and writes nothing.
//!
//! A verified archive has an unbroken hash chain, every required content (or a declaration that it is absent), and
//! the root of the manifest.

use std::collections::{BTreeMap, BTreeSet};

use event_log::find_hashes;
use kernel::{VIEW_VERSION, View, evolve};
use shared_types::path::link_stays_inside;
use shared_types::payload::file::{FileChange, FileEvent, FileNode};
use shared_types::{ContentHash, Event, FilePath, Payload, Seq, StoredEvent};

use super::events::Events;
use super::open::{Archive, Zip};
use super::references::{each_required_content, refers_to_lists};
use super::{ImportError, Limits, Manifest, Progress, Source};

/// A verified archive, with the view that its log produces.
#[derive(Debug)]
pub struct Verified {
    pub(super) archive: Archive,
    pub(super) view: View,
}

impl Verified {
    pub fn manifest(&self) -> &Manifest {
        self.archive.manifest()
    }

    /// The view at the end of the archive's log.
    pub fn view(&self) -> &View {
        &self.view
    }
}

impl Archive {
    /// Opens an archive and verifies all of it.
    pub fn verify(
        source: impl Source + 'static,
        limits: Limits,
        progress: Progress<'_>,
    ) -> Result<Verified, ImportError> {
        Self::open(source, limits)?.verify_opened(progress)
    }

    /// Verifies all of an opened archive.
    pub fn verify_opened(self, progress: Progress<'_>) -> Result<Verified, ImportError> {
        let total = self.manifest().events.size.saturating_add(self.manifest().contents.size);
        let mut verifier = Verifier::new(&self);
        let mut zip = self.zip();
        let mut events = Events::new(&self, &mut zip)?;
        while let Some(stored) = events.next() {
            verifier.check_event(&stored?)?;
            progress(events.position(), total);
        }
        drop(events);
        let view = verifier.finish()?;

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

/// The state of a verification while it reads the events.
struct Verifier<'a> {
    archive: &'a Archive,
    zip: Zip,
    view: View,
    /// Contents to which no event has referred yet: those in the archive, and those declared absent.
    unreferenced: BTreeSet<ContentHash>,
    absent: BTreeSet<ContentHash>,
    /// Bytes of lists that may still be unpacked: several events may refer to the same list.
    list_bytes_left: u64,
}

impl<'a> Verifier<'a> {
    fn new(archive: &'a Archive) -> Self {
        let absent: BTreeSet<ContentHash> = archive.manifest().absent().collect();
        Self {
            archive,
            zip: archive.zip(),
            view: View::default(),
            unreferenced: archive.contents().chain(absent.iter().copied()).collect(),
            absent,
            list_bytes_left: archive.limits().unpacked(archive.size()),
        }
    }

    fn check_event(&mut self, stored: &StoredEvent<'_>) -> Result<(), ImportError> {
        let seq = stored.seq;
        let mut event = stored.decode().map_err(|source| ImportError::Undecodable { seq, source })?;
        let mut lists = BTreeMap::new();
        find_hashes(stored.payload.as_bytes(), &mut |hash| {
            self.unreferenced.remove(&hash);
            if refers_to_lists(stored) {
                lists.insert(hash, None);
            }
        });
        for (hash, list) in &mut lists {
            if let Some(bytes) = self.list(*hash)? {
                find_hashes(&bytes, &mut |hash| {
                    self.unreferenced.remove(&hash);
                });
                *list = Some(bytes);
            }
        }
        if let Payload::File(FileEvent::Batch(batch)) = &mut event.payload {
            let hash = batch.list.hash;
            let list = lists.get(&hash).and_then(Option::as_ref).ok_or(ImportError::NoList { seq, hash })?;
            batch.attach(list).map_err(|source| ImportError::Batch { seq, source })?;
        }
        self.check_required_contents(&event)?;
        check_links(&event)?;
        evolve(&mut self.view, &event);
        Ok(())
    }

    /// Reads a list, if the archive holds it.
    fn list(&mut self, hash: ContentHash) -> Result<Option<Vec<u8>>, ImportError> {
        let Some(size) = self.archive.content_size(&hash) else { return Ok(None) };
        let limit = self.archive.limits().list.min(self.list_bytes_left);
        if size > limit {
            return Err(ImportError::TooLarge { what: format!("the list {hash}"), size, limit });
        }
        self.list_bytes_left -= size;
        self.archive.read_content(&mut self.zip, hash).map(Some)
    }

    fn check_required_contents(&self, event: &Event) -> Result<(), ImportError> {
        let mut missing = None;
        each_required_content(event, &mut |hash| {
            if self.archive.content_size(&hash).is_none() && !self.absent.contains(&hash) {
                missing = Some(hash);
            }
        });
        match missing {
            Some(hash) => Err(ImportError::NoContent { seq: event.seq, hash }),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<View, ImportError> {
        if let Some(hash) = self.unreferenced.first() {
            return Err(ImportError::Unnamed(*hash));
        }
        check_tree(&self.view)?;
        let (declared, found) = (self.archive.manifest().root, self.view.root());
        // A root of another view version cannot be compared; the chain and the contents were checked.
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

/// The kernel never records such a link; in the workspace it would point outside.
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
