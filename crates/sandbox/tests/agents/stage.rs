//! A computer with a scripted model behind it, on which a scenario is played.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents::web::{FromWeb, Page, Web, WebHit};
use event_log::{EventLog, understand};
use models::{Keys, Secret};
use sandbox::computer::Computer;
use sandbox::desk::Desk;
use sandbox::minds::{Minds, Outside};
use sandbox::place::Place;
use sandbox::protocol::{Answer, Choices, Envelope, Request, RunAnswer, RunRequest};
use scripted_model::{Server, Wire};
use shared_types::wire::{DesktopAction, RunDetails, RunState, StartRun};
use shared_types::{CommandId, Event, FilePath, RunId, UserId};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::person::Person;
use crate::scenario::Scenario;

/// A run that has not moved for so long will not.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct Stage<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) server: Server,
    pub(crate) wire: Wire,
    pub(crate) folder: TempDir,
    pub(crate) run: RunId,
}

/// What a run came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct End {
    pub(crate) details: RunDetails,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) calls: Vec<String>,
    pub(crate) asks: usize,
}

struct Key(String);

impl Keys for Key {
    fn key(&self, _: &str) -> Option<Secret> {
        Some(Secret::new(self.0.clone()))
    }
}

/// The pages of a scenario, and no others.
struct Pages(BTreeMap<String, String>);

impl Web for Pages {
    fn fetch(&self, url: url::Url) -> FromWeb<'_, Page> {
        let found = self.0.get(url.as_str()).cloned();
        Box::pin(async move {
            let text = found.ok_or_else(|| "there is no such page".to_owned())?;
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

impl<'a> Stage<'a> {
    pub(crate) fn new(scenario: &'a Scenario, wire: Wire) -> Self {
        isolation::launch_by(env!("CARGO_BIN_EXE_sandbox"));
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(scenario.script());
        let mut bytes = [7; 16];
        bytes[6] = 0x77;
        bytes[8] = 0x87;
        Self { scenario, server, wire, folder, run: RunId::from_bytes(bytes) }
    }

    pub(crate) fn place(&self) -> Place {
        Place::at(self.folder.path())
    }

    /// All roles think with the scripted model, whose prices are round.
    pub(crate) fn minds(&self) -> Minds {
        let (kind, auth) = match self.wire {
            Wire::Anthropic => ("anthropic", "api_key"),
            Wire::OpenAi => ("openai", "bearer"),
            Wire::Bedrock => ("bedrock", "aws"),
        };
        let region = if self.wire == Wire::Bedrock { "region = \"us-east-1\"" } else { "" };
        let url = self.server.url(self.wire);
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
            context = 200000
            max_output = 4096
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
        let key = self.server.key().to_owned();
        let web: Arc<dyn Web> = Arc::new(Pages(self.scenario.pages.clone()));
        let minds = Minds {
            keys: Arc::new(move |_| Arc::new(Key(key.clone()))),
            outside: Outside { local: None, web: Some(web) },
            ..Minds::new(Some(&table)).unwrap()
        };
        minds.with_tools(Some(&self.scenario.servers())).unwrap()
    }

    /// A computer with the files of the scenario, on which nothing has happened yet.
    pub(crate) fn prepare(&self) -> Computer {
        let place = self.place();
        let (computer, _) =
            Computer::create(&place, UserId::parse("ada").unwrap(), "Ada", &|_, _, _| ()).unwrap();
        for (path, text) in &self.scenario.files {
            write(&computer, path, text);
        }
        // Only scenarios that are about the outbox wait for it.
        let at_once = BTreeMap::from([(sandbox::computer::OUTBOX.to_owned(), 0.into())]);
        for (key, value) in at_once.iter().chain(&self.scenario.settings) {
            let set = DesktopAction::SetSetting { key: key.as_str().into(), value: value.clone() };
            let envelope = Envelope::new(Request::Gesture(set));
            computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
        }
        let start = StartRun {
            command: CommandId::from_bytes(*self.run.as_bytes()),
            run: self.run,
            objective: self.scenario.objective.clone(),
            attached: Vec::new(),
            model: None,
            budget: self.scenario.budget,
        };
        ask(&computer, RunRequest::Start(start));
        computer
    }

    /// Plays the scenario from its beginning, looks at what came of it, and undoes it.
    pub(crate) fn play(&self) -> Result<(), String> {
        let end = self.carry_on(self.prepare())?;
        self.judge(&end)?;
        self.undo(&end)
    }

    /// Lets agents work until the run is over, or nobody does anything any more.
    pub(crate) fn carry_on(&self, computer: Computer) -> Result<End, String> {
        self.carry_on_with(computer, &self.minds())
    }

    pub(crate) fn carry_on_with(&self, computer: Computer, minds: &Minds) -> Result<End, String> {
        let runtime = Runtime::new().unwrap();
        let desk = runtime.block_on(Desk::open(computer, minds)).unwrap();
        let ended = self.follow(&desk);
        let end = ended.map(|()| self.look(&desk));
        runtime.block_on(desk.close());
        runtime.shutdown_timeout(Duration::from_secs(5));
        end
    }

    fn follow(&self, desk: &Desk) -> Result<(), String> {
        let mut person = Person::new(self.scenario, self.run);
        let mut since = (Instant::now(), desk.computer().log().head().seq);
        loop {
            // In this order: whatever made it stand still is among the events that the person sees.
            let line = self.details(desk.computer()).line;
            let events = self.events(desk.computer());
            let acted = person.act(desk.computer(), &events);
            if !acted && (line.state.is_over() || line.state == RunState::Paused) && !person.has_more(&events)
            {
                let busy = desk.computer().writer().inspect(|view| !view.calls.is_empty()).unwrap();
                let pending = desk.computer().writer().inspect({
                    let run = self.run;
                    move |view| view.pending_in(run).is_some()
                });
                if !busy && (line.state == RunState::Paused || !pending.unwrap()) {
                    return Ok(());
                }
            }
            let head = desk.computer().log().head().seq;
            if head != since.1 {
                since = (Instant::now(), head);
            }
            if since.0.elapsed() > PATIENCE {
                let names: Vec<String> =
                    events.iter().map(|event| event.payload.name().to_string()).collect();
                return Err(format!(
                    "nothing happens any more: {line:?}\n{names:?}\n{:?}",
                    self.server.refusals()
                ));
            }
            std::thread::sleep(LOOK);
        }
    }

    pub(crate) fn events(&self, computer: &Computer) -> Vec<Event> {
        let log = &**computer.log();
        log.run(self.run).unwrap().iter().map(|stored| understand(log, stored).unwrap()).collect()
    }

    pub(crate) fn details(&self, computer: &Computer) -> RunDetails {
        match ask(computer, RunRequest::Show { run: self.run.to_string() }) {
            RunAnswer::Details(details) => *details,
            other => panic!("{other:?}"),
        }
    }

    fn look(&self, desk: &Desk) -> End {
        let computer = desk.computer();
        computer.project(&|_, _, _| ()).unwrap();
        let events = self.events(computer);
        let mut tools = BTreeMap::new();
        let mut calls = Vec::new();
        let mut asks = 0;
        for event in &events {
            use shared_types::Payload;
            use shared_types::payload::run::RunEvent;
            use shared_types::payload::tool::{ToolEvent, ToolStatus};
            match &event.payload {
                Payload::Tool(ToolEvent::Call(call)) => drop(tools.insert(event.op, call.tool.clone())),
                Payload::Tool(ToolEvent::Result(result)) => {
                    let came =
                        if result.status == (ToolStatus::Exited { code: 0 }) { "ok" } else { "failed" };
                    calls.push(format!("{} {came}", tools[&event.op]));
                }
                Payload::Run(RunEvent::Ask(_)) => asks += 1,
                _ => {}
            }
        }
        calls.sort();
        End { details: self.details(computer), files: self.files(), calls, asks }
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
        walk(self.folder.path(), self.folder.path(), &mut files);
        files
    }

    pub(crate) fn judge(&self, end: &End) -> Result<(), String> {
        let expect = &self.scenario.expect;
        let state = format!("{:?}", end.details.line.state).to_lowercase();
        let refusals = self.server.refusals();
        check("what the model refused", &Vec::<String>::new(), &refusals)?;
        if state != expect.state {
            let reason = &end.details.line.reason;
            return Err(format!("it is {state} ({reason:?}), not {}; calls: {:?}", expect.state, end.calls));
        }
        let holds = |what: &str, part: &Option<String>, whole: Option<&str>| match part {
            Some(part) if !whole.unwrap_or_default().contains(part.as_str()) => {
                Err(format!("{what} is {whole:?}, which does not hold {part:?}"))
            }
            _ => Ok(()),
        };
        holds("the reason", &expect.reason, end.details.line.reason.as_deref())?;
        holds("the summary", &expect.summary, end.details.summary.as_deref())?;
        let mut files = self.scenario.files.clone();
        files.extend(expect.files.clone());
        files.retain(|path, _| !expect.absent.contains(path));
        check("the files", &files, &end.files)?;
        check("how often the person was asked", &expect.asks, &end.asks)?;
        if let Some(calls) = &expect.calls {
            let mut calls = calls.clone();
            calls.sort();
            check("the calls", &calls, &end.calls)?;
        }
        if let Some(turns) = expect.turns {
            check("the turns", &turns, &end.details.line.cost.steps)?;
        }
        if let Some(micros) = expect.micros {
            check("the cost", &micros, &end.details.line.cost.micros)?;
        }
        for (role, labels) in &expect.taint {
            let agent = end.details.agents.iter().find(|agent| agent.role == *role);
            let found: Vec<String> = agent
                .iter()
                .flat_map(|agent| agent.taint.iter().map(|label| label.as_str().to_owned()))
                .collect();
            check(&format!("the labels of the {role}"), labels, &found)?;
        }
        Ok(())
    }

    /// The whole run is taken back, and everything is as before but for what the person did.
    fn undo(&self, end: &End) -> Result<(), String> {
        let computer = sandbox::session::take(&self.place()).map_err(|e| e.to_string())?;
        let mut before = self.scenario.files.clone();
        before.extend(self.scenario.expect.undone.clone());
        let changed = end.files != before;
        let run = self.run.to_string();
        let undo = RunRequest::Undo { run, choices: Choices::default(), preview: false };
        let envelope = Envelope::new(Request::Runs(undo));
        let answer = computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
        match answer.into_done() {
            Ok(_) => {}
            Err(_) if !changed || !end.details.line.state.is_over() => return Ok(()),
            Err(failure) => return Err(format!("the run cannot be undone: {failure}")),
        }
        check("the files after undo", &before, &self.files())?;
        Ok(())
    }
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, wanted: &T, found: &T) -> Result<(), String> {
    if wanted == found { Ok(()) } else { Err(format!("{what}:\n  wanted {wanted:?}\n  found  {found:?}")) }
}

pub(crate) fn write(computer: &Computer, path: &str, text: &str) {
    let path = FilePath::parse(path).unwrap();
    let request = Request::Write { path, mode: None, base: kernel::Base::Any };
    computer.handle(&Envelope::new(request), &mut text.as_bytes(), &|_, _, _| ()).into_done().unwrap();
}

pub(crate) fn ask(computer: &Computer, request: RunRequest) -> RunAnswer {
    let envelope = Envelope::new(Request::Runs(request));
    match computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()) {
        Answer::Runs(answer) => answer,
        other => panic!("{:?}", other.into_done()),
    }
}
