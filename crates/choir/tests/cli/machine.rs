//! A machine with a scripted model, and checks of the result of a scenario on it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use scripted_model::{Script, ScriptedServer, Wire};
use tempfile::TempDir;

use crate::scenario::Scenario;
use crate::test_computer::{CommandOutput, DiskEntry, TestComputer, choir};

/// A machine whose owner has a key for the scripted model.
pub(crate) struct Machine {
    data: TempDir,
    server: ScriptedServer,
}

impl Machine {
    pub(crate) fn new(script: Script) -> Self {
        let (data, server) = (tempfile::tempdir().unwrap(), ScriptedServer::start(script));
        let config = format!("[models.provider.anthropic]\nbase_url = \"{}\"\n", server.url(Wire::Anthropic));
        std::fs::write(data.path().join("choir.toml"), config).unwrap();
        let machine = Self { data, server };
        let mut up = machine.choir(&["up", "--no-browser", "--port", "0"]).spawn().unwrap();
        while !machine.choir(&["keys"]).status().unwrap().success() {
            std::thread::sleep(Duration::from_millis(20));
        }
        up.kill().unwrap();
        up.wait().unwrap();
        let mut set = machine.choir(&["keys", "set", "anthropic"]).stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut set.stdin.take().unwrap(), machine.server.key().as_bytes()).unwrap();
        assert!(set.wait().unwrap().success());
        machine
    }

    /// A machine whose model never answers.
    pub(crate) fn with_silent_model() -> Self {
        let script = "[[agent]]\nrole = \"conductor\"\n[[agent.step]]\nfault = \"silent\"\n";
        Self::new(Script::parse(script).unwrap())
    }

    /// The binary on this machine; its output is ignored.
    pub(crate) fn choir(&self, args: &[&str]) -> Command {
        let mut command = choir();
        command.args(args).env("CHOIR_DATA", self.data.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The same in a computer, for what it says.
    pub(crate) fn told(&self, computer: &TestComputer, args: &[&str]) -> CommandOutput {
        let mut command = self.choir(args);
        CommandOutput::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&computer.work))
    }

    /// Checks the result.
    pub(crate) fn judge(&self, scenario: &Scenario, computer: &TestComputer) {
        let name = &scenario.name;
        assert!(self.server.refusals().is_empty(), "{name}: {:?}", self.server.refusals());
        assert_eq!(calls(computer), scenario.calls, "{name}: every call was answered once");
        let text = |found: DiskEntry| match found {
            DiskEntry::File { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
            DiskEntry::Link(to) => format!("a link to {}", to.display()),
            DiskEntry::EmptyFolder => "an empty folder".to_owned(),
        };
        // After a kill at the very end, the log may be ahead of the files; `log` and `runs` do not change that.
        computer.ok(&["status"]);
        let found: BTreeMap<String, String> =
            computer.files().into_iter().map(|(path, found)| (path, text(found))).collect();
        assert_eq!(found, scenario.after, "{name}");
        computer.ok(&["verify"]);
    }
}

/// How the calls of the run ended, from the log itself.
fn calls(computer: &TestComputer) -> Vec<String> {
    let events = computer.events();
    let mut tools = BTreeMap::new();
    let mut calls = Vec::new();
    for event in &events {
        let op = event["op"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str() {
            Some("tool.call") => {
                drop(tools.insert(op, event["payload"]["tool"].as_str().unwrap().to_owned()))
            }
            Some("tool.result") => {
                let status = &event["payload"]["status"];
                let is_fine = status["is"] == "exited" && status["code"] == 0;
                calls.push(format!("{} {}", tools[&op], if is_fine { "ok" } else { "failed" }));
            }
            Some(_) | None => {}
        }
    }
    calls.sort();
    calls
}
