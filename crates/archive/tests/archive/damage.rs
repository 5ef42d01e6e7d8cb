//! Every kind of damage and forgery is refused with its own error, and leaves nothing behind.

use std::path::Path;

use archive::{Archive, EntryFault, ImportError, Limits, adopt};
use shared_types::payload::file::FileNode;
use shared_types::{ChainHash, ContentHash, RootHash, Seq};
use zip::CompressionMethod::{Deflated, Stored};

use crate::computer::{Computer, large, listing, user, with_history};
use crate::repack::{EVENTS, Entries, MANIFEST, with};

fn import(archive: Vec<u8>, state_dir: &Path, limits: Limits) -> Result<(), ImportError> {
    adopt(&Archive::verify(archive, limits, &|_, _| {})?, state_dir, user("bob"), &|_, _| {})
}

/// Archives of one computer, and another computer that must not change.
struct Fixture {
    folder: tempfile::TempDir,
    archive: Vec<u8>,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (archive, _) = with_history(&folder.path().join("ada")).export();
        Computer::new(&folder.path().join("bob"), "bob").close();
        Self { folder, archive }
    }

    fn entries(&self) -> Entries {
        Entries::of(&self.archive)
    }

    fn refused_with(&self, archive: Vec<u8>, limits: Limits) -> ImportError {
        let dir = self.folder.path().join("bob");
        let before = listing(&dir);
        let refused = import(archive, &dir, limits).expect_err("it must be refused");
        assert_eq!(listing(&dir), before, "{refused}");
        refused
    }

    fn refused(&self, archive: Vec<u8>) -> ImportError {
        self.refused_with(archive, Limits::default())
    }

    /// The error with which the edited archive is refused.
    fn edited(&self, edit: impl FnOnce(&mut Entries)) -> ImportError {
        let mut entries = self.entries();
        edit(&mut entries);
        self.refused(entries.pack())
    }
}

fn content_name(bytes: &[u8]) -> String {
    let hash = ContentHash::of(bytes).to_string();
    format!("contents/{}/{hash}", &hash[..2])
}

macro_rules! assert_refused {
    ($error:expr, $pattern:pat $(if $guard:expr)?) => {{
        let error = $error;
        assert!(matches!(&error, $pattern $(if $guard)?), "{error:?}");
    }};
}

#[test]
fn a_repacked_archive_is_as_good_as_the_first() {
    let fixture = Fixture::new();
    import(fixture.entries().pack(), &fixture.folder.path().join("new"), Limits::default()).unwrap();
    let stored = fixture.entries().pack_with(|_, _| Stored);
    import(stored, &fixture.folder.path().join("another"), Limits::default()).unwrap();
    let mut turned = fixture.entries();
    turned.0.reverse();
    import(turned.pack(), &fixture.folder.path().join("third"), Limits::default()).unwrap();
}

#[test]
fn a_file_that_is_not_an_archive_is_refused() {
    let fixture = Fixture::new();
    assert_refused!(fixture.refused(Vec::new()), ImportError::Zip(_));
    assert_refused!(fixture.refused(b"PK\x05\x06 but no more".to_vec()), ImportError::Zip(_));
    assert_refused!(fixture.refused(vec![0; 100_000]), ImportError::Zip(_));
    assert_refused!(fixture.refused(Entries(Vec::new()).pack()), ImportError::NoEntry(MANIFEST));
    let length = fixture.archive.len();
    for keep in (0..length).step_by(length / 50) {
        fixture.refused(fixture.archive[..keep].to_vec());
    }
}

#[test]
fn only_the_entries_of_an_archive_may_be_in_it() {
    let fixture = Fixture::new();
    let name = content_name(b"first\n");
    for stray in [
        "readme.txt",
        "../escape",
        "/etc/passwd",
        "contents/",
        "log/",
        "LOG/EVENTS.JSONL",
        "manifest.json ",
        "contents/../manifest.json",
        &name.to_uppercase(),
        &name.replacen("contents/", "contents//", 1),
    ] {
        let error = fixture.edited(|entries| entries.0.push((stray.into(), Vec::new())));
        assert_refused!(error, ImportError::Entry { name, fault: EntryFault::Name } if name == stray);
    }
    for gone in [EVENTS, MANIFEST] {
        assert_refused!(fixture.edited(|p| p.remove(gone)), ImportError::NoEntry(name) if *name == gone);
    }
    let wrong_folder = format!("contents/00/{}", &name[12..]);
    let error =
        fixture.edited(|p| p.0.iter_mut().filter(|e| e.0 == name).for_each(|e| e.0 = wrong_folder.clone()));
    assert_refused!(error, ImportError::Entry { fault: EntryFault::Name, .. });
}

#[test]
fn entries_of_the_wrong_kind_are_refused() {
    let fixture = Fixture::new();
    let (first, second) = (content_name(b"first\n"), content_name(b"second\n"));
    // Two names of the same length: in the bytes of the zip one becomes the other.
    let mut twice = fixture.archive.clone();
    let places: Vec<usize> =
        (0..twice.len() - second.len()).filter(|at| twice[*at..].starts_with(second.as_bytes())).collect();
    for at in places {
        twice[at..at + first.len()].copy_from_slice(first.as_bytes());
    }
    assert_refused!(fixture.refused(twice), ImportError::Duplicate);

    let deflated = fixture.entries().pack_with(|_, _| Deflated);
    assert_refused!(fixture.refused(deflated), ImportError::Entry { fault: EntryFault::Deflated, .. });

    let at = find_directory(&fixture.archive);
    let with_flags = |offset: usize, byte: u8| {
        let mut bytes = fixture.archive.clone();
        bytes[at + offset] |= byte;
        fixture.refused(bytes)
    };
    assert_refused!(with_flags(8, 1), ImportError::Entry { fault: EntryFault::Encrypted, .. });
    assert_refused!(with_flags(10, 0x40), ImportError::Entry { fault: EntryFault::Method, .. });
    assert_refused!(with_flags(41, 0x20), ImportError::Entry { fault: EntryFault::Kind, .. });
    let mut commented = fixture.archive.clone();
    let end = commented.len();
    commented[end - 2] = 4;
    commented.extend(b"more");
    assert_refused!(fixture.refused(commented), ImportError::Stray(_));
    let mut before = b"#!/bin/sh\n".to_vec();
    before.extend(&fixture.archive);
    assert_refused!(fixture.refused(before), ImportError::Zip(_));
}

/// Where the zip's directory begins.
fn find_directory(archive: &[u8]) -> usize {
    (0..archive.len()).find(|at| archive[*at..].starts_with(b"PK\x01\x02")).unwrap()
}

#[test]
fn a_manifest_that_says_something_else_is_refused() {
    let fixture = Fixture::new();
    let hash = ContentHash::of(b"never seen");
    let edited = |edit: &dyn Fn(&mut archive::Manifest)| fixture.edited(|p| p.edit_manifest(edit));
    assert_refused!(fixture.edited(|p| *p.get(MANIFEST) = b"{".to_vec()), ImportError::Manifest { .. });
    assert_refused!(fixture.edited(|p| *p.get(MANIFEST) = Vec::new()), ImportError::Manifest { .. });
    assert_refused!(edited(&|m| m.format = "tar".into()), ImportError::Manifest { .. });
    assert_refused!(edited(&|m| m.version = 3), ImportError::Version { found: 3, known: 2 });
    assert_refused!(edited(&|m| m.seq = m.seq.next()), ImportError::End { .. });
    assert_refused!(edited(&|m| m.hash = ChainHash([1; 32])), ImportError::Head { .. });
    assert_refused!(edited(&|m| m.root = RootHash([1; 32])), ImportError::Root { .. });
    assert_refused!(edited(&|m| m.events.size += 1), ImportError::Sum { .. });
    assert_refused!(edited(&|m| m.events.sha256 = hash), ImportError::EventsHash);
    assert_refused!(edited(&|m| m.contents.count += 1), ImportError::Sum { .. });
    assert_refused!(edited(&|m| m.contents.size -= 1), ImportError::Sum { .. });
    assert_refused!(edited(&|m| m.missing = vec![hash]), ImportError::Unnamed(found) if *found == hash);
    assert_refused!(edited(&|m| m.missing = vec![hash, hash]), ImportError::Manifest { .. });
    let here = ContentHash::of(b"first\n");
    assert_refused!(edited(&|m| m.missing = vec![here]), ImportError::NotAbsent(found) if *found == here);
    assert_refused!(edited(&|m| m.purged.clear()), ImportError::NoContent { .. });
    let unknown = fixture.edited(|p| {
        let text = String::from_utf8(p.get(MANIFEST).clone()).unwrap();
        *p.get(MANIFEST) = text.replacen('{', "{\"more\":1,", 1).into_bytes();
    });
    assert_refused!(unknown, ImportError::Manifest { .. });
}

#[test]
fn contents_that_are_wrong_missing_or_unasked_for_are_refused() {
    let fixture = Fixture::new();
    let name = content_name(b"first\n");
    let swapped = fixture.edited(|p| *p.get(&name) = b"f1rst\n".to_vec());
    assert_refused!(swapped, ImportError::WrongContent(hash) if *hash == ContentHash::of(b"first\n"));
    let blob = fixture.edited(|p| p.get(&content_name(&large()))[100_000] ^= 1);
    assert_refused!(blob, ImportError::WrongContent(hash) if *hash == ContentHash::of(&large()));
    let gone = fixture.edited(|p| {
        p.remove(&name);
        p.update_totals();
    });
    assert_refused!(gone, ImportError::NoContent { seq: Seq(2), .. });
    let more = fixture.edited(|p| {
        p.0.push((content_name(b"more"), b"more".to_vec()));
        p.update_totals();
    });
    assert_refused!(more, ImportError::Unnamed(hash) if *hash == ContentHash::of(b"more"));

    // A list that is declared absent cannot be replayed.
    let mut entries = fixture.entries();
    let batch = entries.events().into_iter().find(|event| event.name == "file.batch").unwrap();
    let list: serde_json::Value = serde_json::from_str(&batch.payload).unwrap();
    let list = ContentHash::parse(list["list"]["hash"].as_str().unwrap()).unwrap();
    let digits = list.to_string();
    entries.remove(&format!("contents/{}/{digits}", &digits[..2]));
    entries.update_totals();
    entries.edit_manifest(|m| m.missing = vec![list]);
    assert_refused!(fixture.refused(entries.pack()), ImportError::NoList { hash, .. } if *hash == list);
}

#[test]
fn events_that_do_not_follow_each_other_are_refused() {
    let fixture = Fixture::new();
    let lines = |edit: &dyn Fn(&mut Vec<String>)| {
        fixture.edited(|p| {
            let text = String::from_utf8(p.get(EVENTS).clone()).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            edit(&mut lines);
            *p.get(EVENTS) = lines.iter().flat_map(|line| [line, "\n"].concat().into_bytes()).collect();
            p.update_totals();
        })
    };
    assert_refused!(lines(&|l| l[1] = l[1].replace("today", "toDay")), ImportError::Unlinked { seq: Seq(2) });
    assert_refused!(lines(&|l| drop(l.remove(1))), ImportError::Misplaced { line: 2, found: Seq(3) });
    assert_refused!(lines(&|l| l.swap(1, 2)), ImportError::Misplaced { line: 2, .. });
    assert_refused!(lines(&|l| l.insert(1, l[0].clone())), ImportError::Misplaced { line: 2, .. });
    assert_refused!(lines(&|l| drop(l.pop())), ImportError::End { .. });
    assert_refused!(lines(&|l| l[1] = "{}".into()), ImportError::Line { line: 2, .. });
    assert_refused!(lines(&|l| l[1].clear()), ImportError::Line { line: 2, .. });
    assert_refused!(lines(&|l| l[1].insert(0, ' ')), ImportError::Line { line: 2, .. });
    assert_refused!(lines(&|l| l[1].insert_str(1, "\"extra\":1,")), ImportError::Line { line: 2, .. });
    let cut = fixture.edited(|p| {
        p.get(EVENTS).pop();
        p.update_totals();
    });
    assert_refused!(cut, ImportError::Line { .. });
    let not_text = fixture.edited(|p| {
        p.get(EVENTS)[40] = 0xff;
        p.update_totals();
    });
    assert_refused!(not_text, ImportError::Line { line: 1, .. });
}

#[test]
fn a_well_linked_log_that_no_kernel_wrote_is_refused() {
    let fixture = Fixture::new();
    let forged = |name: &'static str, payload: String| {
        fixture.edited(|p| p.edit_events(|events| events[1] = with(&events[1], name, payload.clone())))
    };
    assert_refused!(forged("file.write", "{}".into()), ImportError::Undecodable { seq: Seq(2), .. });
    assert_refused!(forged("setting.set", r#"{"key":"a","value":1}"#.into()), ImportError::Root { .. });
    let link = serde_json::json!({"path": "out", "node": FileNode::Symlink { target: "../../etc".into() }});
    assert_refused!(forged("file.write", link.to_string()), ImportError::LinkLeaves { seq: Seq(2), .. });
    let below = serde_json::json!({"path": "empty/below", "node": FileNode::Folder});
    assert_refused!(forged("file.write", below.to_string()), ImportError::NotATree { .. });
    let list = ContentHash::of(&large());
    let batch = serde_json::json!({"list": {"hash": list, "size": 3}, "count": 3});
    assert_refused!(forged("file.batch", batch.to_string()), ImportError::Batch { seq: Seq(2), .. });
}

#[test]
fn sizes_that_lie_and_bombs_are_refused() {
    let fixture = Fixture::new();
    // The size in the zip's directory, of the first entry: the events.
    let at = find_directory(&fixture.archive);
    let mut lying = fixture.archive.clone();
    lying[at + 24] ^= 1;
    assert_refused!(fixture.refused(lying), ImportError::Sum { .. } | ImportError::Zip(_));

    let bomb = fixture.edited(|p| {
        *p.get(EVENTS) = vec![b' '; 200 << 20];
        p.update_totals();
    });
    assert_refused!(bomb, ImportError::TooLarge { .. });
    let tight = |limits: Limits| fixture.refused_with(fixture.archive.clone(), limits);
    let limits = Limits::default();
    assert_refused!(tight(Limits { line: 200, ..limits }), ImportError::TooLarge { what, .. } if what.contains("line 1 "));
    assert_refused!(tight(Limits { list: 1000, ..limits }), ImportError::TooLarge { what, .. } if what.contains("list"));
    assert_refused!(tight(Limits { manifest: 100, ..limits }), ImportError::TooLarge { .. });
    assert_refused!(tight(Limits { directory: 20_000, ..limits }), ImportError::Zip(_));
    assert_refused!(tight(Limits { ratio: 0, unpacked: 1000, ..limits }), ImportError::TooLarge { .. });
}

#[test]
fn an_archive_of_before_another_view_is_taken_for_its_chain_and_contents() {
    let fixture = Fixture::new();
    let mut entries = fixture.entries();
    entries.edit_manifest(|m| (m.view, m.root) = (m.view - 1, RootHash([1; 32])));
    let mut verified = Archive::verify(entries.pack(), Limits::default(), &|_, _| {}).unwrap();
    assert_eq!(verified.manifest().root, RootHash([1; 32]));
    entries.edit_manifest(|m| m.hash = ChainHash([1; 32]));
    assert_refused!(fixture.refused(entries.pack()), ImportError::Head { .. });
    // The first archives do not name a view at all.
    let mut entries = fixture.entries();
    let mut manifest: serde_json::Value = serde_json::from_slice(entries.get(MANIFEST)).unwrap();
    manifest["version"] = 1.into();
    manifest.as_object_mut().unwrap().remove("view");
    *entries.get(MANIFEST) = serde_json::to_vec(&manifest).unwrap();
    verified = Archive::verify(entries.pack(), Limits::default(), &|_, _| {}).unwrap();
    assert_eq!((verified.manifest().version, verified.manifest().view), (1, 1));
}

#[test]
fn any_flipped_byte_is_refused_or_changes_nothing() {
    let fixture = Fixture::new();
    let verified = Archive::verify(fixture.archive.clone(), Limits::default(), &|_, _| {}).unwrap();
    let (hash, root) = (verified.manifest().hash, verified.manifest().root);
    let step = fixture.archive.len() / 1500;
    for at in (0..fixture.archive.len()).step_by(step) {
        let mut bytes = fixture.archive.clone();
        bytes[at] ^= 0x10;
        if let Ok(verified) = Archive::verify(bytes, Limits::default(), &|_, _| {}) {
            assert_eq!((verified.manifest().hash, verified.manifest().root), (hash, root), "byte {at}");
        }
    }
}
