//! The attack suite: runs every file of `fixtures/attacks` against every backend. An attack must fail, and afterwards
//! the machine must be unchanged: no process, mount or control group left, nothing changed outside the layer, and a
//! layer that can be read and removed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attack;
mod host;
mod runner;

use std::path::PathBuf;
use std::process::Command;

use isolation::{Container, Jail};

/// Set for the run as an ordinary user, who cannot read the build folder.
const LAUNCHER: &str = "CHOIR_ATTACKS_LAUNCHER";
const FIXTURES: &str = "CHOIR_ATTACKS";
/// Selects attacks by part of their names, while working on one.
const ONLY: &str = "CHOIR_ATTACKS_ONLY";
const UNPRIVILEGED_UID: u32 = 65534;

fn launcher() -> PathBuf {
    std::env::var_os(LAUNCHER).map_or_else(|| env!("CARGO_BIN_EXE_choir-cell").into(), PathBuf::from)
}

fn fixtures() -> PathBuf {
    let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/attacks");
    std::env::var_os(FIXTURES).map_or_else(|| built.into(), PathBuf::from)
}

fn attacks() -> Vec<attack::Attack> {
    let only = std::env::var(ONLY).unwrap_or_default();
    attack::Attack::all(&fixtures()).into_iter().filter(|attack| attack.name.contains(&only)).collect()
}

#[test]
fn every_attack_has_a_description() {
    let attacks = attack::Attack::all(&fixtures());
    assert!(attacks.len() >= 45, "{}", attacks.len());
    for attack in attacks {
        assert!(attack.about.len() > 30, "{}", attack.name);
        assert!(
            attack.run.contains("BREACH") || attack.run.contains("breach"),
            "{} cannot fail",
            attack.name
        );
    }
}

#[test]
fn a_jail_holds() {
    runner::run_all(&Jail::new(launcher()), &attacks());
}

#[test]
fn a_runc_container_holds() {
    a_container_holds("runc");
}

#[test]
fn a_crun_container_holds() {
    a_container_holds("crun");
}

/// Prints a notice if the runtime is not installed.
fn a_container_holds(name: &str) {
    match Container::runtimes().into_iter().find(|path| path.ends_with(name)) {
        Some(path) => runner::run_all(&Container::new(launcher()).with_runtime(path), &attacks()),
        None => eprintln!("skipped: there is no {name}"),
    }
}

/// Cells are built differently for root and for ordinary users, so both are attacked.
#[test]
fn an_ordinary_users_jail_holds() {
    as_an_ordinary_user("a_jail_holds");
}

#[test]
fn an_ordinary_users_runc_container_holds() {
    as_an_ordinary_user("a_runc_container_holds");
}

#[test]
fn an_ordinary_users_crun_container_holds() {
    as_an_ordinary_user("a_crun_container_holds");
}

fn as_an_ordinary_user(test: &str) {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open =
        |path: &std::path::Path| std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    open(folder.path());
    let copied = |name: &str, from: PathBuf| {
        let to = folder.path().join(name);
        std::fs::copy(from, &to).unwrap();
        open(&to);
        to
    };
    let (suite, cell) = (copied("suite", std::env::current_exe().unwrap()), copied("choir-cell", launcher()));
    for name in ["attacks", "tmp"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    for entry in std::fs::read_dir(fixtures()).unwrap().map(Result::unwrap) {
        copied(&format!("attacks/{}", entry.file_name().to_string_lossy()), entry.path());
    }
    std::os::unix::fs::chown(folder.path().join("tmp"), Some(UNPRIVILEGED_UID), Some(UNPRIVILEGED_UID))
        .unwrap();
    let ran = Command::new(suite)
        .args(["--exact", test, "--nocapture"])
        .env(LAUNCHER, cell)
        .env(FIXTURES, folder.path().join("attacks"))
        .env("TMPDIR", folder.path().join("tmp"))
        .current_dir("/")
        .uid(UNPRIVILEGED_UID)
        .gid(UNPRIVILEGED_UID)
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && said.contains("1 passed"), "as an ordinary user: {said}");
}
