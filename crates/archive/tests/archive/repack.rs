//! Unpacks archives and packs them again with changes.

use std::borrow::Cow;
use std::io::{Cursor, Read, Write};

use archive::Manifest;
use shared_types::{ChainHash, ContentHash, StoredEvent};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

pub(crate) const EVENTS: &str = "log/events.jsonl";
pub(crate) const MANIFEST: &str = "manifest.json";

/// The entries of an archive, in order.
#[derive(Clone)]
pub(crate) struct Entries(pub(crate) Vec<(String, Vec<u8>)>);

impl Entries {
    pub(crate) fn of(archive: &[u8]) -> Self {
        let mut zip = ZipArchive::new(Cursor::new(archive)).unwrap();
        let read = |index| {
            let mut file = zip.by_index(index).unwrap();
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            (file.name().unwrap().into_owned(), bytes)
        };
        Self((0..ZipArchive::new(Cursor::new(archive)).unwrap().len()).map(read).collect())
    }

    pub(crate) fn get(&mut self, name: &str) -> &mut Vec<u8> {
        &mut self.0.iter_mut().find(|(found, _)| found == name).unwrap().1
    }

    pub(crate) fn remove(&mut self, name: &str) {
        self.0.retain(|(found, _)| found != name);
    }

    pub(crate) fn pack(&self) -> Vec<u8> {
        self.pack_with(|_, bytes| match bytes.len() {
            0..=65_536 => CompressionMethod::Deflated,
            _ => CompressionMethod::Stored,
        })
    }

    pub(crate) fn pack_with(&self, method: impl Fn(&str, &[u8]) -> CompressionMethod) -> Vec<u8> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for (name, bytes) in &self.0 {
            let options = SimpleFileOptions::default().compression_method(method(name, bytes));
            zip.start_file(name, options).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    pub(crate) fn manifest(&mut self) -> Manifest {
        serde_json::from_slice(self.get(MANIFEST)).unwrap()
    }

    pub(crate) fn set_manifest(&mut self, manifest: &Manifest) {
        *self.get(MANIFEST) = serde_json::to_vec(manifest).unwrap();
    }

    pub(crate) fn edit_manifest(&mut self, edit: impl FnOnce(&mut Manifest)) {
        let mut manifest = self.manifest();
        edit(&mut manifest);
        self.set_manifest(&manifest);
    }

    /// Makes the hashes, counts and sizes of the manifest match; chain and root stay as they are.
    pub(crate) fn update_totals(&mut self) {
        let events = self.get(EVENTS).clone();
        let sizes: Vec<u64> = self
            .0
            .iter()
            .filter(|(name, _)| name.starts_with("contents/"))
            .map(|(_, bytes)| bytes.len() as u64)
            .collect();
        self.edit_manifest(|manifest| {
            manifest.events.sha256 = ContentHash::of(&events);
            manifest.events.size = events.len() as u64;
            manifest.contents.count = sizes.len() as u64;
            manifest.contents.size = sizes.iter().sum();
        });
    }

    pub(crate) fn events(&mut self) -> Vec<StoredEvent<'static>> {
        self.get(EVENTS)
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// Replaces the events by edited ones, with a new hash chain and a manifest that matches except for the root.
    pub(crate) fn edit_events(&mut self, edit: impl FnOnce(&mut Vec<StoredEvent<'static>>)) {
        let mut events = self.events();
        edit(&mut events);
        let mut previous = ChainHash::default();
        let mut lines = Vec::new();
        for event in &mut events {
            event.hash = event.link(&previous);
            previous = event.hash;
            serde_json::to_writer(&mut lines, event).unwrap();
            lines.push(b'\n');
        }
        *self.get(EVENTS) = lines;
        let seq = events.last().map(|event| event.seq).unwrap_or_default();
        self.edit_manifest(|manifest| (manifest.hash, manifest.seq) = (previous, seq));
        self.update_totals();
    }
}

/// A copy of an event with another type and payload.
pub(crate) fn with(
    event: &StoredEvent<'static>,
    name: &'static str,
    payload: impl Into<String>,
) -> StoredEvent<'static> {
    StoredEvent { name: name.into(), payload: Cow::Owned(payload.into()), ..event.clone() }
}
