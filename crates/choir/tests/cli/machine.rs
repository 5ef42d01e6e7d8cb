//! A machine with a scripted model, and a look at what came of a scenario on it.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::Duration;

use scripted_model::{Script, ScriptedServer, Wire};
use tempfile::TempDir;

use crate::home::{Found, Home, Ran, choir};
use crate::scenario::Scenario;

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

    /// The binary on this machine; what it says is not looked at.
    pub(crate) fn choir(&self, args: &[&str]) -> Command {
        let mut command = choir();
        command.args(args).env("CHOIR_DATA", self.data.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The same in a computer, for what it says.
    pub(crate) fn told(&self, home: &Home, args: &[&str]) -> Ran {
        let mut command = self.choir(args);
        Ran::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(&home.work))
    }

    /// Looks at what came of it.
    pub(crate) fn judge(&self, scenario: &Scenario, home: &Home) {
        let name = &scenario.name;
        assert!(self.server.refusals().is_empty(), "{name}: {:?}", self.server.refusals());
        assert_eq!(calls(home), scenario.calls, "{name}: every call was answered once");
        let text = |found: Found| match found {
            Found::File { bytes, .. } => String::from_utf8_lossy(&bytes).into_owned(),
            Found::Link(to) => format!("a link to {}", to.display()),
            Found::EmptyFolder => "an empty folder".to_owned(),
        };
        // Of a process that was killed at the very end, the log may have what the disk has not; `log` and `runs` leave it so.
        home.ok(&["status"]);
        let found: BTreeMap<String, String> =
            home.files().into_iter().map(|(path, found)| (path, text(found))).collect();
        assert_eq!(found, scenario.after, "{name}");
        home.ok(&["verify"]);
    }
}

/// How the calls of the run ended, from the log itself.
fn calls(home: &Home) -> Vec<String> {
    let events = home.events();
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
