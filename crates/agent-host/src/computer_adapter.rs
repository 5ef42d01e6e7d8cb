//! Implements the agents' port on a computer. Blocking work runs on blocking threads.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents::port::{
    AgentReadPolicy, AgentSubmission, Answer, CommandOrigin, FileHit, FolderListing, FoundFile, RunContext,
};
use agents::{ComputerPort, PortError, roles};
use event_log::writer::{ChangeRequest, Mode, Submission, SubmitError};
use event_log::{EventLog, decode_event, read_content};
use kernel::View;
use projector::Views;
use shared_types::payload::file::FileNode;
use shared_types::payload::run::Budget;
use shared_types::wire::CellCommand;
use shared_types::{
    CommandId, ContentHash, ContentRef, Event, FilePath, OpId, RunId, Seq, Taint, TaskId, Timestamp,
};
use tokio::sync::Semaphore;

use computer::ReadPolicy;
use computer::error::{ComputerError, ErrorCode};
use computer::ids;
use computer::running_commands::Commands;
use computer::{
    AgentCaller, AgentSpeech, Caller, Computer, DAILY_BUDGET_SETTING, DEFAULT_OUTBOX, OUTBOX_SECONDS_SETTING,
    agent_budget_setting, role_model_setting,
};
use tokio::sync::watch;

/// Commands of agents that run at the same time; others wait for a permit.
const MAX_COMMANDS: usize = 8;
/// How long to wait until lists and search reflect the log; then they are used as they are.
const PROJECTION_TIMEOUT: Duration = Duration::from_secs(2);
/// Results of a search.
const MAX_HITS: u32 = 50;

#[derive(Debug)]
pub struct ComputerAdapter {
    computer: Arc<Computer>,
    commands: Arc<Commands>,
    projected: watch::Receiver<Seq>,
    permits: Arc<Semaphore>,
}

impl ComputerAdapter {
    pub fn new(computer: Arc<Computer>, commands: Arc<Commands>, projected: watch::Receiver<Seq>) -> Self {
        Self { computer, commands, projected, permits: Arc::new(Semaphore::new(MAX_COMMANDS)) }
    }

    /// Runs blocking work.
    fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Computer>) -> Result<T, ComputerError> + Send + 'static,
    ) -> Answer<'_, T> {
        let computer = Arc::clone(&self.computer);
        Box::pin(async move {
            match tokio::task::spawn_blocking(move || work(&computer)).await {
                Ok(result) => result.map_err(|failure| to_port_error(&failure)),
                Err(_) => Err(PortError::Unavailable("an internal task of the computer failed".into())),
            }
        })
    }

    /// Reads the current view. The writer's thread runs `read`, so this does not block.
    fn inspect<T: Send + 'static>(&self, read: impl FnOnce(&View) -> T + Send + 'static) -> Answer<'_, T> {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.computer.writer().inspect_with(move |view| {
            let _ = sender.send(read(view));
        });
        Box::pin(async move {
            receiver.await.map_err(|_| PortError::Unavailable("the computer is being closed".into()))
        })
    }

    /// Reads the projected views, once they have caught up with the log.
    fn read_views<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Views) -> Result<T, ComputerError> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            let head = self.computer.log().head().seq;
            let mut projected = self.projected.clone();
            let _ = tokio::time::timeout(PROJECTION_TIMEOUT, projected.wait_for(|seq| *seq >= head)).await;
            self.run_blocking(move |computer| work(&Views::open_read_only(&computer.paths.state)?)).await
        })
    }
}

fn to_port_error(failure: &ComputerError) -> PortError {
    match failure.code {
        ErrorCode::Busy | ErrorCode::StorageFull | ErrorCode::ReadOnly | ErrorCode::Failed => {
            PortError::Unavailable(failure.message.clone())
        }
        ErrorCode::BadPath
        | ErrorCode::BadRequest
        | ErrorCode::NoComputer
        | ErrorCode::NotFound
        | ErrorCode::Conflict
        | ErrorCode::Refused
        | ErrorCode::Damaged
        | ErrorCode::NoRun
        | ErrorCode::RunTaken
        | ErrorCode::RunIsOver
        | ErrorCode::RunIsPaused
        | ErrorCode::RunIsBusy
        | ErrorCode::NoTask
        | ErrorCode::TaskTaken
        | ErrorCode::TaskIsOver
        | ErrorCode::TaskIsBusy
        | ErrorCode::NoQuestion
        | ErrorCode::NoGrant => PortError::Refused(failure.message.clone()),
    }
}

impl ComputerPort for ComputerAdapter {
    fn now(&self) -> Timestamp {
        ids::now()
    }

    fn new_command(&self) -> CommandId {
        ids::new_command()
    }

    fn new_op(&self) -> OpId {
        ids::new_op()
    }

    /// The writer's threads do the work, so this does not block.
    fn record(&self, submission: AgentSubmission) -> Answer<'_, Option<Seq>> {
        let AgentSubmission { origin, action, contents } = submission;
        let submission = Submission::new(origin, ChangeRequest::Do(action), contents);
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.computer.writer().submit_with(submission, Mode::Commit, move |answer| {
            let _ = sender.send(answer);
        });
        Box::pin(async move {
            match receiver.await {
                Ok(Ok(outcome)) => Ok(outcome.appended.map(|appended| appended.last)),
                Ok(Err(SubmitError::Rejected(rejection))) => Err(PortError::Refused(rejection.to_string())),
                Ok(Err(error)) => Err(PortError::Unavailable(error.to_string())),
                Err(_) => Err(PortError::Unavailable("the computer is being closed".into())),
            }
        })
    }

    fn store_content(&self, bytes: Vec<u8>) -> Answer<'_, ContentRef> {
        self.run_blocking(move |computer| Ok(computer.log().stage(&mut &*bytes)?.content()))
    }

    fn content(&self, hash: ContentHash) -> Answer<'_, Vec<u8>> {
        self.run_blocking(move |computer| Ok(read_content(&**computer.log(), &hash)?))
    }

    fn open_runs(&self) -> Answer<'_, Vec<RunId>> {
        self.inspect(|view| {
            let open = view
                .runs
                .iter()
                .filter(|(id, run)| !run.phase.is_over() || view.unfinished_in(**id).is_some());
            open.map(|(id, _)| *id).collect()
        })
    }

    fn events_of(&self, run: RunId) -> Answer<'_, Vec<Event>> {
        self.run_blocking(move |computer| {
            let log = &**computer.log();
            let stored = log.run(run)?;
            Ok(stored.iter().map(|stored| decode_event(log, stored)).collect::<Result<_, _>>()?)
        })
    }

    fn run_context(&self, run: RunId) -> Answer<'_, RunContext> {
        let now = ids::now();
        self.inspect(move |view| {
            let setting = |key: &str| view.setting(key);
            let grants = view.grants.sorted().into_iter().map(|(_, grant)| grant.clone());
            let roles = roles::ROLES.into_iter().filter_map(|role| {
                let model = setting(&role_model_setting(role.name()))?;
                Some((role.name().to_owned(), model.as_str()?.to_owned()))
            });
            let budget = |value| serde_json::from_value::<Budget>(value).ok();
            let agents = roles::ROLES.into_iter().filter_map(|role| {
                Some((role.name().to_owned(), budget(setting(&agent_budget_setting(role.name()))?)?))
            });
            let daily = setting(DAILY_BUDGET_SETTING).and_then(budget);
            let outbox =
                setting(OUTBOX_SECONDS_SETTING).and_then(|value| value.as_u64()).unwrap_or(DEFAULT_OUTBOX);
            RunContext {
                grants: grants.filter(|grant| grant.run.is_none_or(|only| only == run)).collect(),
                spent: view.runs.get(&run).map(|run| run.spent),
                today: view.spent_on_day(now),
                daily: daily.unwrap_or_default(),
                agents: agents.collect(),
                outbox: Duration::from_secs(outbox),
                roles: roles.collect(),
            }
        })
    }

    fn file(&self, path: FilePath) -> Answer<'_, Option<FoundFile>> {
        self.inspect(move |view| {
            let node = view.files.get(&path)?.clone();
            Some(FoundFile { node, taint: view.tainted_files.get(&path).cloned().unwrap_or_default() })
        })
    }

    fn list(&self, folder: Option<FilePath>) -> Answer<'_, Option<FolderListing>> {
        Box::pin(async move {
            // The log records only empty folders; others exist through their files.
            let is_there = match folder.clone() {
                Some(path) => self.file(path).await?.is_some_and(|found| found.node == FileNode::Folder),
                None => true,
            };
            let above = folder.clone();
            let names = self.read_views(move |views| {
                let names = views.children(folder.as_ref())?.into_iter().map(|child| {
                    let name = child.path.rsplit('/').next().unwrap_or_default().to_owned();
                    if child.node == FileNode::Folder { format!("{name}/") } else { name }
                });
                let names: Vec<String> = names.collect();
                Ok((is_there || !names.is_empty()).then_some(names))
            });
            let Some(names) = names.await? else { return Ok(None) };
            let taint = self.inspect(move |view| folder_taint(view, above.as_ref())).await?;
            Ok(Some(FolderListing { names, taint }))
        })
    }

    fn search(&self, words: String) -> Answer<'_, Vec<FileHit>> {
        Box::pin(async move {
            let query = words.clone();
            let (named, holding) = self
                .read_views(move |views| {
                    Ok((views.named(&query, MAX_HITS)?, views.search(&query, MAX_HITS)?))
                })
                .await?;
            self.run_blocking(move |computer| {
                let parsed = |path: &str| FilePath::parse(path).ok();
                let labels = |path: &FilePath| {
                    let path = path.clone();
                    computer
                        .writer()
                        .inspect(move |view| view.tainted_files.get(&path).cloned().unwrap_or_default())
                };
                let mut hits: Vec<FileHit> = Vec::new();
                let mut seen = BTreeSet::new();
                for path in holding.iter().filter_map(|hit| parsed(&hit.path)) {
                    if seen.insert(path.clone()) {
                        let (line, taint) = (first_matching_line(computer, &path, &words)?, labels(&path)?);
                        hits.push(FileHit { path, line, taint });
                    }
                }
                for path in named.iter().filter_map(|hit| parsed(&hit.path)) {
                    if seen.insert(path.clone()) {
                        let taint = labels(&path)?;
                        hits.push(FileHit { path, line: None, taint });
                    }
                }
                Ok(hits)
            })
            .await
        })
    }

    fn exec(&self, by: CommandOrigin, command: CellCommand) -> Answer<'_, Seq> {
        let (computer, commands, permits) =
            (Arc::clone(&self.computer), Arc::clone(&self.commands), Arc::clone(&self.permits));
        Box::pin(async move {
            let requested_at = Instant::now();
            let permit = permits.acquire_owned().await;
            let left = by.left.map(|left| left.saturating_sub(requested_at.elapsed()));
            let ran = tokio::task::spawn_blocking(move || {
                let _permit = permit;
                let op = by.origin.op;
                let agent = AgentCaller {
                    run: by.run,
                    task: by.task,
                    read_policy: read_policy(by.read_policy),
                    time_left: left,
                };
                let caller = Caller { origin: by.origin, agent: Some(agent) };
                let ran = commands.run_for_agent(&computer, &caller, &command);
                // The result is in the log, also if the command failed.
                let events = computer.log().operation(op)?;
                match (ran, events.last().filter(|event| event.name == "tool.result")) {
                    (_, Some(result)) => Ok(result.seq),
                    (Err(failure), None) => Err(failure),
                    (Ok(()), None) => {
                        Err(ComputerError::new(ErrorCode::Failed, "the command was not answered"))
                    }
                }
            });
            match ran.await {
                Ok(result) => result.map_err(|failure| to_port_error(&failure)),
                Err(_) => Err(PortError::Unavailable("an internal task of the computer failed".into())),
            }
        })
    }

    fn is_running(&self, call: OpId) -> bool {
        self.commands.is_running(call)
    }

    fn stop(&self, call: OpId) {
        let (computer, commands) = (Arc::clone(&self.computer), Arc::clone(&self.commands));
        tokio::task::spawn_blocking(move || {
            let _ = commands.stop(&computer, call);
        });
    }

    fn stream_text(&self, run: RunId, task: TaskId, text: &str) {
        self.computer.stream_speech(AgentSpeech { run, task, text: text.into() });
    }
}

/// The read policy of an agent, for the computer that runs its commands.
fn read_policy(policy: AgentReadPolicy) -> ReadPolicy {
    let own = policy.clone();
    ReadPolicy::new(move |path| own.may_read(path), move |path| policy.may_everyone_read(path))
}

/// The taint labels of a folder listing: of its files, and of subfolders in which every file is tainted.
fn folder_taint(view: &View, folder: Option<&FilePath>) -> Vec<Taint> {
    let mut labels = BTreeSet::new();
    let mut folders: BTreeMap<FilePath, (u32, BTreeSet<Taint>)> = BTreeMap::new();
    for (path, own) in view.tainted_files.iter() {
        match path.ancestors().find(|above| above.parent().as_ref() == folder) {
            None if path.parent().as_ref() == folder => labels.extend(own.iter().cloned()),
            None => {}
            Some(name) => {
                let (count, all) = folders.entry(name).or_default();
                *count += 1;
                all.extend(own.iter().cloned());
            }
        }
    }
    let only = folders.into_iter().filter(|(path, (count, _))| view.files.count_below(path) == *count);
    labels.extend(only.flat_map(|(_, (_, all))| all));
    labels.into_iter().collect()
}

/// The first line of a file that contains one of the words.
fn first_matching_line(
    computer: &Computer,
    path: &FilePath,
    words: &str,
) -> Result<Option<String>, ComputerError> {
    const MAX_FILE_BYTES: u64 = 1 << 20;
    let wanted = path.clone();
    let node = computer.writer().inspect(move |view| view.files.get(&wanted).cloned())?;
    let Some(content) = node.and_then(|node| node.content()).filter(|content| content.size <= MAX_FILE_BYTES)
    else {
        return Ok(None);
    };
    let Ok(bytes) = read_content(&**computer.log(), &content.hash) else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
    let line = text.lines().enumerate().find(|(_, line)| {
        let line = line.to_lowercase();
        words.iter().any(|word| line.contains(word.as_str()))
    });
    Ok(line.map(|(number, line)| {
        format!("{}: {}", number + 1, line.trim().chars().take(200).collect::<String>())
    }))
}
