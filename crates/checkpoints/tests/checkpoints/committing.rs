//! What a commit holds, what it leaves out, and how commits follow each other.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use checkpoints::{Changes, CheckpointError, CommitId, CommitRequest, Why};
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, EffectId, Seq, Timestamp, UserId};

use crate::bench::{Bench, git, link, open, path};

#[test]
fn a_full_commit_holds_the_files_with_their_modes_and_leads_back_to_the_log() {
    let mut bench = Bench::new();
    let files = vec![
        ("a.txt", bench.file("one\n", 0o644)),
        ("bin/run", bench.file("#!/bin/sh\n", 0o755)),
        ("bin/same", bench.file("one\n", 0o600)),
        ("empty", bench.file("", 0o644)),
        ("link", link("bin/run")),
    ];
    let made = bench.full(files);
    let expected = [
        ("a.txt", 0o100644, "one\n"),
        ("bin/run", 0o100755, "#!/bin/sh\n"),
        ("bin/same", 0o100644, "one\n"),
        ("empty", 0o100644, ""),
        ("link", 0o120000, "bin/run"),
    ];
    let expected = expected.map(|(name, mode, text)| (name.to_owned(), (mode, text.as_bytes().to_vec())));
    assert_eq!(bench.read(&made.commit), BTreeMap::from(expected));
    assert_eq!((made.seq, made.left_out.len()), (Seq(1), 0));
    assert_eq!(bench.repo.head().unwrap().as_ref(), Some(&made.commit));
    assert!(bench.repo.has(&made.commit).unwrap());
    let shown = git(bench.repo.path(), &["show", "-s", "--format=%an <%ae> %at%n%B", "main"]);
    let effect = EffectId::from_bytes([1; 16]);
    let wanted = format!(
        "ada <ada@choiros.invalid> 1700000000\nBefore lunch\n\nChoir-Seq: 1\nChoir-Effect: {effect}\n\n"
    );
    assert_eq!(String::from_utf8(shown).unwrap(), wanted);
    bench.repo.verify().unwrap();
}

#[test]
fn changes_build_on_the_commit_before() {
    let mut bench = Bench::new();
    let keep = bench.file("keep", 0o644);
    let script = bench.file("script", 0o644);
    let first = bench.full(vec![
        ("keep", keep.clone()),
        ("gone", keep.clone()),
        ("old/name", script),
        ("script", keep.clone()),
        ("was-file", keep.clone()),
        ("was-folder/x", keep.clone()),
        ("folder/inside", keep.clone()),
    ]);
    let script = bench.file("script", 0o755);
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
        ("script", Some(bench.file("keep", 0o755))),
        ("pointer", Some(link("keep"))),
    ];
    let second = bench.since(&first.commit, changes);
    let read = bench.read(&second.commit);
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
    assert_eq!(bench.paths(&first.commit).len(), 7, "the commit before is as it was");
    let third = bench
        .since(&second.commit, vec![("pointer", Some(FileNode::Folder)), ("folder", Some(FileNode::Folder))]);
    assert!(!bench.paths(&third.commit).contains(&"pointer".to_owned()), "a folder replaced the link");
    assert!(bench.paths(&third.commit).contains(&"folder/inside".to_owned()));
    assert_eq!(git(bench.repo.path(), &["rev-list", "--count", "main"]), b"3\n");
    bench.repo.verify().unwrap();
}

#[test]
fn hostile_names_arrive_byte_for_byte() {
    let mut bench = Bench::new();
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
    let files = names.iter().map(|name| (*name, bench.file(name, 0o644))).collect();
    let made = bench.full(files);
    let read = bench.read(&made.commit);
    names.sort_unstable();
    assert_eq!(read.keys().map(String::as_str).collect::<Vec<_>>(), names);
    assert!(read.iter().all(|(name, (_, bytes))| name.as_bytes() == bytes));
    let second = bench.since(&made.commit, names.iter().map(|name| (*name, None)).collect());
    assert_eq!(bench.paths(&second.commit), Vec::<String>::new());
}

#[test]
fn what_git_cannot_hold_is_left_to_the_log() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let made = bench.full(vec![
        ("project/.git/config", node.clone()),
        (".GIT/hooks/post-checkout", node.clone()),
        ("git~1", node.clone()),
        (".g\u{200c}it/x", node.clone()),
        (".gitmodules", link("project")),
        ("nothing/in/here", FileNode::Folder),
        ("project/.gitignore", node.clone()),
    ]);
    assert_eq!(bench.paths(&made.commit), ["project/.gitignore"]);
    assert!(made.left_out.is_empty());
    let changes = vec![("project/.git/config", None), (".git", Some(node)), ("nothing/in/here", None)];
    let second = bench.since(&made.commit, changes);
    assert_eq!(bench.paths(&second.commit), ["project/.gitignore"]);
    let only_folders = bench.full(vec![("a", FileNode::Folder)]);
    assert_eq!(bench.paths(&only_folders.commit), Vec::<String>::new());
    git(bench.repo.path(), &["fsck", "--strict"]);
}

#[test]
fn the_same_effect_is_committed_once() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let first = bench.commit_as(7, None, Changes::Full(vec![(path("a"), node.clone())])).unwrap();
    let again = bench.commit_as(7, None, Changes::Full(Vec::new())).unwrap();
    assert_eq!(again, first);
    // After a crash the caller does not know the commit yet, so its parent is the one before.
    let reopened = open(bench.dir.path()).unwrap();
    drop(std::mem::replace(&mut bench.repo, reopened));
    let again = bench.commit_as(7, None, Changes::Since(vec![(path("b"), Some(node))])).unwrap();
    assert_eq!((again.commit, again.seq), (first.commit, Seq(7)));
    assert_eq!(git(bench.repo.path(), &["rev-list", "--count", "main"]), b"1\n");
}

#[test]
fn a_parent_that_is_not_the_newest_asks_for_everything() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let change = || Changes::Since(vec![(path("b"), Some(node.clone()))]);
    let refused = |bench: &Bench, parent| bench.commit_as(99, parent, change()).unwrap_err();
    assert!(matches!(refused(&bench, None), CheckpointError::NeedsFull));
    let first = bench.full(vec![("a", node.clone())]);
    let second = bench.since(&first.commit, vec![]);
    for parent in [Some(first.commit.clone()), Some(CommitId::parse(&"ab".repeat(20)).unwrap()), None] {
        assert!(matches!(refused(&bench, parent), CheckpointError::NeedsFull));
    }
    assert_eq!(bench.repo.head().unwrap(), Some(second.commit.clone()));

    fs::remove_dir_all(bench.repo.path()).unwrap();
    bench.repo = open(bench.dir.path()).unwrap();
    assert!(matches!(refused(&bench, Some(second.commit.clone())), CheckpointError::NeedsFull));
    assert!(!bench.repo.has(&second.commit).unwrap());
    let anew = bench.full(vec![("a", node.clone())]);
    assert_eq!(bench.paths(&anew.commit), ["a"]);
}

#[test]
fn contents_that_are_gone_cost_their_own_file_only() {
    let mut bench = Bench::new();
    let secret = bench.file("hunter2", 0o600);
    let keep = bench.file("keep", 0o644);
    let first = bench.full(vec![("secret", keep.clone()), ("keep", keep.clone())]);
    let lost = bench.file("lost", 0o644);
    let long = bench.file("long".repeat(100_000), 0o644);
    bench.purged.push(secret.content().unwrap().hash);
    bench.contents.remove(&lost.content().unwrap().hash);
    bench.contents.get_mut(&long.content().unwrap().hash).unwrap().truncate(70_000);
    let changes = vec![
        ("secret", Some(secret.clone())),
        ("lost", Some(lost)),
        ("short", Some(long)),
        ("copy", Some(secret)),
        ("z", Some(keep)),
    ];
    let made = bench.since(&first.commit, changes);
    assert_eq!(bench.paths(&made.commit), ["keep", "z"], "an older content does not stand for a purged one");
    let left_out = made.left_out.iter().map(|left| (left.path.as_str(), left.why)).collect::<Vec<_>>();
    let expected =
        [("secret", Why::Purged), ("lost", Why::Missing), ("short", Why::Damaged), ("copy", Why::Purged)];
    assert_eq!(left_out, expected);
    bench.repo.verify().unwrap();
}

#[test]
fn storage_that_fails_stops_the_checkpoint_and_leaves_the_branch() {
    let mut bench = Bench::new();
    let node = bench.file("x".repeat(200_000), 0o644);
    let first = bench.full(vec![("a", node.clone())]);
    let request = CommitRequest {
        effect: EffectId::from_bytes([9; 16]),
        seq: Seq(9),
        user: UserId::parse("ada").unwrap(),
        ts: Timestamp::from_millis(0),
        message: "",
        parent: Some(first.commit.clone()),
        changes: Changes::Since(vec![(path("b"), Some(bench.file("y".repeat(200_000), 0o644)))]),
    };
    struct Broken(u32);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += 1;
            if self.0 > 2 { Err(std::io::Error::other("disk on fire")) } else { Ok(buffer.len().min(1000)) }
        }
    }
    let error = bench.repo.commit(&request, &mut |_| Ok(Box::new(Broken(0)))).unwrap_err();
    assert!(matches!(&error, CheckpointError::Content { path, .. } if path.as_str() == "b"), "{error:?}");
    assert_eq!(bench.repo.head().unwrap(), Some(first.commit));
    bench.repo.verify().unwrap();
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
    let bench = Bench::new();
    let content = ContentRef { hash: ContentHash::of(b"large"), size: SIZE as u64 };
    let request = CommitRequest {
        effect: EffectId::from_bytes([1; 16]),
        seq: Seq(1),
        user: UserId::parse("ada").unwrap(),
        ts: Timestamp::from_millis(0),
        message: "",
        parent: None,
        changes: Changes::Full(vec![(path("large"), FileNode::file(content, 0o644))]),
    };
    let made = bench.repo.commit(&request, &mut |_| Ok(Box::new(Blocks { left: SIZE }))).unwrap();
    assert!(made.left_out.is_empty());
    let size = git(bench.repo.path(), &["cat-file", "-s", "main:large"]);
    assert_eq!(String::from_utf8(size).unwrap().trim(), SIZE.to_string());
    bench.repo.verify().unwrap();
}

#[test]
fn many_files_and_many_commits_work_and_packs_are_joined() {
    let mut bench = Bench::new();
    let names = (0..1000).map(|n| format!("d{}/f{n}", n % 10)).collect::<Vec<_>>();
    let files = names.iter().map(|name| (name.as_str(), bench.file(name, 0o644))).collect();
    let mut last = bench.full(files);
    assert_eq!(bench.paths(&last.commit).len(), 1000);
    for n in 0..55 {
        let node = bench.file(format!("version {n}"), 0o644);
        last = bench.since(&last.commit, vec![("d0/f0", Some(node))]);
    }
    let packs = |bench: &Bench| {
        let folder = fs::read_dir(bench.repo.path().join("objects/pack")).unwrap();
        folder.filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|e| e == "pack")).count()
    };
    assert!(packs(&bench) > 50);
    bench.repo.tidy().unwrap();
    assert!(packs(&bench) < 10, "{}", packs(&bench));
    bench.repo.verify().unwrap();
    assert_eq!(bench.paths(&last.commit).len(), 1000);
}
