//! Configuration and programs of others do not affect our git.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use checkpoints::{CheckpointError, CheckpointRepo};

use crate::fixture::{Fixture, open};

/// Runs one test of this file again in its own process, with a changed environment.
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
    let mut fixture = Fixture::new();
    let repo = fixture.repo.path().to_owned();
    // Hostile settings in the repository's own configuration.
    fs::write(
        repo.join("config"),
        "[core]\n\tbare = true\n\tfsmonitor = /bin/false\n[alias]\n\trev-parse = !false\n",
    )
    .unwrap();
    fixture.repo = open(fixture.dir.path()).unwrap();
    assert!(!fs::read_to_string(repo.join("config")).unwrap().contains("alias"));
    let node = fixture.file("x\n", 0o644);
    let first = fixture.full(vec![("a", node.clone())]);
    let _ = fixture.since(&first.id, vec![("b", Some(node)), ("a", None)]);
    fixture.repo.backup("one", &first.id).unwrap();
    fixture.repo.verify().unwrap();
    let remote = fixture.dir.path().join("remote.git");
    fs::create_dir(&remote).unwrap();
    for name in ["objects", "refs"] {
        fs::create_dir(remote.join(name)).unwrap();
    }
    fs::write(remote.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fixture.repo.push(remote.to_str().unwrap()).unwrap();
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
    again("environment::inner_commit_and_push", |command| {
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
fn a_git_program_that_a_cell_can_write_is_ignored() {
    let workspace = tempfile::tempdir().unwrap();
    let program = workspace.path().join("git");
    fs::write(&program, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    again("environment::inner_open_without_git", |command| {
        command.env("PATH", workspace.path()).env("CHOIR_TEST_WORKSPACE", workspace.path());
    });
}
