//! Turns whose reply is refused.

use std::sync::Mutex;

use kernel::Action;
use models::chat::Reply;
use models::{ApiKey, ApiKeys, Catalog, Gateway};
use shared_types::wire::CellCommand;
use shared_types::{CommandId, ContentHash, ContentRef, Event, FilePath, OpId, RunId, Timestamp};

use super::*;
use crate::AgentEnvironment;
use crate::port::{AgentSubmission, Answer, CommandOrigin, ComputerPort, FileHit, FolderListing, FoundFile};
use crate::rules::Rules;

/// A computer whose runs are over: it records lost turns and refuses all else.
#[derive(Default)]
struct FinishedRunPort(Mutex<Vec<LlmFail>>);

fn refused<'a, T: Send + 'a>() -> Answer<'a, T> {
    Box::pin(async { Err(PortError::Refused("the run is over".into())) })
}

impl ComputerPort for FinishedRunPort {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn new_command(&self) -> CommandId {
        CommandId::from_bytes([1; 16])
    }

    fn new_op(&self) -> OpId {
        OpId::from_bytes([2; 16])
    }

    fn record(&self, submission: AgentSubmission) -> Answer<'_, Option<Seq>> {
        let Action::Run(RunAction::RecordLoss(lost)) = submission.action else { return refused() };
        self.0.lock().unwrap().push(lost);
        Box::pin(async { Ok(Some(Seq(9))) })
    }

    fn store_content(&self, _: Vec<u8>) -> Answer<'_, ContentRef> {
        refused()
    }

    fn content(&self, _: ContentHash) -> Answer<'_, Vec<u8>> {
        refused()
    }

    fn open_runs(&self) -> Answer<'_, Vec<RunId>> {
        refused()
    }

    fn events_of(&self, _: RunId) -> Answer<'_, Vec<Event>> {
        refused()
    }

    fn run_context(&self, _: RunId) -> Answer<'_, RunContext> {
        refused()
    }

    fn file(&self, _: FilePath) -> Answer<'_, Option<FoundFile>> {
        refused()
    }

    fn list(&self, _: Option<FilePath>) -> Answer<'_, Option<FolderListing>> {
        refused()
    }

    fn search(&self, _: String) -> Answer<'_, Vec<FileHit>> {
        refused()
    }

    fn exec(&self, _: CommandOrigin, _: CellCommand) -> Answer<'_, Seq> {
        refused()
    }

    fn is_running(&self, _: OpId) -> bool {
        false
    }

    fn stop(&self, _: OpId) {}

    fn stream_text(&self, _: RunId, _: TaskId, _: &str) {}
}

struct NoKeys;

impl ApiKeys for NoKeys {
    fn key(&self, _: &str) -> Option<ApiKey> {
        None
    }
}

fn job(port: Arc<FinishedRunPort>) -> Job {
    let environment = AgentEnvironment {
        port,
        gateway: Gateway::new(Catalog::load(None).unwrap(), Arc::new(NoKeys)),
        rules: Arc::new(Rules::built_in().unwrap()),
        web: None,
        toolbox: None,
        reserved: Default::default(),
        rooms: Default::default(),
        local: Default::default(),
    };
    Job {
        environment: Arc::new(environment),
        history: Arc::new(History::from_events(RunId::from_bytes([3; 16]), &[])),
        texts: Default::default(),
        reserved: Default::default(),
        is_orphaned: false,
        cancelled: Default::default(),
    }
}

#[tokio::test]
async fn the_usage_of_a_refused_reply_is_recorded() {
    let (port, task) = (Arc::new(FinishedRunPort::default()), TaskId::from_bytes([4; 16]));
    let job = job(Arc::clone(&port));
    let usage = Usage { input: 70, output: 30, ..Usage::default() };
    let reply = Reply { text: "Yes.".into(), calls: Vec::new(), stop: StopReason::End, usage };
    let turn = CompletedTurn { reply, model: "small".into(), cost: Some(5), attempts: 1, millis: 3 };
    let over = Err(PortError::Refused("the run is over".into()));
    assert_eq!(job.record_turn(task, turn).await, over);
    let unusable =
        ModelError { usage, cost: Some(7), ..ModelError::new("small", ErrorClass::Unusable, "No.") };
    assert_eq!(job.turn_failed(task, &unusable).await, over);
    let without_usage = ModelError::new("small", ErrorClass::BadRequest, "No.");
    assert_eq!(job.turn_failed(task, &without_usage).await, over);
    let lost = port.0.lock().unwrap();
    let recorded: Vec<_> = lost.iter().map(|lost| (lost.tokens.total(), lost.micros)).collect();
    assert_eq!(recorded, [(100, Some(5)), (100, Some(7))], "a failure without usage is not recorded");
}
