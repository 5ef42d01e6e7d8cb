//! A computer in a temporary folder, and the events that agents would record in it.

use computer::Computer;
use computer::error::ComputerError;
use computer::ids;
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, ChangeResult, Envelope, Request, RunRequest, RunResponse};
use event_log::EventLog;
use event_log::writer::{ChangeRequest, Mode, Origin, Submission};
use kernel::{Action, Base, OutsideEdit, RunAction};
use serde_json::{Value, json};
use shared_types::payload::file::FileNode;
use shared_types::payload::llm::{LlmReply, Tokens};
use shared_types::payload::run::{AskKind, Budget, RunAsk, RunComplete};
use shared_types::payload::task::{TaskEnd, TaskOutcome, TaskStart};
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::wire::{RunControl, RunDetails, RunLine, StartRun};
use shared_types::{
    Actor, AskId, ContentHash, ContentRef, FilePath, OpId, RunId, Seq, Source, TaskId, UserId,
};
use tempfile::TempDir;

pub(crate) struct TestComputer {
    pub(crate) inner: Computer,
    pub(crate) folder: TempDir,
}

type Contents = Vec<(ContentHash, Vec<u8>)>;

fn content(text: &str) -> (ContentRef, Contents) {
    let content = ContentRef::of(text.as_bytes());
    (content, vec![(content.hash, text.as_bytes().to_vec())])
}

pub(crate) fn at(path: &str) -> FilePath {
    FilePath::parse(path).unwrap()
}

/// What a model said, as it is kept.
pub(crate) fn reply(text: &str) -> String {
    let (calls, usage) = (Vec::new(), models::chat::Usage::default());
    let reply = models::chat::Reply { text: text.into(), calls, stop: models::chat::StopReason::End, usage };
    serde_json::to_string(&reply).unwrap()
}

/// The first agent of a run has its id.
pub(crate) fn first(run: RunId) -> TaskId {
    TaskId::from_bytes(*run.as_bytes())
}

impl TestComputer {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let paths = ComputerPaths::at(folder.path());
        let user = UserId::parse("ada").unwrap();
        let (computer, _) = Computer::create(&paths, user, "Ada", &|_, _, _| ()).unwrap();
        Self { inner: computer, folder }
    }

    pub(crate) fn ask(&self, request: Request, body: &[u8]) -> Answer {
        self.send(&Envelope::new(request), body)
    }

    pub(crate) fn send(&self, envelope: &Envelope, body: &[u8]) -> Answer {
        self.inner.handle(envelope, &mut &*body, &|_, _, _| ())
    }

    pub(crate) fn request(&self, request: RunRequest) -> Result<RunResponse, ComputerError> {
        self.ask(Request::AgentRuns(request), b"").into_runs()
    }

    pub(crate) fn line(&self, request: RunRequest) -> RunLine {
        match self.request(request).unwrap() {
            RunResponse::Line(line) => line,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn start(&self, objective: &str) -> RunId {
        let run = ids::new_run();
        let start = StartRun {
            command: ids::new_command(),
            run,
            objective: objective.into(),
            attached: Vec::new(),
            model: None,
            budget: Budget::default(),
        };
        self.line(RunRequest::Start(start));
        run
    }

    pub(crate) fn control(&self, run: RunId, control: RunControl) -> RunLine {
        self.line(RunRequest::Control { run: run.to_string(), control })
    }

    pub(crate) fn details(&self, run: RunId) -> RunDetails {
        match self.request(RunRequest::Show { run: run.to_string() }).unwrap() {
            RunResponse::Details(details) => *details,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&self, path: &str, text: &str) -> ChangeResult {
        let request = Request::Write { path: at(path), mode: None, base: Base::Any };
        self.ask(request, text.as_bytes()).into_done().unwrap()
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(path)).ok()
    }

    pub(crate) fn undo(&self, run: RunId) -> Result<ChangeResult, ComputerError> {
        let (run, choices) = (run.to_string(), computer::protocol::Choices::default());
        self.ask(Request::AgentRuns(RunRequest::Undo { run, choices, preview: false }), b"").into_done()
    }

    pub(crate) fn redo(&self, run: RunId) -> Result<ChangeResult, ComputerError> {
        let (run, choices) = (run.to_string(), computer::protocol::Choices::default());
        self.ask(Request::AgentRuns(RunRequest::Redo { run, choices, preview: false }), b"").into_done()
    }

    fn submit(&self, run: RunId, op: OpId, action: Action, contents: Contents) -> Option<Seq> {
        let submission = Submission::new(
            Origin { run_id: Some(run), ..Origin::new(ids::new_command(), op, Source::Agent, Actor::CHOIR) },
            ChangeRequest::Do(action),
            contents,
        );
        let outcome = self.inner.writer().submit(submission, Mode::Commit).unwrap();
        self.inner.project(&|_, _, _| ()).unwrap();
        outcome.appended.map(|appended| appended.last)
    }

    pub(crate) fn record(&self, run: RunId, action: RunAction, contents: Contents) -> Seq {
        self.submit(run, OpId::from_bytes(*run.as_bytes()), Action::Run(action), contents).unwrap()
    }

    pub(crate) fn agent(&self, run: RunId, parent: Option<TaskId>, role: &str, title: &str) -> TaskId {
        let task = parent.map_or(first(run), |_| TaskId::from_bytes(*ids::new_op().as_bytes()));
        let (instruction, contents) = content("do it well");
        let start = TaskStart { task, parent, role: role.into(), title: title.into(), instruction };
        self.record(run, RunAction::StartTask(start), contents);
        task
    }

    /// The same, started by a call of the agent that it works for.
    pub(crate) fn delegate(&self, run: RunId, parent: TaskId, role: &str, title: &str) -> TaskId {
        let op = ids::new_op();
        let task = TaskId::from_bytes(*op.as_bytes());
        let (call, mut contents) = Self::tool(parent, "delegate", title, &json!({ "task": title }));
        let (instruction, more) = content(title);
        contents.extend(more);
        let (parent, title) = (Some(parent), title.into());
        let start = TaskStart { task, parent, role: role.into(), title, instruction };
        let (status, report) = (ToolStatus::Exited { code: 0 }, ToolReport::default());
        let also = Some(Box::new(RunAction::StartTask(start)));
        self.submit(run, op, Action::MakeCall { call, status, report, edits: Vec::new(), also }, contents);
        task
    }

    pub(crate) fn reply(&self, run: RunId, task: TaskId, text: &str) -> Seq {
        let (reply, contents) = content(&reply(text));
        let reply = LlmReply {
            task,
            model: "scripted".into(),
            seen: self.inner.log().head().seq,
            reply,
            ended: shared_types::payload::llm::ReplyEnd::Whole,
            calls: Vec::new(),
            tokens: Tokens { input: 10, output: 5, ..Tokens::default() },
            micros: Some(250),
            millis: 3,
            attempts: 1,
        };
        self.record(run, RunAction::RecordReply(reply), contents)
    }

    fn tool(task: TaskId, tool: &str, title: &str, input: &Value) -> (ToolCall, Contents) {
        let (input, contents) = content(&input.to_string());
        let task = Some(task);
        (ToolCall { tool: tool.into(), title: title.into(), input, network: false, task }, contents)
    }

    /// A call that is open.
    pub(crate) fn begin(&self, run: RunId, task: TaskId, title: &str) -> OpId {
        let (call, contents) = Self::tool(task, "exec", title, &json!({ "command": title }));
        let op = ids::new_op();
        self.submit(run, op, Action::StartCall(call), contents);
        op
    }

    /// A call that writes a file.
    pub(crate) fn call(&self, run: RunId, task: TaskId, path: &str, text: &str) -> OpId {
        let (call, mut contents) = Self::tool(task, "write", path, &json!({ "path": path, "text": text }));
        let (output, more) = content("written");
        let (file, bytes) = content(text);
        contents.extend(more.into_iter().chain(bytes));
        let known = at(path);
        let base = self.inner.writer().inspect(move |view| view.files.get(&known).cloned()).unwrap();
        let edits = vec![OutsideEdit { path: at(path), base, now: Some(FileNode::file(file, 0o644)) }];
        let report = ToolReport { output: Some(output), written: 7, ..ToolReport::default() };
        let status = ToolStatus::Exited { code: 0 };
        let op = ids::new_op();
        self.submit(run, op, Action::MakeCall { call, status, report, edits, also: None }, contents);
        op
    }

    /// Asks whether a call may be made.
    pub(crate) fn ask_for(&self, run: RunId, task: TaskId, tool: &str, title: &str, input: &Value) -> AskId {
        let (call, ask) = (ids::new_op(), AskId::from_bytes(*ids::new_op().as_bytes()));
        let (input, contents) = content(&input.to_string());
        let about = AskKind::Approval {
            call,
            tool: tool.into(),
            title: title.into(),
            input,
            why: "the rules say so".into(),
            pattern: title.into(),
            is_final: false,
        };
        self.record(run, RunAction::Ask(RunAsk { ask, task, about }), contents);
        ask
    }

    pub(crate) fn end(&self, run: RunId, task: TaskId, outcome: TaskOutcome) {
        self.record(
            run,
            RunAction::EndTask {
                end: TaskEnd { task, outcome },
                report: None,
                seen: None,
                known: Seq(u64::MAX),
            },
            Vec::new(),
        );
    }

    pub(crate) fn complete(&self, run: RunId, summary: &str) {
        let (summary, contents) = content(summary);
        self.record(run, RunAction::Complete(RunComplete { summary, results: Vec::new() }), contents);
    }
}
