//! A call of an agent's: understood, judged, asked for, made, answered.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Action, OutsideEdit, RunAction};
use serde_json::Value;
use shared_types::payload::run::{AskKind, PauseReason, Reply, RunAsk};
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::wire::{RunCommand, RunLimits, RunNetwork};
use shared_types::{ContentRef, OpId, Seq, Taint, TaskId};

use super::Job;
use crate::budget::whole_millis;
use crate::plan::{Permission, approval_of, repeat_of};
use crate::port::{CallOrigin, PortError, ReadPolicy};
use crate::roles;
use crate::rules::{Judged, Verdict};
use crate::tools::{ToolKind, Use, one_line};

/// Seconds that a command may take at most, however many are asked for.
const LONGEST_COMMAND: u64 = 1_800;

/// Calls of one turn that are made. All others are answered, but none of them is made.
const MOST_CALLS: usize = 32;
/// How often in a row a run may be taken up again before a call that only reads, and is not answered yet, is given up.
const WAKES: usize = 3;

/// The name of a tool as it is recorded, whatever a model wrote.
pub(super) fn tool_name(wanted: &str) -> String {
    let name: String = wanted.chars().filter(|c| !c.is_control()).collect();
    let name = name[..name.floor_char_boundary(64)].trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// A line of shell as a command for a cell.
fn shell(line: String, hosts: Vec<String>, seconds: Option<u64>) -> RunCommand {
    let network = if hosts.is_empty() { RunNetwork::None } else { RunNetwork::Hosts(hosts) };
    let seconds = seconds.map(|seconds| seconds.clamp(1, LONGEST_COMMAND));
    let limits = RunLimits { seconds, ..RunLimits::default() };
    RunCommand { argv: vec!["bash".into(), "-c".into(), line], network, limits, ..RunCommand::default() }
}

/// A call that is about to be answered.
pub(super) struct Call<'a> {
    pub(super) task: TaskId,
    pub(super) op: OpId,
    pub(super) tool: &'a str,
    pub(super) title: String,
    pub(super) input: &'a Value,
}

/// What came of a call.
#[derive(Default)]
pub(super) struct ToolOutcome {
    pub(super) text: String,
    pub(super) edits: Vec<OutsideEdit>,
    /// Contents that the edits or what happens beside them name.
    pub(super) contents: Vec<(shared_types::ContentHash, Vec<u8>)>,
    pub(super) also: Option<RunAction>,
    /// Labels of what was read.
    pub(super) taint: Vec<Taint>,
    /// Why it is no success, where there is something to read all the same.
    pub(super) failed: Option<String>,
}

impl ToolOutcome {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A call as the plan has it.
pub(super) struct Wanted {
    pub(super) op: OpId,
    /// Where it stands in the reply that asked for it.
    pub(super) place: usize,
    pub(super) reply: ContentRef,
    pub(super) permission: Permission,
    /// Whether its time in the outbox is over.
    pub(super) is_released: bool,
}

/// How far a call goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It only reads, and may be made again.
    Reading,
    /// It may do something that cannot be taken back, nor seen from here.
    Outside,
}

/// What is to be done with a call.
pub(super) enum Outcome {
    /// It is answered at once: by what came of it, or by why it failed.
    Now(Result<Box<ToolOutcome>, String>),
    /// It was recorded by whoever carried it out.
    Recorded(Seq),
}

impl Job {
    pub(super) async fn make(&self, task: TaskId, wanted: Wanted) -> Result<Option<Seq>, PortError> {
        let Wanted { op, place, reply, permission, is_released } = wanted;
        let reply = self.reply(reply).await?;
        let Some(wanted) = reply.and_then(|reply| reply.calls.into_iter().nth(place)) else {
            let call = Call { task, op, tool: "unknown", title: "a call".into(), input: &Value::Null };
            return self
                .answer(&call, Err("the reply that asked for it cannot be read any more".into()))
                .await;
        };
        let role = self.history.tasks.get(&task).and_then(|task| roles::named(&task.role));
        let Some(role) = role else { return Ok(None) };
        let name = tool_name(&wanted.tool);
        let understood = match self.foreign(role, &wanted.tool, &wanted.input).await {
            Some(understood) => understood,
            None => Use::read(role, &wanted.tool, &wanted.input),
        };
        let title = understood.as_ref().map_or_else(|_| one_line(&name), Use::title);
        let call = Call { task, op, tool: &name, title, input: &wanted.input };
        let used = match understood {
            Ok(_) if place >= MOST_CALLS => {
                let reason = format!("too many calls in one turn: only the first {MOST_CALLS} are made");
                return self.answer(&call, Err(reason)).await;
            }
            Ok(used) => used,
            Err(reason) => return self.answer(&call, Err(reason)).await,
        };
        // It may be the call itself that ended the server each time.
        if used.is_read_again() && self.history.is_open(op) && self.history.wakes >= WAKES {
            let reason =
                "the server ended again and again before this was answered; it is not made once more";
            return self.answer(&call, Err(reason.into())).await;
        }
        match permission {
            Permission::Unasked => match self.judge(&call, &used).await? {
                Verdict::Allow => {}
                Verdict::Deny { why } => return self.answer(&call, Err(format!("not allowed: {why}"))).await,
                Verdict::Ask { why, pattern } => return self.ask(&call, &used, why, pattern).await,
            },
            Permission::Said(Reply::Allow(_)) => {}
            Permission::Said(Reply::Deny(why)) => {
                let reason = if why.is_empty() {
                    "the person said no".into()
                } else {
                    format!("the person said no: {why}")
                };
                return self.answer(&call, Err(reason)).await;
            }
            Permission::Said(Reply::Words(words)) => {
                return self.answer(&call, Ok(ToolOutcome::text(words))).await;
            }
            Permission::Said(Reply::Silence) => {}
        }
        if used.is_final()
            && !is_released
            && let Some(until) = self.held_until(op).await?
        {
            return self.hold(&call, until).await;
        }
        let left = match self.time_for(&call, &used).await? {
            Ok(left) => left,
            Err(why) => {
                let pause = RunAction::Pause(PauseReason::Budget(why.into()));
                return self.record(pause, Vec::new()).await;
            }
        };
        let outcome = match self.perform(&call, used, left).await {
            // What cannot be done is an answer like any other.
            Err(PortError::Refused(why)) => Outcome::Now(Err(why)),
            other => other?,
        };
        match outcome {
            Outcome::Now(came) => self.answer(&call, came.map(|came| *came)).await,
            Outcome::Recorded(seq) => Ok(Some(seq)),
        }
    }

    /// How long a call may take, where a budget sets a bound to it; or why it is not begun.
    async fn time_for(
        &self,
        call: &Call<'_>,
        used: &Use,
    ) -> Result<Result<Option<Duration>, String>, PortError> {
        if !used.takes_time() {
            return Ok(Ok(None));
        }
        let standing = self.port().standing(self.id()).await?;
        let Some(bounds) = self.bounds(call.task, &standing) else { return Ok(Ok(None)) };
        Ok(bounds.out_of_time().map_or(Ok(bounds.time_left()), Err))
    }

    async fn judge(&self, call: &Call<'_>, used: &Use) -> Result<Verdict, PortError> {
        // What was recorded was allowed, and only goes on.
        if self.history.is_open(call.op) {
            return Ok(Verdict::Allow);
        }
        let standing = self.port().standing(self.id()).await?;
        let (taint, role) = (self.taint(call.task), self.actor(call.task));
        let judged = Judged {
            role: role.as_str(),
            call: used,
            taint: &taint,
            run: Some(self.id()),
            grants: &standing.grants,
            is_made_up: self.is_made_up(call, used, &taint).await?,
        };
        Ok(match self.kit.rules.judge(&judged) {
            Verdict::Ask { .. } if self.may_be_repeated(call).await? => Verdict::Allow,
            verdict @ (Verdict::Allow | Verdict::Ask { .. } | Verdict::Deny { .. }) => verdict,
        })
    }

    /// Whether this is a call that the person allowed, that was cut off, and of which they said then that it may be made
    /// again. That holds for the very same call as the next thing that the agent does.
    async fn may_be_repeated(&self, call: &Call<'_>) -> Result<bool, PortError> {
        let Some(own) = self.history.tasks.get(&call.task) else { return Ok(false) };
        let is_allowed = |ask| matches!(self.history.answers.get(&ask), Some(Reply::Allow(_)));
        for cut in own.cut_off_before(call.op) {
            if !is_allowed(approval_of(cut.call)) || !is_allowed(repeat_of(cut.call)) {
                continue;
            }
            let reply = match self.reply(cut.reply).await {
                // What was purged cannot be compared.
                Err(PortError::Refused(_)) => continue,
                reply => reply?,
            };
            let wanted = reply.and_then(|reply| reply.calls.into_iter().nth(cut.place));
            if wanted
                .is_some_and(|wanted| tool_name(&wanted.tool) == call.tool && wanted.input == *call.input)
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Which files an agent may read without being asked: others are not shown to it by other ways either.
    pub(super) async fn read_policy(&self, task: TaskId) -> Result<ReadPolicy, PortError> {
        let grants = self.port().standing(self.id()).await?.grants;
        let (rules, run) = (Arc::clone(&self.kit.rules), Some(self.id()));
        let (taint, role) = (self.taint(task), self.actor(task));
        Ok(ReadPolicy::of_one(&self.kit.rules, move |path| {
            let call = Use::Read { path: path.clone() };
            let (role, taint, grants) = (role.as_str(), &*taint, &*grants);
            let judged = Judged { role, call: &call, taint, run, grants, is_made_up: false };
            rules.judge(&judged) == Verdict::Allow
        }))
    }

    /// Whether a call of a tainted agent leads to an address that nobody but such agents ever named.
    async fn is_made_up(&self, call: &Call<'_>, used: &Use, taint: &[Taint]) -> Result<bool, PortError> {
        let (Use::Fetch { url }, false) = (used, taint.is_empty()) else { return Ok(false) };
        let Some(own) = self.history.tasks.get(&call.task) else { return Ok(true) };
        // What another call of the same turn has read meanwhile had no part in it.
        if own.wanted_clean(call.op) {
            return Ok(false);
        }
        let text = url.as_str();
        let plain = text.trim_end_matches('/');
        // Where no search of the web is set up, the workspace is searched in its place, and agents write there.
        let searches = self.kit.web.as_ref().is_some_and(|web| web.search(String::new()).is_some());
        let from_web: &[ToolKind] =
            if searches { &[ToolKind::Fetch, ToolKind::WebSearch] } else { &[ToolKind::Fetch] };
        for hash in crate::transcript::sources(&self.history, own, from_web) {
            match self.text(hash).await {
                Ok(text) if text.contains(plain) => return Ok(false),
                // Words that were purged name nothing any more.
                Ok(_) | Err(PortError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    async fn ask(
        &self,
        call: &Call<'_>,
        used: &Use,
        why: String,
        pattern: String,
    ) -> Result<Option<Seq>, PortError> {
        let json = serde_json::to_vec(call.input).unwrap_or_default();
        let kept = self.keep(json).await?;
        let about = AskKind::Approval {
            call: call.op,
            tool: call.tool.into(),
            title: call.title.clone().into(),
            input: kept.content,
            why: why.into(),
            pattern: pattern.into(),
            is_final: used.is_final(),
        };
        let ask = RunAsk { ask: approval_of(call.op), task: call.task, about };
        self.record_by(call.task, RunAction::Ask(ask), kept.bytes.into_iter().collect()).await
    }

    /// A call may have reached the outside when the server ended: only the person knows whether it may be made again.
    pub(super) async fn ask_repeat(&self, task: TaskId, call: OpId) -> Result<Option<Seq>, PortError> {
        let tool = self.history.tools.get(&call).cloned().unwrap_or_else(|| "exec".into());
        let about = AskKind::Interrupted { call, tool, title: self.title_of(call).into() };
        self.record_by(task, RunAction::Ask(RunAsk { ask: repeat_of(call), task, about }), Vec::new()).await
    }

    fn title_of(&self, call: OpId) -> String {
        self.history.titles.get(&call).map_or_else(|| "a call".to_owned(), ToString::to_string)
    }

    async fn perform(
        &self,
        call: &Call<'_>,
        used: Use,
        left: Option<Duration>,
    ) -> Result<Outcome, PortError> {
        let now = match used {
            Use::Read { path } => self.read(&path).await?,
            Use::List { path } => self.list(path).await?,
            Use::Search { words } => self.search(call.task, words).await?,
            Use::Write { path, text } => self.write(&path, text).await?,
            Use::Edit { path, find, replace } => self.edit(&path, &find, &replace).await?,
            Use::Exec { command, hosts, seconds } => {
                let command = shell(command, hosts, seconds);
                return self.exec(call, command, left).await.map(Outcome::Recorded);
            }
            Use::Fetch { url } => return self.fetch(call, url, left).await,
            Use::WebSearch { words } => return self.web_search(call, words, left).await,
            Use::Delegate { to, task } => self.delegate(call, to, task).await?,
            Use::Tell { to, text } => self.tell(call, to, text).await?,
            Use::Report { kind, text } => self.report(call, kind, text).await?,
            Use::Ask { question, choices } => return self.question(call, question, choices).await,
            Use::Finish { files, .. } => self.finish(call, files).await?,
            Use::Foreign { tool, input, .. } => return self.use_foreign(call, &tool, input, left).await,
        };
        Ok(Outcome::Now(now.map(Box::new)))
    }

    async fn exec(
        &self,
        call: &Call<'_>,
        command: RunCommand,
        left: Option<Duration>,
    ) -> Result<Seq, PortError> {
        let by = CallOrigin {
            run: self.id(),
            task: call.task,
            call: call.op,
            actor: self.actor(call.task),
            taint: self.taint(call.task),
            read_policy: self.read_policy(call.task).await?,
            left,
        };
        self.port().exec(by, command).await
    }

    /// Records that a call is being made which takes a while. One that only reads is made again after a crash; one that
    /// reaches the outside is not.
    pub(super) async fn open(&self, call: &Call<'_>, reach: Reach) -> Result<Option<Seq>, PortError> {
        if self.history.is_open(call.op) {
            return Ok(None);
        }
        let (tool_call, contents) = self.tool_call(call).await?;
        let tool_call = ToolCall { network: reach == Reach::Outside, ..tool_call };
        let action = Action::StartCall(tool_call);
        self.deed(call.op, self.actor(call.task), self.taint(call.task), action, contents).await
    }

    /// Answers a call that is open, and took so long.
    pub(super) async fn close(
        &self,
        call: &Call<'_>,
        came: Result<ToolOutcome, String>,
        took: Duration,
    ) -> Result<Seq, PortError> {
        let (status, report, came, mut contents) = self.result(came).await?;
        let report = ToolReport { millis: whole_millis(took), ..report };
        let taint = self.labels(call.task, &came.taint);
        contents.extend(came.contents);
        let action = Action::FinishCall { status, report, edits: came.edits };
        let seq = self.deed(call.op, self.actor(call.task), taint, action, contents).await?;
        Ok(seq.unwrap_or(Seq::ZERO))
    }

    /// Records a call together with what came of it.
    async fn answer(
        &self,
        call: &Call<'_>,
        came: Result<ToolOutcome, String>,
    ) -> Result<Option<Seq>, PortError> {
        if self.history.is_open(call.op) {
            return self.close(call, came, Duration::ZERO).await.map(Some);
        }
        let (tool_call, mut contents) = self.tool_call(call).await?;
        let (status, report, came, more) = self.result(came).await?;
        contents.extend(more);
        contents.extend(came.contents);
        let taint = self.labels(call.task, &came.taint);
        let also = came.also.map(Box::new);
        let action = Action::MakeCall { call: tool_call, status, report, edits: came.edits, also };
        self.deed(call.op, self.actor(call.task), taint, action, contents).await
    }

    async fn tool_call(
        &self,
        call: &Call<'_>,
    ) -> Result<(ToolCall, Vec<(shared_types::ContentHash, Vec<u8>)>), PortError> {
        let kept = self.keep(serde_json::to_vec(call.input).unwrap_or_default()).await?;
        let tool_call = ToolCall {
            tool: call.tool.into(),
            title: call.title.clone().into(),
            input: kept.content,
            network: false,
            task: Some(call.task),
        };
        Ok((tool_call, kept.bytes.into_iter().collect()))
    }

    async fn result(
        &self,
        came: Result<ToolOutcome, String>,
    ) -> Result<(ToolStatus, ToolReport, ToolOutcome, Vec<(shared_types::ContentHash, Vec<u8>)>), PortError>
    {
        match came {
            Ok(mut came) => {
                let text = std::mem::take(&mut came.text);
                let status = match came.failed.take() {
                    Some(reason) => ToolStatus::Failed { reason: reason.into() },
                    None => ToolStatus::Exited { code: 0 },
                };
                let written = text.len() as u64;
                let kept = self.keep_words(text).await?;
                let report = ToolReport { output: Some(kept.content), written, ..ToolReport::default() };
                Ok((status, report, came, kept.bytes.into_iter().collect()))
            }
            Err(reason) => {
                let status = ToolStatus::Failed { reason: reason.into() };
                Ok((status, ToolReport::default(), ToolOutcome::default(), Vec::new()))
            }
        }
    }

    fn labels(&self, task: TaskId, more: &[Taint]) -> Vec<Taint> {
        let mut labels = self.taint(task);
        let new: Vec<Taint> = more.iter().filter(|label| !labels.contains(label)).cloned().collect();
        labels.extend(new);
        labels.dedup();
        labels
    }
}
