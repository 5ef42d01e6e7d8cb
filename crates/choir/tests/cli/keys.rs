//! `choir keys`: the vault of the machine, from the command line and beside a server that runs.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hypervisor::identity::IdentityStore;
use hypervisor::server::clock;
use hypervisor::vault::{MasterKeySource, Vault};
use serde_json::json;
use shared_types::UserId;
use tempfile::TempDir;

use crate::process::eventually;
use crate::test_computer::{CommandOutput, choir};

const SECRET: &str = "sk-ant-api03-typed-by-the-owner-Xy7Q";

/// The data folder of a machine that was up once.
struct Machine {
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = IdentityStore::open(folder.path(), clock()).unwrap();
        identity.ensure_owner(&UserId::owner(), "Ada").unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = choir();
        command.arg("keys").args(args).env("CHOIR_DATA", self.folder.path()).stdin(Stdio::null());
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(&mut self.command(args))
    }

    fn set(&self, args: &[&str], secret: &str) -> CommandOutput {
        CommandOutput::fed(&mut self.command(&[&["set"], args].concat()), secret.as_bytes())
    }

    fn read(&self, provider: &str) -> Option<String> {
        let identity = IdentityStore::open(self.folder.path(), clock()).unwrap();
        let owner = identity.users().unwrap().into_iter().find(|user| user.owner).unwrap().id;
        let vault = Vault::open(identity, MasterKeySource::Folder(self.folder.path().to_owned()));
        vault.reader(&owner).get(provider).map(|secret| secret.reveal().to_owned())
    }
}

#[test]
fn a_key_that_nothing_asks_for_is_kept_and_said_to_be_so() {
    let machine = Machine::new();
    let note =
        "no setting uses a key of this name yet; names in use: anthropic, bedrock, moonshot, openai, zai";
    machine.set(&["kimi"], SECRET).exits(0).says("set kimi (yours)").says(note);
    for known in ["moonshot", "tracker", "brave"] {
        let toml = "[web.search]\nkind = \"brave\"\n\
                    [mcp.t]\nurl = \"https://tracker.example/mcp\"\nkey = \"tracker\"\n";
        fs::write(machine.path("choir.toml"), toml).unwrap();
        let set = machine.set(&[known], SECRET).exits(0);
        assert!(!set.out.contains("no setting uses"), "{set:?}");
    }
    fs::write(machine.path("choir.toml"), "[mcp.t]\n").unwrap();
    machine.set(&["moonshot"], SECRET).exits(0);
}

#[test]
fn a_key_is_set_from_standard_input_listed_and_cleared() {
    let machine = Machine::new();
    machine.run(&[]).exits(0).says("choir keys set");
    let set = machine.set(&["anthropic"], &format!("{SECRET}\n")).exits(0).says("set anthropic (yours)");
    assert!(!format!("{set:?}").contains("sk-ant"), "{set:?}");
    let set = machine.set(&["zai", "--shared", "--json"], SECRET).exits(0);
    assert_eq!(set.json_lines(), [json!({ "set": "zai", "scope": "shared" })]);
    assert_eq!(machine.read("anthropic").as_deref(), Some(SECRET), "without the end of the line");
    assert_eq!(fs::metadata(machine.path("master.key")).unwrap().permissions().mode() & 0o777, 0o600);

    let listed = machine.run(&["--json"]).exits(0);
    assert!(!listed.out.contains("sk-ant"), "{listed:?}");
    let listed = listed.json_lines();
    let shown: Vec<_> = listed.iter().map(|l| (&l["provider"], &l["scope"], &l["hint"])).collect();
    let (own, shared, hint) = (json!("own"), json!("shared"), json!("Xy7Q"));
    assert_eq!(shown, [(&json!("anthropic"), &own, &hint), (&json!("zai"), &shared, &hint)]);
    machine.run(&[]).exits(0).says("anthropic").says("…Xy7Q").says("shared");

    machine.run(&["clear", "zai"]).exits(4);
    machine.run(&["clear", "zai", "--shared"]).exits(0).says("cleared zai (shared)");
    machine.run(&["clear", "anthropic"]).exits(0);
    assert_eq!(machine.read("anthropic"), None);
    assert!(machine.run(&["--json"]).exits(0).json_lines().is_empty());
}

#[test]
fn what_cannot_be_a_key_changes_nothing() {
    let machine = Machine::new();
    machine.set(&["Anthropic"], SECRET).exits(2).says("a-z");
    machine.set(&["anthropic"], "").exits(2).says("empty");
    machine.set(&["anthropic"], "two\nlines").exits(2);
    machine.set(&["anthropic"], &"x".repeat(100_000)).exits(2);
    machine.set(&["anthropic", SECRET], SECRET).exits(2);
    machine.run(&["set"]).exits(2);
    machine.run(&["clear"]).exits(2);
    machine.run(&["clear", "zai", "--unreadable"]).exits(2);
    assert!(!machine.path("master.key").exists());
    let nowhere = CommandOutput::of(machine.command(&[]).env("CHOIR_DATA", machine.path("nowhere")));
    nowhere.exits(4).says("choir up");
}

#[test]
fn a_rotation_gives_another_master_key_and_keeps_every_secret() {
    let machine = Machine::new();
    machine.set(&["anthropic"], SECRET).exits(0);
    let old = fs::read_to_string(machine.path("master.key")).unwrap();
    let rotated = machine.run(&["rotate", "--json"]).exits(0);
    assert_eq!(rotated.json_lines(), [json!({ "rotated": 1 })]);
    let new = fs::read_to_string(machine.path("master.key")).unwrap();
    assert_ne!(old, new);
    assert_eq!(machine.read("anthropic").as_deref(), Some(SECRET));
    let by_variable =
        |key: &str, args: &[&str]| CommandOutput::of(machine.command(args).env("CHOIR_MASTER_KEY", key));
    by_variable(&new, &[]).exits(0).says("…Xy7Q");
    by_variable(&old, &[]).exits(5).says("CHOIR_MASTER_KEY");
    by_variable(&new, &["rotate"]).exits(5).says("CHOIR_NEXT_MASTER_KEY");
    let next = "12".repeat(32);
    let mut command = machine.command(&["rotate"]);
    CommandOutput::of(command.env("CHOIR_MASTER_KEY", &new).env("CHOIR_NEXT_MASTER_KEY", &next)).exits(0);
    by_variable(&next, &[]).exits(0).says("…Xy7Q");
}

#[test]
fn a_lost_master_key_is_said_and_there_is_a_way_on() {
    let machine = Machine::new();
    machine.set(&["anthropic"], SECRET).exits(0);
    let (path, aside) = (machine.path("master.key"), machine.path("aside"));
    fs::rename(&path, &aside).unwrap();
    machine.run(&[]).exits(5).says("anthropic").says("unreadable").says("master.key");
    machine.set(&["anthropic"], "sk-another").exits(5);
    fs::rename(&aside, &path).unwrap();
    assert_eq!(machine.read("anthropic").as_deref(), Some(SECRET), "nothing was lost");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    machine.run(&[]).exits(5).says("chmod 600");
    fs::remove_file(&path).unwrap();
    machine.run(&["clear", "--unreadable"]).exits(0).says("1 key");
    machine.set(&["anthropic"], "sk-another").exits(0);
    assert_eq!(machine.read("anthropic").as_deref(), Some("sk-another"));
}

#[test]
fn a_terminal_asks_without_an_echo() {
    let machine = Machine::new();
    let typed = format!("'{}' keys set anthropic", env!("CARGO_BIN_EXE_choir"));
    let mut script = Command::new("script");
    script.args(["-qec", &typed, "/dev/null"]).env("CHOIR_DATA", machine.folder.path());
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = match script.spawn() {
        Ok(child) => child,
        Err(e) => return println!("skipped: there is no 'script' to make a terminal with: {e}"),
    };
    use std::io::{Read, Write};
    let mut out = child.stdout.take().unwrap();
    let mut seen = Vec::new();
    // Nothing is typed before the terminal is silent.
    while !seen.ends_with(b"shown): ") {
        let mut byte = [0];
        out.read_exact(&mut byte).unwrap();
        seen.extend(byte);
    }
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(format!("nonsense\x15x\x7f{SECRET}\r").as_bytes()).unwrap();
    out.read_to_end(&mut seen).unwrap();
    drop(keyboard);
    assert!(child.wait().unwrap().success());
    let seen = String::from_utf8_lossy(&seen).into_owned();
    assert!(seen.contains("set anthropic") && !seen.contains("sk-ant"), "{seen:?}");
    assert_eq!(machine.read("anthropic").as_deref(), Some(SECRET));
}

#[test]
fn keys_are_set_beside_the_server_that_runs_in_the_same_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut up = choir();
    up.args(["up", "--no-browser", "--port", "0", "--data"]).arg(folder.path());
    let mut up = up.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let machine = Machine { folder };
    // The owner is there before the first answer; the file a moment earlier.
    eventually("the server is up", || machine.run(&[]).code == 0);
    machine.set(&["anthropic"], SECRET).exits(0);
    machine.run(&["rotate"]).exits(0);
    assert!(up.try_wait().unwrap().is_none(), "the server runs on");
    up.kill().unwrap();
    up.wait().unwrap();
    assert_eq!(machine.read("anthropic").as_deref(), Some(SECRET));
}
