//! Checkpoints against the real git: what is in a commit, what is left out, and that nothing outside decides it.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{Cursor, Read};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use event_log::ContentError;
use sandbox::checkpoints::{
    Changes, CheckpointError, CheckpointRepo, Commit, CommitId, CommitRequest, PushError, Why,
};
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, EffectId, FilePath, Seq, Timestamp, UserId};
use tempfile::TempDir;

/// A computer's folders, a repository, and contents as a log would give them.
struct Bench {
    dir: TempDir,
    repo: CheckpointRepo,
    contents: HashMap<ContentHash, Vec<u8>>,
    purged: Vec<ContentHash>,
    next: u8,
}

impl Bench {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in [".choir", "workspace"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let repo = open(dir.path()).unwrap();
        Self { dir, repo, contents: HashMap::new(), purged: Vec::new(), next: 0 }
    }

    fn file(&mut self, bytes: impl AsRef<[u8]>, mode: u16) -> FileNode {
        let content = ContentRef::of(bytes.as_ref());
        self.contents.insert(content.hash, bytes.as_ref().to_vec());
        FileNode::file(content, mode)
    }

    fn commit_as(
        &self,
        effect: u8,
        parent: Option<CommitId>,
        changes: Changes,
    ) -> Result<Commit, CheckpointError> {
        let request = CommitRequest {
            effect: EffectId::from_bytes([effect; 16]),
            seq: Seq(u64::from(effect)),
            user: UserId::parse("ada").unwrap(),
            ts: Timestamp::from_millis(1_700_000_000_000),
            message: "Before lunch",
            parent,
            changes,
        };
        self.repo.commit(&request, &mut |hash| {
            if self.purged.contains(hash) {
                return Err(ContentError::Purged(*hash));
            }
            let bytes = self.contents.get(hash).ok_or(ContentError::Missing(*hash))?;
            Ok(Box::new(Cursor::new(bytes.clone())))
        })
    }

    fn full(&mut self, files: Vec<(&str, FileNode)>) -> Commit {
        self.next += 1;
        let files = files.into_iter().map(|(name, node)| (path(name), node)).collect();
        self.commit_as(self.next, None, Changes::Full(files)).unwrap()
    }

    fn since(&mut self, parent: &CommitId, changes: Vec<(&str, Option<FileNode>)>) -> Commit {
        self.next += 1;
        let changes = changes.into_iter().map(|(name, node)| (path(name), node)).collect();
        self.commit_as(self.next, Some(parent.clone()), Changes::Since(changes)).unwrap()
    }

    /// Every file of a commit: its mode and its bytes, read with a git that is not ours to configure.
    fn read(&self, commit: &CommitId) -> BTreeMap<String, (u32, Vec<u8>)> {
        let entries = self.repo.tree(commit).unwrap();
        let bytes = |blob: &str| git(self.repo.path(), &["cat-file", "blob", blob]);
        entries.into_iter().map(|entry| (entry.path, (entry.mode, bytes(&entry.blob)))).collect()
    }

    fn paths(&self, commit: &CommitId) -> Vec<String> {
        self.repo.tree(commit).unwrap().into_iter().map(|entry| entry.path).collect()
    }
}

fn open(dir: &Path) -> Result<CheckpointRepo, CheckpointError> {
    CheckpointRepo::open(&dir.join(".choir"), &dir.join("workspace"))
}

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

fn git(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git").arg("--git-dir").arg(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn bare(at: PathBuf) -> PathBuf {
    let made = Command::new("git").args(["init", "--quiet", "--bare"]).arg(&at).status().unwrap();
    assert!(made.success());
    at
}

fn link(target: &str) -> FileNode {
    FileNode::Symlink { target: target.into() }
}

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

#[test]
fn a_backup_is_never_overwritten() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let first = bench.full(vec![("a", node.clone())]).commit;
    let second = bench.since(&first, vec![("b", Some(node))]).commit;
    bench.repo.backup("before-restore-1", &first).unwrap();
    bench.repo.backup("before-restore-1", &first).unwrap();
    let error = bench.repo.backup("before-restore-1", &second).unwrap_err();
    assert!(matches!(&error, CheckpointError::BackupExists { commit, .. } if *commit == first), "{error}");
    let unknown = CommitId::parse(&"ab".repeat(20)).unwrap();
    assert!(matches!(bench.repo.backup("x", &unknown), Err(CheckpointError::NoSuchCommit { .. })));
    for bad in ["", "../heads/main", "-d", "a b", "x.lock"] {
        assert!(matches!(bench.repo.backup(bad, &first), Err(CheckpointError::BackupName { .. })), "{bad}");
    }
    bench.repo.backup("z", &second).unwrap();
    let backups = bench.repo.backups().unwrap();
    let listed = backups.iter().map(|backup| (backup.name.as_str(), &backup.commit)).collect::<Vec<_>>();
    assert_eq!(listed, [("before-restore-1", &first), ("z", &second)]);
}

#[test]
fn a_push_copies_branch_and_backups_and_forces_nothing() {
    let mut bench = Bench::new();
    let remote = bare(bench.dir.path().join("remote a.git"));
    let url = remote.to_str().unwrap().to_owned();
    bench.repo.push(&url).unwrap();
    let node = bench.file("x", 0o644);
    let first = bench.full(vec![("a", node.clone())]).commit;
    bench.repo.backup("one", &first).unwrap();
    bench.repo.push(&url).unwrap();
    let second = bench.since(&first, vec![("b", Some(node.clone()))]).commit;
    bench.repo.push(&format!("file://{}", url.replace(' ', "%20"))).unwrap();
    let at = |name| String::from_utf8(git(&remote, &["rev-parse", name])).unwrap().trim().to_owned();
    assert_eq!((at("main"), at("refs/backups/one")), (second.to_string(), first.to_string()));

    fs::remove_dir_all(bench.repo.path()).unwrap();
    bench.repo = open(bench.dir.path()).unwrap();
    let _ = bench.full(vec![("other", node)]);
    let error = bench.repo.push(&url).unwrap_err();
    assert!(matches!(&error, PushError::Refused { stderr, .. } if stderr.contains("rejected")), "{error}");
    assert_eq!(at("main"), second.to_string());
}

#[test]
fn a_push_that_cannot_be_says_why() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let _ = bench.full(vec![("a", node)]);
    let error = bench.repo.push("/nonexistent/remote.git").unwrap_err();
    assert!(error.to_string().contains("/nonexistent/remote.git"), "{error}");
    assert!(matches!(error, PushError::Refused { .. }));
    let inside = bare(bench.dir.path().join("workspace/evil.git"));
    symlink(&inside, bench.dir.path().join("detour")).unwrap();
    let detour = bench.dir.path().join("detour").to_str().unwrap().to_owned();
    let inside = inside.to_str().unwrap().to_owned();
    for bad in [&*inside, &*detour, &format!("file://{inside}"), "relative/path", "--upload-pack=x", "a\nb"] {
        assert!(matches!(bench.repo.push(bad), Err(PushError::Remote { .. })), "{bad}");
    }
    let error = bench.repo.push("ext::sh -c touch% /tmp/x").unwrap_err();
    assert!(error.to_string().contains("not allowed"), "{error}");

    // A server that takes the call and never speaks.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://ada:s3cret@{}/x.git", silent.local_addr().unwrap());
    let start = Instant::now();
    let error = bench.repo.push_within(&url, Duration::from_millis(1500)).unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(10));
    assert!(matches!(error, PushError::TimedOut { .. }), "{error}");
    drop(silent);
    let refused = bench.repo.push(&url).unwrap_err();
    for error in [error, refused] {
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
    }
}

#[test]
fn damage_is_noticed_and_named() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let _ = bench.full(vec![("a", node)]);
    let repo = bench.repo.path().to_owned();
    let good = fs::read(repo.join("refs/heads/main")).unwrap();
    for bad in [&b""[..], b"garbage\n", "ab".repeat(20).as_bytes()] {
        fs::write(repo.join("refs/heads/main"), bad).unwrap();
        let error = open(bench.dir.path()).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{error:?}");
    }
    fs::write(repo.join("refs/heads/main"), good).unwrap();
    open(bench.dir.path()).unwrap();
    for entry in fs::read_dir(repo.join("objects/pack")).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert!(matches!(bench.repo.verify(), Err(CheckpointError::Damaged { .. })));
    assert!(matches!(open(bench.dir.path()), Err(CheckpointError::Damaged { .. })));
    fs::remove_file(repo.join("HEAD")).unwrap();
    assert!(matches!(open(bench.dir.path()), Err(CheckpointError::Damaged { .. })));
    fs::remove_dir_all(&repo).unwrap();
    fs::write(&repo, "a file").unwrap();
    assert!(matches!(open(bench.dir.path()), Err(CheckpointError::Damaged { .. })));
}

#[test]
fn what_a_killed_git_left_behind_does_not_stop_the_next_commit() {
    let mut bench = Bench::new();
    let node = bench.file("x", 0o644);
    let first = bench.full(vec![("a", node.clone())]);
    let repo = bench.repo.path().to_owned();
    for name in ["refs/heads/main.lock", "packed-refs.lock", "objects/pack/tmp_pack_x", "fast_import_crash_1"]
    {
        fs::write(repo.join(name), "").unwrap();
    }
    fs::create_dir(bench.dir.path().join(".choir/checkpoints.git.new")).unwrap();
    let second = open(bench.dir.path()).unwrap();
    assert!(repo.join("refs/heads/main.lock").exists(), "somebody else has it open");
    drop(second);
    let other = Bench::new();
    drop(std::mem::replace(&mut bench.repo, other.repo));
    bench.repo = open(bench.dir.path()).unwrap();
    assert!(!repo.join("objects/pack/tmp_pack_x").exists());
    assert!(!repo.join("fast_import_crash_1").exists());
    let second = bench.since(&first.commit, vec![("b", Some(node))]);
    assert_eq!(bench.paths(&second.commit), ["a", "b"]);
}

/// Runs one test of this file again as a process of its own, with an environment of the caller's.
fn again(test: &str, set: impl FnOnce(&mut Command)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).env("CHOIR_TEST_INNER", "1");
    set(&mut command);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}\n{failed}");
}

fn is_inner() -> bool {
    std::env::var_os("CHOIR_TEST_INNER").is_some()
}

#[test]
#[ignore = "run by the test below, in an environment of its own"]
fn inner_commit_and_push() {
    if !is_inner() {
        return;
    }
    let mut bench = Bench::new();
    let repo = bench.repo.path().to_owned();
    // What a cell might have left in the repository's own configuration, if it ever got there.
    fs::write(
        repo.join("config"),
        "[core]\n\tbare = true\n\tfsmonitor = /bin/false\n[alias]\n\trev-parse = !false\n",
    )
    .unwrap();
    bench.repo = open(bench.dir.path()).unwrap();
    assert!(!fs::read_to_string(repo.join("config")).unwrap().contains("alias"));
    let node = bench.file("x\n", 0o644);
    let first = bench.full(vec![("a", node.clone())]);
    let _ = bench.since(&first.commit, vec![("b", Some(node)), ("a", None)]);
    bench.repo.backup("one", &first.commit).unwrap();
    bench.repo.verify().unwrap();
    let remote = bench.dir.path().join("remote.git");
    fs::create_dir(&remote).unwrap();
    for name in ["objects", "refs"] {
        fs::create_dir(remote.join(name)).unwrap();
    }
    fs::write(remote.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    bench.repo.push(remote.to_str().unwrap()).unwrap();
    assert_eq!(
        fs::read(remote.join("refs/heads/main")).unwrap(),
        fs::read(repo.join("refs/heads/main")).unwrap()
    );
}

#[test]
fn a_hostile_environment_decides_nothing() {
    let evil = tempfile::tempdir().unwrap();
    let proof = evil.path().join("proof");
    let script = evil.path().join("git");
    fs::write(&script, format!("#!/bin/sh\ntouch '{}'\nexit 1\n", proof.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let hooks = evil.path().join("hooks");
    fs::create_dir(&hooks).unwrap();
    for hook in ["reference-transaction", "pre-push", "post-index-change", "pre-auto-gc"] {
        fs::copy(&script, hooks.join(hook)).unwrap();
    }
    let (script, hooks) = (script.display(), hooks.display());
    let config = format!(
        "[core]\n\thooksPath = {hooks}\n\tfsmonitor = {script}\n\tpager = {script}\n\tsshCommand = {script}\n\
         [init]\n\ttemplateDir = {}\n\tdefaultObjectFormat = sha256\n[alias]\n\tfast-import = !{script}\n\
         [commit]\n\tgpgSign = true\n[url \"/nonexistent/\"]\n\tinsteadOf = /\n[broken",
        evil.path().display(),
    );
    fs::write(evil.path().join(".gitconfig"), &config).unwrap();
    fs::create_dir_all(evil.path().join("git-config/git")).unwrap();
    fs::write(evil.path().join("git-config/git/config"), &config).unwrap();
    again("inner_commit_and_push", |command| {
        let path = |name: &str| evil.path().join(name);
        command.env("HOME", evil.path()).env("XDG_CONFIG_HOME", path("git-config")).current_dir(evil.path());
        command.env("GIT_CONFIG_GLOBAL", path(".gitconfig")).env("GIT_CONFIG_SYSTEM", path(".gitconfig"));
        command
            .env("GIT_DIR", path("elsewhere"))
            .env("GIT_WORK_TREE", "/")
            .env("GIT_INDEX_FILE", path("index"));
        command.env("GIT_OBJECT_DIRECTORY", path("objects")).env("GIT_NAMESPACE", "x");
        command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "core.hooksPath");
        command.env("GIT_CONFIG_VALUE_0", path("hooks")).env("GIT_EXEC_PATH", evil.path());
        command
            .env("GIT_TEMPLATE_DIR", evil.path())
            .env("GIT_TRACE", path("trace"))
            .env("GIT_DEFAULT_HASH", "sha256");
        // A relative entry of `PATH` leads to the script in the current folder.
        let mut search = std::ffi::OsString::from(".:");
        search.push(std::env::var_os("PATH").unwrap());
        command.env("PATH", search);
    });
    for left in ["proof", "elsewhere", "index", "objects", "trace"] {
        assert!(!evil.path().join(left).exists(), "{left}");
    }
}

#[test]
#[ignore = "run by the test below, in an environment of its own"]
fn inner_open_without_git() {
    if !is_inner() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let error = CheckpointRepo::open(dir.path(), Path::new(&std::env::var("CHOIR_TEST_WORKSPACE").unwrap()))
        .unwrap_err();
    assert!(matches!(error, CheckpointError::GitMissing));
    assert!(error.to_string().contains("apt install git"));
}

#[test]
fn a_git_that_a_cell_could_have_written_does_not_count() {
    let workspace = tempfile::tempdir().unwrap();
    let program = workspace.path().join("git");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    again("inner_open_without_git", |command| {
        command.env("PATH", workspace.path()).env("CHOIR_TEST_WORKSPACE", workspace.path());
    });
}
