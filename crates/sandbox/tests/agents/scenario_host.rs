//! Runs a scenario on a computer with a scripted model.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_host::agent_services::{AgentServices, LocalServices};
use agents::web::{FromWeb, MayFetch, Page, Web, WebError, WebHit};
use computer::Computer;
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, Envelope, Request, RunRequest, RunResponse};
use event_log::{EventLog, decode_event};
use models::{ApiKey, ApiKeys};
use sandbox::open_computer::OpenComputer;
use scripted_model::{RecordedRequest, ScriptedServer, Wire};
use shared_types::wire::{DesktopAction, RunDetails, RunState, StartRun};
use shared_types::{CommandId, Event, FilePath, RunId, UserId};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::expectations::End;
use crate::person::Person;
use crate::scenario::Scenario;
use crate::{snapshot, transcript};

/// A run that has not moved for so long will not.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct ScenarioHost<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) model: Model,
    pub(crate) wire: Wire,
    pub(crate) folder: Folder,
    /// One for each objective, in their order.
    pub(crate) runs: Vec<RunId>,
}

/// Where the scripted model is: in this process, or in the one that started it.
pub(crate) enum Model {
    Here(ScriptedServer),
    There { url: String, key: String },
}

/// A folder of this process's own, or of the one that started it.
pub(crate) enum Folder {
    Own(TempDir),
    Given(PathBuf),
}

struct Key(String);

impl ApiKeys for Key {
    fn key(&self, _: &str) -> Option<ApiKey> {
        Some(ApiKey::new(self.0.clone()))
    }
}

/// The pages of a scenario, and no others. One that says [`NEVER`] never comes.
struct Pages(BTreeMap<String, String>);

const NEVER: &str = "never";

impl Web for Pages {
    fn fetch(&self, url: url::Url, _: MayFetch) -> FromWeb<'_, Page> {
        let found = self.0.get(url.as_str()).cloned();
        Box::pin(async move {
            let text = found.ok_or_else(|| WebError::Failed("there is no such page".into()))?;
            if text == NEVER {
                std::future::pending::<()>().await;
            }
            Ok(Page { url: url.to_string(), title: None, text })
        })
    }

    fn search(&self, words: String) -> Option<FromWeb<'_, Vec<WebHit>>> {
        let hit = |(url, text): (&String, &String)| WebHit {
            title: url.clone(),
            url: url.clone(),
            text: text.clone(),
        };
        let hits: Vec<WebHit> = self.0.iter().filter(|(_, text)| text.contains(&words)).map(hit).collect();
        (!self.0.is_empty()).then(|| Box::pin(async move { Ok(hits) }) as FromWeb<'_, _>)
    }
}

/// A budget of a day is a fresh one after midnight, so a scenario that counts on the old one is not begun just before.
fn wait_for_a_day_with_time_left() {
    const DAY: u64 = 24 * 60 * 60;
    const ENOUGH: u64 = 60;
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let left = DAY - now % DAY;
    if left < ENOUGH {
        std::thread::sleep(Duration::from_secs(left));
    }
}

impl<'a> ScenarioHost<'a> {
    pub(crate) fn new(scenario: &'a Scenario, wire: Wire) -> Self {
        let folder = Folder::Own(tempfile::tempdir().unwrap());
        if scenario.settings.contains_key("runs.daily") {
            wait_for_a_day_with_time_left();
        }
        Self::over(scenario, wire, Model::Here(ScriptedServer::start(scenario.script())), folder)
    }

    pub(crate) fn over(scenario: &'a Scenario, wire: Wire, model: Model, folder: Folder) -> Self {
        isolation::set_launcher(env!("CARGO_BIN_EXE_sandbox"));
        let runs = (0..=scenario.beside.len()).map(run_id).collect();
        Self { scenario, model, wire, folder, runs }
    }

    pub(crate) fn path(&self) -> &Path {
        match &self.folder {
            Folder::Own(folder) => folder.path(),
            Folder::Given(path) => path,
        }
    }

    pub(crate) fn paths(&self) -> ComputerPaths {
        ComputerPaths::at(self.path())
    }

    /// Where the scripted model is, and its key.
    pub(crate) fn address(&self) -> (String, String) {
        match &self.model {
            Model::Here(server) => (server.url(self.wire), server.key().to_owned()),
            Model::There { url, key } => (url.clone(), key.clone()),
        }
    }

    /// What the model was asked, as far as this process knows.
    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        match &self.model {
            Model::Here(server) => server.requests(),
            Model::There { .. } => Vec::new(),
        }
    }

    pub(crate) fn refusals(&self) -> Vec<String> {
        self.requests().iter().filter_map(|request| request.refusal().map(str::to_owned)).collect()
    }

    /// All roles think with the scripted model, whose prices are round.
    pub(crate) fn agent_services(&self) -> AgentServices {
        let (kind, auth) = match self.wire {
            Wire::Anthropic => ("anthropic", "api_key"),
            Wire::OpenAi => ("openai", "bearer"),
            Wire::Bedrock => ("bedrock", "aws"),
        };
        let region = if self.wire == Wire::Bedrock { "region = \"us-east-1\"" } else { "" };
        let (url, key) = self.address();
        let context = self.scenario.script().context.unwrap_or(200_000);
        let max_output = (context / 4).min(4096);
        let text = format!(
            r#"
            [provider.scripted]
            kind = "{kind}"
            auth = "{auth}"
            base_url = "{url}"
            {region}
            at_once = 8
            [model.scripted]
            provider = "scripted"
            id = "scripted-1"
            context = {context}
            max_output = {max_output}
            supports = ["calls"]
            prices = {{ input = 1000000, output = 2000000, cache_read = 100000, cache_write = 1000000 }}
            [roles]
            conductor = "scripted"
            writer = "scripted"
            researcher = "scripted"
            terminal = "scripted"
            [retry]
            attempts = 3
            first_pause_ms = 1
            longest_pause_ms = 2000
            [patience]
            connect_ms = 5000
            silence_ms = 20000
            "#
        );
        let table = text.parse().unwrap();
        let web: Arc<dyn Web> = Arc::new(Pages(self.scenario.pages.clone()));
        let agent_services = AgentServices {
            keys: Arc::new(move |_| Arc::new(Key(key.clone()))),
            local_services: LocalServices { local: None, web: Some(web) },
            ..AgentServices::new(Some(&table)).unwrap()
        };
        agent_services.with_mcp(Some(&self.scenario.servers())).unwrap()
    }

    /// A computer with the files of the scenario, on which nothing has happened yet.
    pub(crate) fn prepare(&self) -> Computer {
        let paths = self.paths();
        let (computer, _) =
            Computer::create(&paths, UserId::parse("ada").unwrap(), "Ada", &|_, _, _| ()).unwrap();
        for (number, (path, text)) in self.scenario.files.iter().enumerate() {
            write(&computer, CommandId::from_bytes(fixed_id(8, number)), path, text);
        }
        // Only scenarios that are about the outbox wait for it.
        let at_once = BTreeMap::from([(computer::OUTBOX_SECONDS_SETTING.to_owned(), 0.into())]);
        for (key, value) in at_once.iter().chain(&self.scenario.settings) {
            let set = DesktopAction::SetSetting { key: key.as_str().into(), value: value.clone() };
            let envelope = Envelope::new(Request::Gesture(set));
            computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
        }
        self.start(&computer, self.runs[0], &self.scenario.objective, &self.scenario.attached);
        computer
    }

    fn start(&self, computer: &Computer, run: RunId, objective: &str, attached: &[String]) {
        let start = StartRun {
            command: CommandId::from_bytes(*run.as_bytes()),
            run,
            objective: objective.to_owned(),
            attached: attached.iter().map(|path| FilePath::parse(path).unwrap()).collect(),
            model: None,
            budget: self.scenario.budget,
        };
        ask(computer, RunRequest::Start(start));
    }

    /// Lets the first of the other objectives begin whose time has come. True if one did.
    fn start_another(&self, computer: &Computer, events: &[Event]) -> bool {
        let mut others = self.scenario.beside.iter().zip(&self.runs[1..]);
        let due = others.find(|(beside, run)| {
            nth(events, &beside.after, beside.number).is_some() && self.events(computer, **run).is_empty()
        });
        let Some((beside, run)) = due else { return false };
        self.start(computer, *run, &beside.objective, &[]);
        true
    }

    /// Plays the scenario from its beginning, looks at what came of it, and undoes it.
    pub(crate) fn play(&self) -> Result<(), String> {
        let end = self.carry_on(self.prepare())?;
        self.judge(&end)?;
        let computer = computer::client::open_exclusive(&self.paths()).map_err(|e| e.to_string())?;
        snapshot::check(&self.scenario.name, &transcript::of(self, &computer)?)?;
        self.keeps_no_key(&computer)?;
        self.every_step_has_a_cause(&computer)?;
        self.undo(&computer, &end)
    }

    /// Lets agents work until the runs are over, or nothing happens any more.
    pub(crate) fn carry_on(&self, computer: Computer) -> Result<End, String> {
        self.carry_on_with(computer, &self.agent_services())
    }

    pub(crate) fn carry_on_with(
        &self,
        computer: Computer,
        agent_services: &AgentServices,
    ) -> Result<End, String> {
        let runtime = Runtime::new().unwrap();
        let open_computer = runtime.block_on(OpenComputer::open(computer, agent_services)).unwrap();
        let ended = self.follow(&open_computer);
        let end = ended.map(|()| self.look(open_computer.computer()));
        runtime.block_on(open_computer.close());
        runtime.shutdown_timeout(Duration::from_secs(5));
        end
    }

    fn follow(&self, open_computer: &OpenComputer) -> Result<(), String> {
        let computer = open_computer.computer();
        let mut person = Person::new(self.scenario, self.runs[0]);
        let mut since = (Instant::now(), computer.log().head().seq);
        loop {
            // In this order: the cause of the pause is among the events that the person sees.
            let is_still = self.runs.iter().all(|run| self.is_still(computer, *run));
            let events = self.events(computer, self.runs[0]);
            let acted = person.act(computer, &events) || self.start_another(computer, &events);
            if is_still && !acted && !person.has_more(&events) {
                return Ok(());
            }
            let head = computer.log().head().seq;
            if head != since.1 {
                since = (Instant::now(), head);
            }
            if since.0.elapsed() > PATIENCE {
                let line = self.details(computer, self.runs[0]).line;
                let names: Vec<String> =
                    events.iter().map(|event| event.payload.name().to_string()).collect();
                let refusals = self.refusals();
                return Err(format!("nothing happens any more: {line:?}\n{names:?}\n{refusals:?}"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether a run has begun, and nothing happens in it unless the person does something.
    fn is_still(&self, computer: &Computer, run: RunId) -> bool {
        if self.events(computer, run).is_empty() {
            return false;
        }
        let state = self.details(computer, run).line.state;
        let inspected = computer
            .writer()
            .inspect(move |view| (!view.calls.is_empty(), view.unfinished_in(run).is_some()));
        let (is_busy, is_pending) = inspected.unwrap();
        match state {
            RunState::Paused => !is_busy,
            state => state.is_over() && !is_busy && !is_pending,
        }
    }

    pub(crate) fn events(&self, computer: &Computer, run: RunId) -> Vec<Event> {
        events_of(&**computer.log(), run)
    }

    pub(crate) fn details(&self, computer: &Computer, run: RunId) -> RunDetails {
        match ask(computer, RunRequest::Show { run: run.to_string() }) {
            RunResponse::Details(details) => *details,
            other => panic!("{other:?}"),
        }
    }

    /// All files of the workspace, from the disk.
    pub(crate) fn files(&self) -> BTreeMap<String, String> {
        fn walk(top: &std::path::Path, folder: &std::path::Path, files: &mut BTreeMap<String, String>) {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if entry.file_name() == ".choir" {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    walk(top, &path, files);
                } else {
                    let name = path.strip_prefix(top).unwrap().to_string_lossy().into_owned();
                    files.insert(name, String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned());
                }
            }
        }
        let mut files = BTreeMap::new();
        walk(self.path(), self.path(), &mut files);
        files
    }
}

pub(crate) fn events_of(log: &dyn EventLog, run: RunId) -> Vec<Event> {
    log.run(run).unwrap().iter().map(|stored| decode_event(log, stored).unwrap()).collect()
}

/// The same at every play, so that what comes of it can be compared.
fn run_id(number: usize) -> RunId {
    RunId::from_bytes(fixed_id(7, number))
}

/// The bytes of an id that a caller would mint otherwise.
pub(crate) fn fixed_id(kind: u8, number: usize) -> [u8; 16] {
    let mut bytes = [kind; 16];
    (bytes[6], bytes[8]) = (0x77, 0x87);
    bytes[15] += u8::try_from(number).unwrap();
    bytes
}

/// An event of a type; the first is 1.
pub(crate) fn nth<'e>(
    events: impl IntoIterator<Item = &'e Event>,
    name: &str,
    number: usize,
) -> Option<&'e Event> {
    events.into_iter().filter(|event| event.payload.name().as_str() == name).nth(number - 1)
}

/// Writes a file, once for each command.
pub(crate) fn write(computer: &Computer, command: CommandId, path: &str, text: &str) {
    let path = FilePath::parse(path).unwrap();
    let request = Request::Write { path, mode: None, base: kernel::Base::Any };
    let envelope = Envelope { command, ..Envelope::new(request) };
    computer.handle(&envelope, &mut text.as_bytes(), &|_, _, _| ()).into_done().unwrap();
}

pub(crate) fn ask(computer: &Computer, request: RunRequest) -> RunResponse {
    let envelope = Envelope::new(Request::AgentRuns(request));
    match computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()) {
        Answer::AgentRuns(answer) => answer,
        other => panic!("{:?}", other.into_done()),
    }
}
