//! With nothing but the model of the person's own machine, one agent works at a time.

use std::pin::Pin;
use std::sync::Arc;

use agent_host::agent_services::{AgentServices, LocalModelHost, LocalServices};
use computer::error::ComputerError;
use models::{ApiKey, LocalModel, LocalModelEndpoint, LocalModelStatus, ModelError};
use scripted_model::Wire;
use shared_types::payload::llm::LlmEvent;
use shared_types::wire::{LocalModelLine, RunState};
use shared_types::{Payload, TaskId};

use crate::scenario::Scenario;
use crate::scenario_host::ScenarioHost;

/// A conductor that has two files written at once; each writer takes three turns.
const TWO_AT_ONCE: &str = r#"
about = "Two writers that wait for one model."
objective = "Write both."

[[script.agent]]
role = "conductor"
[[script.agent.step]]
calls = [
    { tool = "delegate", input = { agent = "writer", task = "Write tea.md." } },
    { tool = "delegate", input = { agent = "writer", task = "Write milk.md." } },
]
[[script.agent.step]]
calls = [ { tool = "finish", input = { summary = "Both." } } ]
[[script.agent.step]]
calls = [ { tool = "finish", input = { summary = "Both." } } ]

[[script.agent]]
role = "writer"
when = "tea.md"
[[script.agent.step]]
delay_ms = 60
calls = [ { tool = "write", input = { path = "tea.md", text = "tea\n" } } ]
[[script.agent.step]]
delay_ms = 60
calls = [ { tool = "read", input = { path = "tea.md" } } ]
[[script.agent.step]]
text = "Done."

[[script.agent]]
role = "writer"
when = "milk.md"
[[script.agent.step]]
delay_ms = 60
calls = [ { tool = "write", input = { path = "milk.md", text = "milk\n" } } ]
[[script.agent.step]]
delay_ms = 60
calls = [ { tool = "read", input = { path = "milk.md" } } ]
[[script.agent.step]]
text = "Done."

[expect]
state = "completed"
turns = 0
micros = 0
calls = []
"#;

/// The scripted model as that of the machine.
struct ScriptedLocalModel {
    url: String,
    key: String,
}

impl LocalModel for ScriptedLocalModel {
    fn endpoint(&self) -> Pin<Box<dyn Future<Output = Result<LocalModelEndpoint, ModelError>> + Send + '_>> {
        let bearer = Some(ApiKey::new(self.key.clone()));
        Box::pin(async { Ok(LocalModelEndpoint { base_url: self.url.parse().unwrap(), bearer }) })
    }

    fn status(&self) -> LocalModelStatus {
        LocalModelStatus::Idle
    }
}

impl LocalModelHost for ScriptedLocalModel {
    fn line(&self) -> LocalModelLine {
        let (downloaded, fetching, declined, problem, speed) = Default::default();
        LocalModelLine {
            name: "Scripted".into(),
            bytes: 1,
            downloaded,
            fetching,
            declined,
            ready: true,
            problem,
            failure: None,
            speed,
        }
    }

    fn fetch(&self) {}

    fn decline(&self) -> Result<(), ComputerError> {
        Ok(())
    }

    fn stop(&self) {}
}

#[test]
fn the_model_of_the_machine_works_for_one_agent_until_that_one_is_done() {
    let scenario: Scenario = toml::from_str(TWO_AT_ONCE).unwrap();
    let host = ScenarioHost::new(&scenario, Wire::OpenAi);
    let (url, key) = host.address();
    let local_services = LocalServices { local: Some(Arc::new(ScriptedLocalModel { url, key })), web: None };
    let agent_services = AgentServices { local_services, ..AgentServices::new(None).unwrap() };
    host.carry_on_with(host.prepare(), &agent_services).unwrap();

    let computer = computer::client::open_exclusive(&host.paths()).unwrap();
    let line = host.details(&computer, host.runs[0]).line;
    assert_eq!(line.state, RunState::Completed, "{line:?}");
    let events = host.events(&computer, host.runs[0]);
    let turns = events.iter().filter_map(|event| match &event.payload {
        Payload::Llm(LlmEvent::Reply(reply)) => Some(reply.task),
        _ => None,
    });
    let turns: Vec<TaskId> = turns.collect();
    let conductor = turns[0];
    let workers: Vec<TaskId> = turns.into_iter().filter(|task| *task != conductor).collect();
    let (first, second) = (workers[0], workers[workers.len() - 1]);
    assert_ne!(first, second);
    assert_eq!(workers, [first, first, first, second, second, second]);
}
