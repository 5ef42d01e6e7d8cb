//! A computer with a scripted model behind it, and runs on it.

use std::path::Path;
use std::sync::Arc;

use agent_host::agent_services::AgentServices;
use anyhow::Result;
use computer::Computer;
use computer::ids;
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, Envelope, Request, RunRequest};
use models::{ApiKey, ApiKeys};
use scripted_model::Script;
use shared_types::payload::run::Budget;
use shared_types::wire::StartRun;
use shared_types::{FilePath, UserId};

struct Key(String);

impl ApiKeys for Key {
    fn key(&self, _: &str) -> Option<ApiKey> {
        Some(ApiKey::new(self.0.clone()))
    }
}

/// Models that take so many milliseconds for a turn.
pub(crate) fn script(steps: usize, millis: u64) -> Result<Script> {
    // Each step reads something new, so that the harness does not take it for a loop.
    let read = |n| {
        format!(
            "[[agent.step]]\ndelay_ms = {millis}\ncalls = [ {{ tool = \"read\", input = {{ path = \"a{n}.txt\" }} }} ]\n"
        )
    };
    let steps: String = (0..steps).map(read).collect();
    let text = format!(
        "[[agent]]\nrole = \"conductor\"\n[[agent.step]]\ncalls = [ {{ tool = \"delegate\", input = {{ agent = \
         \"terminal\", task = \"Read.\" }} }} ]\n[[agent.step]]\ncalls = [ {{ tool = \"finish\", input = {{ summary = \
         \"Done.\" }} }} ]\n[[agent]]\nrole = \"terminal\"\n{steps}[[agent.step]]\ntext = \"Done.\"\n"
    );
    Ok(Script::parse(&text)?)
}

/// All agents think with the model at this address.
pub(crate) fn agent_services(url: &str, key: &str) -> Result<AgentServices> {
    let text = format!("[provider.anthropic]\nbase_url = \"{url}\"\nat_once = 128\n");
    let (agent_services, key) = (AgentServices::new(Some(&text.parse()?))?, key.to_owned());
    Ok(AgentServices { keys: Arc::new(move |_| Arc::new(Key(key.clone()))), ..agent_services })
}

/// As many files as the longest script reads.
const FILES: usize = 40;

/// A new computer with files.
pub(crate) fn computer(folder: &Path) -> Result<Computer> {
    let (computer, _) =
        Computer::create(&ComputerPaths::at(folder), UserId::parse("ada")?, "Ada", &|_, _, _| ())?;
    for n in 0..FILES {
        let path = FilePath::parse(&format!("a{n}.txt"))?;
        let write = Envelope::new(Request::Write { path, mode: None, base: kernel::Base::Any });
        computer.handle(&write, &mut format!("{n}\n").as_bytes(), &|_, _, _| ()).into_done()?;
    }
    Ok(computer)
}

pub(crate) fn start(computer: &Computer) -> Result<()> {
    let start = StartRun {
        command: ids::new_command(),
        run: ids::new_run(),
        objective: "Read all files.".into(),
        attached: Vec::new(),
        model: Some("claude-sonnet".into()),
        budget: Budget::default(),
    };
    let envelope = Envelope::new(Request::AgentRuns(RunRequest::Start(start)));
    let answer = computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
    if let Answer::Failure(failure) = answer { Err(failure.into()) } else { Ok(()) }
}
