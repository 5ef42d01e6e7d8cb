//! What a commit contains, what it omits, and how commits follow each other.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use checkpoints::{CheckpointError, CommitFiles, CommitId, CommitRequest, OmissionReason};
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, EffectId, Seq, Timestamp, UserId};

use crate::fixture::{Fixture, git, link, open, path};

#[test]
fn a_full_commit_holds_the_files_with_their_modes_and_leads_back_to_the_log() {
    let mut fixture = Fixture::new();
    let files = vec![
        ("a.txt", fixture.file("one\n", 0o644)),
        ("bin/run", fixture.file("#!/bin/sh\n", 0o755)),
        ("bin/same", fixture.file("one\n", 0o600)),
        ("empty", fixture.file("", 0o644)),
        ("link", link("bin/run")),
    ];
    let made = fixture.full(files);
    let expected = [
        ("a.txt", 0o100644, "one\n"),
        ("bin/run", 0o100755, "#!/bin/sh\n"),
        ("bin/same", 0o100644, "one\n"),
        ("empty", 0o100644, ""),
        ("link", 0o120000, "bin/run"),
    ];
    let expected = expected.map(|(name, mode, text)| (name.to_owned(), (mode, text.as_bytes().to_vec())));
    assert_eq!(fixture.read(&made.id), BTreeMap::from(expected));
    assert_eq!((made.seq, made.omitted.len()), (Seq(1), 0));
    assert_eq!(fixture.repo.head().unwrap().as_ref(), Some(&made.id));
    assert!(fixture.repo.has(&made.id).unwrap());
    let shown = git(fixture.repo.path(), &["show", "-s", "--format=%an <%ae> %at%n%B", "main"]);
    let effect = EffectId::from_bytes([1; 16]);
    let wanted = format!(
        "ada <ada@choiros.invalid> 1700000000\nBefore lunch\n\nChoir-Seq: 1\nChoir-Effect: {effect}\n\n"
    );
    assert_eq!(String::from_utf8(shown).unwrap(), wanted);
    fixture.repo.verify().unwrap();
}

#[test]
fn changes_build_on_the_commit_before() {
    let mut fixture = Fixture::new();
    let keep = fixture.file("keep", 0o644);
    let script = fixture.file("script", 0o644);
    let first = fixture.full(vec![
        ("keep", keep.clone()),
        ("gone", keep.clone()),
        ("old/name", script),
        ("script", keep.clone()),
        ("was-file", keep.clone()),
        ("was-folder/x", keep.clone()),
        ("folder/inside", keep.clone()),
    ]);
    let script = fixture.file("script", 0o755);
    let changes = vec![
        // A folder's own node comes and goes; what is in it stays.
        ("folder", None),
        ("was-file/now/below", Some(keep.clone())),
        ("was-file", None),
        ("was-folder", Some(script.clone())),
        ("was-folder/x", None),
        ("gone", None),
        ("never-there", None),
        ("old/name", None),
        ("new/name", Some(script.clone())),
        ("script", Some(fixture.file("keep", 0o755))),
        ("pointer", Some(link("keep"))),
    ];
    let second = fixture.since(&first.id, changes);
    let read = fixture.read(&second.id);
    let modes = read.iter().map(|(path, (mode, _))| (path.as_str(), *mode)).collect::<Vec<_>>();
    let expected = [
        ("folder/inside", 0o100644),
        ("keep", 0o100644),
        ("new/name", 0o100755),
        ("pointer", 0o120000),
        ("script", 0o100755),
        ("was-file/now/below", 0o100644),
        ("was-folder", 0o100755),
    ];
    assert_eq!(modes, expected);
    assert_eq!(fixture.paths(&first.id).len(), 7, "the commit before is as it was");
    let third = fixture
        .since(&second.id, vec![("pointer", Some(FileNode::Folder)), ("folder", Some(FileNode::Folder))]);
    assert!(!fixture.paths(&third.id).contains(&"pointer".to_owned()), "a folder replaced the link");
    assert!(fixture.paths(&third.id).contains(&"folder/inside".to_owned()));
    assert_eq!(git(fixture.repo.path(), &["rev-list", "--count", "main"]), b"3\n");
    fixture.repo.verify().unwrap();
}

#[test]
fn hostile_names_arrive_byte_for_byte() {
    let mut fixture = Fixture::new();
    let mut names = vec![
        "with space/ end ",
        "\"quoted\"",
        "new\nline",
        "tab\tand\rreturn",
        "-rf",
        "--help",
        "ünï/日本語/🎼",
        "e\u{301}",
        "é",
        "back\\slash\\",
        "\\",
        "$(touch x)",
        "`x`",
        "*",
        "?[a]",
        "a\u{1}b\u{7f}",
        "M 100644 :1 x\nD keep",
        "'",
        "#x",
        "nul",
        "A",
        "a",
        ".gitmodules",
        ".gitattributes",
        ":(exclude)x",
        "~",
        "HEAD",
    ];
    let files = names.iter().map(|name| (*name, fixture.file(name, 0o644))).collect();
    let made = fixture.full(files);
    let read = fixture.read(&made.id);
    names.sort_unstable();
    assert_eq!(read.keys().map(String::as_str).collect::<Vec<_>>(), names);
    assert!(read.iter().all(|(name, (_, bytes))| name.as_bytes() == bytes));
    let second = fixture.since(&made.id, names.iter().map(|name| (*name, None)).collect());
    assert_eq!(fixture.paths(&second.id), Vec::<String>::new());
}

#[test]
fn paths_that_git_cannot_store_are_omitted() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let made = fixture.full(vec![
        ("project/.git/config", node.clone()),
        (".GIT/hooks/post-checkout", node.clone()),
        ("git~1", node.clone()),
        (".g\u{200c}it/x", node.clone()),
        (".gitmodules", link("project")),
        ("nothing/in/here", FileNode::Folder),
        ("project/.gitignore", node.clone()),
    ]);
    assert_eq!(fixture.paths(&made.id), ["project/.gitignore"]);
    assert!(made.omitted.is_empty());
    let changes = vec![("project/.git/config", None), (".git", Some(node)), ("nothing/in/here", None)];
    let second = fixture.since(&made.id, changes);
    assert_eq!(fixture.paths(&second.id), ["project/.gitignore"]);
    let only_folders = fixture.full(vec![("a", FileNode::Folder)]);
    assert_eq!(fixture.paths(&only_folders.id), Vec::<String>::new());
    git(fixture.repo.path(), &["fsck", "--strict"]);
}

#[test]
fn the_same_effect_is_committed_once() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let first = fixture.commit_as(7, None, CommitFiles::All(vec![(path("a"), node.clone())])).unwrap();
    let again = fixture.commit_as(7, None, CommitFiles::All(Vec::new())).unwrap();
    assert_eq!(again, first);
    // After a crash the caller does not know the commit yet, so its parent is the one before.
    let reopened = open(fixture.dir.path()).unwrap();
    drop(std::mem::replace(&mut fixture.repo, reopened));
    let again =
        fixture.commit_as(7, None, CommitFiles::ChangedSinceParent(vec![(path("b"), Some(node))])).unwrap();
    assert_eq!((again.id, again.seq), (first.id, Seq(7)));
    assert_eq!(git(fixture.repo.path(), &["rev-list", "--count", "main"]), b"1\n");
}

#[test]
fn a_parent_that_is_not_the_newest_needs_a_full_commit() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x", 0o644);
    let change = || CommitFiles::ChangedSinceParent(vec![(path("b"), Some(node.clone()))]);
    let refused = |fixture: &Fixture, parent| fixture.commit_as(99, parent, change()).unwrap_err();
    assert!(matches!(refused(&fixture, None), CheckpointError::NeedsFull));
    let first = fixture.full(vec![("a", node.clone())]);
    let second = fixture.since(&first.id, vec![]);
    for parent in [Some(first.id.clone()), Some(CommitId::parse(&"ab".repeat(20)).unwrap()), None] {
        assert!(matches!(refused(&fixture, parent), CheckpointError::NeedsFull));
    }
    assert_eq!(fixture.repo.head().unwrap(), Some(second.id.clone()));

    fs::remove_dir_all(fixture.repo.path()).unwrap();
    fixture.repo = open(fixture.dir.path()).unwrap();
    assert!(matches!(refused(&fixture, Some(second.id.clone())), CheckpointError::NeedsFull));
    assert!(!fixture.repo.has(&second.id).unwrap());
    let anew = fixture.full(vec![("a", node.clone())]);
    assert_eq!(fixture.paths(&anew.id), ["a"]);
}

#[test]
fn a_missing_content_omits_only_its_own_file() {
    let mut fixture = Fixture::new();
    let secret = fixture.file("hunter2", 0o600);
    let keep = fixture.file("keep", 0o644);
    let first = fixture.full(vec![("secret", keep.clone()), ("keep", keep.clone())]);
    let lost = fixture.file("lost", 0o644);
    let long = fixture.file("long".repeat(100_000), 0o644);
    fixture.purged.push(secret.content().unwrap().hash);
    fixture.contents.remove(&lost.content().unwrap().hash);
    fixture.contents.get_mut(&long.content().unwrap().hash).unwrap().truncate(70_000);
    let changes = vec![
        ("secret", Some(secret.clone())),
        ("lost", Some(lost)),
        ("short", Some(long)),
        ("copy", Some(secret)),
        ("z", Some(keep)),
    ];
    let made = fixture.since(&first.id, changes);
    assert_eq!(fixture.paths(&made.id), ["keep", "z"], "an older content does not stand for a purged one");
    let omitted = made.omitted.iter().map(|left| (left.path.as_str(), left.reason)).collect::<Vec<_>>();
    let expected = [
        ("secret", OmissionReason::Purged),
        ("lost", OmissionReason::Missing),
        ("short", OmissionReason::Damaged),
        ("copy", OmissionReason::Purged),
    ];
    assert_eq!(omitted, expected);
    fixture.repo.verify().unwrap();
}

#[test]
fn a_storage_error_fails_the_checkpoint_and_leaves_the_branch_unchanged() {
    let mut fixture = Fixture::new();
    let node = fixture.file("x".repeat(200_000), 0o644);
    let first = fixture.full(vec![("a", node.clone())]);
    let request = CommitRequest {
        effect: EffectId::from_bytes([9; 16]),
        seq: Seq(9),
        user: UserId::parse("ada").unwrap(),
        ts: Timestamp::from_millis(0),
        message: "",
        parent: Some(first.id.clone()),
        changes: CommitFiles::ChangedSinceParent(vec![(
            path("b"),
            Some(fixture.file("y".repeat(200_000), 0o644)),
        )]),
    };
    struct Broken(u32);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 2 { Err(std::io::Error::other("disk on fire")) } else { Ok(buffer.len().min(1000)) }
        }
    }
    let error = fixture.repo.commit(&request, &mut |_| Ok(Box::new(Broken(0)))).unwrap_err();
    assert!(matches!(&error, CheckpointError::Content { path, .. } if path.as_str() == "b"), "{error:?}");
    assert_eq!(fixture.repo.head().unwrap(), Some(first.id));
    fixture.repo.verify().unwrap();
}

#[test]
fn a_large_file_is_streamed() {
    /// Bytes that no buffer holds: the number of a block, over and over.
    struct Blocks {
        left: usize,
    }
    impl Read for Blocks {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let n = buffer.len().min(self.left);
            let block = (self.left / 4096).to_le_bytes();
            buffer[..n].iter_mut().zip(block.iter().cycle()).for_each(|(b, v)| *b = *v);
            self.left -= n;
            Ok(n)
        }
    }
    const SIZE: usize = 50 << 20;
    let fixture = Fixture::new();
    let content = ContentRef { hash: ContentHash::of(b"large"), size: SIZE as u64 };
    let request = CommitRequest {
        effect: EffectId::from_bytes([1; 16]),
        seq: Seq(1),
        user: UserId::parse("ada").unwrap(),
        ts: Timestamp::from_millis(0),
        message: "",
        parent: None,
        changes: CommitFiles::All(vec![(path("large"), FileNode::file(content, 0o644))]),
    };
    let made = fixture.repo.commit(&request, &mut |_| Ok(Box::new(Blocks { left: SIZE }))).unwrap();
    assert!(made.omitted.is_empty());
    let size = git(fixture.repo.path(), &["cat-file", "-s", "main:large"]);
    assert_eq!(String::from_utf8(size).unwrap().trim(), SIZE.to_string());
    fixture.repo.verify().unwrap();
}

#[test]
fn many_files_and_many_commits_work_and_packs_are_joined() {
    let mut fixture = Fixture::new();
    let names = (0..1000).map(|n| format!("d{}/f{n}", n % 10)).collect::<Vec<_>>();
    let files = names.iter().map(|name| (name.as_str(), fixture.file(name, 0o644))).collect();
    let mut last = fixture.full(files);
    assert_eq!(fixture.paths(&last.id).len(), 1000);
    for n in 0..55 {
        let node = fixture.file(format!("version {n}"), 0o644);
        last = fixture.since(&last.id, vec![("d0/f0", Some(node))]);
    }
    let packs = |fixture: &Fixture| {
        let folder = fs::read_dir(fixture.repo.path().join("objects/pack")).unwrap();
        folder.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack")).count()
    };
    assert!(packs(&fixture) > 50);
    fixture.repo.repack_if_many().unwrap();
    assert!(packs(&fixture) < 10, "{}", packs(&fixture));
    fixture.repo.verify().unwrap();
    assert_eq!(fixture.paths(&last.id).len(), 1000);
}
