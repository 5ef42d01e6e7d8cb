//! What an archive contains, and how an export behaves.

use std::io::{self, Read, Write};

use archive::{Archive, ExportError, Limits, Manifest, export};
use event_log::conformance::sample;
use event_log::{EventLog, MemoryLog};
use kernel::{Action, Base};
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, EffectId, Seq};

use crate::computer::{Computer, NOW, large, node, path, user, verify, with_history};
use crate::repack::{EVENTS, Entries, MANIFEST};

#[test]
fn an_archive_holds_events_contents_and_a_manifest_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let computer = with_history(folder.path());
    let (bytes, manifest) = computer.export();
    let mut entries = Entries::of(&bytes);
    assert_eq!(entries.0.first().unwrap().0, EVENTS);
    assert_eq!(entries.0.last().unwrap().0, MANIFEST);
    assert!(
        entries
            .0
            .iter()
            .all(|(name, _)| [EVENTS, MANIFEST].contains(&&**name) || name.starts_with("contents/"))
    );
    assert_eq!(entries.manifest(), manifest);

    assert_eq!(manifest.format, Manifest::FORMAT);
    assert_eq!((manifest.user, manifest.created), (user("ada"), NOW));
    assert_eq!((manifest.seq, manifest.hash), (computer.head(), computer.log_head().hash));
    assert_eq!(manifest.root, computer.root());
    assert_eq!(manifest.events.sha256, ContentHash::of(entries.get(EVENTS)));
    assert_eq!(manifest.events.size, entries.get(EVENTS).len() as u64);
    assert_eq!(manifest.contents.count, entries.0.len() as u64 - 2);
    assert_eq!(manifest.purged, [ContentHash::of(b"a pasted secret")]);
    assert!(manifest.missing.is_empty());
    verify(&bytes).unwrap();
}

#[test]
fn the_same_computer_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let computer = with_history(folder.path());
    assert_eq!(computer.export().0, computer.export().0);
}

#[test]
fn an_export_of_an_older_seq_omits_later_events() {
    let folder = tempfile::tempdir().unwrap();
    let computer = with_history(folder.path());
    for at in [Seq(0), Seq(1), Seq(2), Seq(4)] {
        let mut out = Vec::new();
        let manifest = export(&*computer.log, at, NOW, &mut out, &|_, _| {}).unwrap();
        assert_eq!(manifest.seq, at);
        let verified = verify(&out).unwrap();
        assert_eq!(verified.view().seq(), at);
        assert_eq!(verified.manifest().contents.count, at.0.saturating_sub(1));
    }
    let beyond = computer.head().next();
    let refused = export(&*computer.log, beyond, NOW, io::sink(), &|_, _| {});
    assert!(matches!(refused, Err(ExportError::NotYet { at, .. }) if at == beyond));
}

#[test]
fn contents_with_a_pending_purge_are_omitted() {
    let folder = tempfile::tempdir().unwrap();
    let computer = Computer::new(folder.path(), "ada");
    computer.write("secret", b"a pasted secret");
    computer.write("kept", b"kept");
    let hash = ContentHash::of(b"a pasted secret");
    let effect = EffectId::from_bytes([9; 16]);
    computer.run(Action::RequestPurge { effect, hashes: vec![hash], reason: "pasted".into() });
    assert!(computer.contents().contains_key(&hash), "the purge is still pending");
    for at in [computer.head(), Seq(3)] {
        let mut out = Vec::new();
        let manifest = export(&*computer.log, at, NOW, &mut out, &|_, _| {}).unwrap();
        assert_eq!((manifest.purged, manifest.contents.count), (vec![hash], 1));
        verify(&out).unwrap();
    }
}

#[test]
fn contents_without_a_reference_are_omitted() {
    let folder = tempfile::tempdir().unwrap();
    let computer = Computer::new(folder.path(), "ada");
    computer.store_bytes(b"no event refers to this");
    computer.write("a", b"named");
    assert_eq!(computer.export().1.contents.count, 1);
}

/// Records the largest write, and fails after `left` bytes.
struct LimitedWriter {
    left: usize,
    largest: usize,
}

impl Write for LimitedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.largest = self.largest.max(bytes.len());
        self.left = self.left.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_at_any_point_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let computer = with_history(folder.path());
    let size = computer.export().0.len();
    for left in (0..size).step_by(size / 97) {
        let refused =
            export(&*computer.log, computer.head(), NOW, LimitedWriter { left, largest: 0 }, &|_, _| {});
        assert!(matches!(refused, Err(ExportError::Write(_) | ExportError::Zip(_))), "{left} of {size}");
    }
}

#[test]
fn many_contents_are_exported_and_imported_as_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let computer = Computer::new(&folder.path().join("ada"), "ada");
    let count = 5_000_u32;
    let contents: Vec<Vec<u8>> = (0..count).map(|n| format!("content {n}").repeat(20).into_bytes()).collect();
    for group in contents.chunks(500) {
        let group = group.iter().map(|bytes| (ContentHash::of(bytes), bytes.clone())).collect();
        computer.log.store(group).unwrap();
    }
    let blob = vec![7; 40 << 20];
    computer.write("blob", &blob);
    let files = contents.iter().enumerate().map(|(n, bytes)| (path(&format!("d/{n}")), node(bytes)));
    let origin = shared_types::payload::system::SystemImport {
        user: user("bob"),
        seq: Seq(1),
        hash: Default::default(),
        files: count.into(),
    };
    computer.run(Action::ImportFiles { origin, files: files.collect() });

    // No single write is anywhere near the whole, and progress reaches its end.
    let mut writer = LimitedWriter { left: usize::MAX, largest: 0 };
    let last = std::cell::Cell::new((0, 1));
    let manifest =
        export(&*computer.log, computer.head(), NOW, &mut writer, &|done, total| last.set((done, total)));
    assert_eq!(manifest.unwrap().contents.count, u64::from(count) + 2);
    assert!(writer.largest <= 256 * 1024, "{}", writer.largest);
    assert_eq!(last.get().0, last.get().1);

    let file = folder.path().join("ada.zip");
    let out = io::BufWriter::new(std::fs::File::create(&file).unwrap());
    export(&*computer.log, computer.head(), NOW, out, &|_, _| {}).unwrap();
    let verified =
        Archive::verify(std::fs::File::open(&file).unwrap(), Limits::default(), &|_, _| {}).unwrap();
    let other = folder.path().join("bob");
    archive::adopt(&verified, &other, user("bob"), &|_, _| {}).unwrap();
    let adopted = Computer::open(&other);
    assert_eq!((adopted.log_head(), adopted.contents()), (computer.log_head(), computer.contents()));
}

#[test]
fn more_contents_than_a_plain_zip_can_list_are_listed() {
    let log = MemoryLog::new(user("ada"));
    while log.head().seq < Seq(66_000) {
        let after = log.head().seq;
        sample::append_one(&log, sample::append(after, 500)).unwrap();
    }
    let mut out = Vec::new();
    export(&log, log.head().seq, NOW, &mut out, &|_, _| {}).unwrap();
    let verified = verify(&out).unwrap();
    assert_eq!(verified.manifest().contents.count, 66_000);
}

/// Run by hand: `cargo nextest run -p choir --test archive --run-ignored only`.
#[test]
#[ignore = "writes 10 GB"]
fn a_content_of_more_than_four_gigabytes_goes_out_and_in() {
    let folder = tempfile::tempdir().unwrap();
    let computer = Computer::new(&folder.path().join("ada"), "ada");
    let staged = computer.log.stage(&mut io::repeat(7).take((4 << 30) + 5)).unwrap();
    let node = FileNode::file(staged.content(), FileNode::DEFAULT_MODE);
    computer.run(Action::WriteFile { path: path("huge"), node, base: Base::Any });
    computer.write("after", b"after the huge one, or before it");
    computer.write("also", &large());
    let file = folder.path().join("ada.zip");
    export(&*computer.log, computer.head(), NOW, std::fs::File::create(&file).unwrap(), &|_, _| {}).unwrap();
    let source = std::fs::File::open(&file).unwrap();
    let verified = Archive::verify(source, Limits::default(), &|_, _| {}).unwrap();
    assert_eq!(verified.manifest().contents.count, 3);
    archive::adopt(&verified, &folder.path().join("bob"), user("bob"), &|_, _| {}).unwrap();
    assert_eq!(Computer::open(&folder.path().join("bob")).log_head(), computer.log_head());
}
