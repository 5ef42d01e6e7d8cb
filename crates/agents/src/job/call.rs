//! Tool calls of agents: parse, check against the rules, ask for approval, perform, record the result.

use std::sync::Arc;
use std::time::Duration;

use kernel::{Action, Origin, OutsideEdit, RunAction};
use serde_json::Value;
use shared_types::payload::run::{AskKind, Reply, RunAsk};
use shared_types::payload::tool::{ToolCall, ToolReport, ToolStatus};
use shared_types::wire::{CellCommand, CommandLimits, CommandNetwork};
use shared_types::{ContentRef, OpId, Seq, Taint, TaskId};

use super::Job;
use crate::ask_ids::{approval_ask_id, repeat_ask_id};
use crate::budget::whole_millis;
use crate::plan::Permission;
use crate::port::{AgentReadPolicy, CommandOrigin, PortError};
use crate::roles;
use crate::rules::{JudgedCall, Verdict};
use crate::shorten::one_line;
use crate::tool_kind::ToolKind;
use crate::tools::ParsedCall;

/// The longest time limit of a command, in seconds, even if an agent asks for more.
const MAX_COMMAND_SECONDS: u64 = 1_800;

/// How many calls of one turn are made. The others fail.
const MAX_CALLS: usize = 32;
/// After how many restarts in a row an open read-only call fails instead of being repeated.
const MAX_RESTARTS: usize = 3;

/// The name of a tool in a form that can be recorded. A model may request any text.
pub(super) fn tool_name(requested: &str) -> String {
    let name: String = requested.chars().filter(|c| !c.is_control()).collect();
    let name = name[..name.floor_char_boundary(64)].trim();
    if name.is_empty() { "unknown".to_owned() } else { name.to_owned() }
}

/// A shell line as a command for a cell.
fn shell(line: String, hosts: Vec<String>, seconds: Option<u64>) -> CellCommand {
    let network = if hosts.is_empty() { CommandNetwork::None } else { CommandNetwork::Hosts(hosts) };
    let seconds = seconds.map(|seconds| seconds.clamp(1, MAX_COMMAND_SECONDS));
    let limits = CommandLimits { seconds, ..CommandLimits::default() };
    CellCommand { argv: vec!["bash".into(), "-c".into(), line], network, limits, ..CellCommand::default() }
}

/// A call that needs a result.
pub(super) struct Call<'a> {
    pub(super) task: TaskId,
    pub(super) op: OpId,
    pub(super) tool: &'a str,
    pub(super) title: String,
    pub(super) input: &'a Value,
}

/// The result of a call, before it is recorded.
#[derive(Default)]
pub(super) struct ToolOutcome {
    pub(super) text: String,
    pub(super) edits: Vec<OutsideEdit>,
    /// Contents that `edits` and `also` refer to.
    pub(super) contents: Vec<(shared_types::ContentHash, Vec<u8>)>,
    /// An action in the run that is recorded together with the result.
    pub(super) also: Option<RunAction>,
    /// Taint labels of what was read.
    pub(super) taint: Vec<Taint>,
    /// Why the call failed. `text` may still hold output.
    pub(super) failed: Option<String>,
}

impl ToolOutcome {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A call in a planned step.
pub(super) struct PlannedCall {
    pub(super) op: OpId,
    /// Its index in the reply that requested it.
    pub(super) index: usize,
    pub(super) reply: ContentRef,
    pub(super) permission: Permission,
    /// Whether it has been in the outbox and may go out.
    pub(super) is_released: bool,
}

/// What a call can affect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallEffect {
    /// It only reads, and may be repeated.
    ReadOnly,
    /// It may have external effects, which can neither be undone nor observed from here.
    External,
}

/// How far a call is after it was performed.
pub(super) enum CallProgress {
    /// It is done or failed, and its result must be recorded.
    Done(Result<Box<ToolOutcome>, String>),
    /// Its result, or the question that it asks, is recorded already.
    Recorded(Seq),
}

impl Job {
    /// Makes a call, or asks for approval, or holds it in the outbox.
    pub(super) async fn make_call(
        &self,
        task: TaskId,
        planned: PlannedCall,
    ) -> Result<Option<Seq>, PortError> {
        let PlannedCall { op, index, reply, permission, is_released } = planned;
        let reply = self.reply(reply).await?;
        let Some(requested) = reply.and_then(|reply| reply.calls.into_iter().nth(index)) else {
            let call = Call { task, op, tool: "unknown", title: "a call".into(), input: &Value::Null };
            return self
                .record_result(&call, Err("the reply that asked for it cannot be read any more".into()))
                .await;
        };
        let role = self.history.tasks.get(&task).and_then(|task| roles::named(&task.role));
        let Some(role) = role else { return Ok(None) };
        let name = tool_name(&requested.tool);
        let parsed = match self.parse_external(role, &requested.tool, &requested.input).await {
            Some(parsed) => parsed,
            None => ParsedCall::parse(role, &requested.tool, &requested.input),
        };
        let title = parsed.as_ref().map_or_else(|_| one_line(&name), ParsedCall::title);
        let call = Call { task, op, tool: &name, title, input: &requested.input };
        let parsed = match parsed {
            Ok(_) if index >= MAX_CALLS => {
                let reason = format!("too many calls in one turn: only the first {MAX_CALLS} are made");
                return self.record_result(&call, Err(reason)).await;
            }
            Ok(parsed) => parsed,
            Err(reason) => return self.record_result(&call, Err(reason)).await,
        };
        // The call itself may be what makes the server exit each time.
        if parsed.is_repeated_after_restart()
            && self.history.is_open(op)
            && self.history.restarts_in_a_row >= MAX_RESTARTS
        {
            let reason =
                "the server ended again and again before this was answered; it is not made once more";
            return self.record_result(&call, Err(reason.into())).await;
        }
        match permission {
            Permission::NotAsked => match self.judge(&call, &parsed).await? {
                Verdict::Allow => {}
                Verdict::Deny { why } => {
                    return self.record_result(&call, Err(format!("not allowed: {why}"))).await;
                }
                Verdict::Ask { why, pattern } => return self.ask(&call, &parsed, why, pattern).await,
            },
            Permission::Answered(Reply::Allow(_)) => {}
            Permission::Answered(Reply::Deny(why)) => {
                let reason = if why.is_empty() {
                    "the person said no".into()
                } else {
                    format!("the person said no: {why}")
                };
                return self.record_result(&call, Err(reason)).await;
            }
            Permission::Answered(Reply::Words(words)) => {
                return self.record_result(&call, Ok(ToolOutcome::text(words))).await;
            }
            Permission::Answered(Reply::Silence) => {}
        }
        if parsed.is_final()
            && !is_released
            && let Some(until) = self.outbox_deadline(op).await?
        {
            return self.put_in_outbox(&call, until).await;
        }
        let left = match self.time_limit(&call, &parsed).await? {
            Ok(left) => left,
            Err(why) => return self.pause_for_budget(why).await,
        };
        let progress = match self.perform(&call, parsed, left).await {
            // A refusal is a result like any other.
            Err(PortError::Refused(why)) => CallProgress::Done(Err(why)),
            other => other?,
        };
        match progress {
            CallProgress::Done(outcome) => self.record_result(&call, outcome.map(|outcome| *outcome)).await,
            CallProgress::Recorded(seq) => Ok(Some(seq)),
        }
    }

    /// How long a call may take, if a budget limits it; the inner error says why it may not start.
    async fn time_limit(
        &self,
        call: &Call<'_>,
        parsed: &ParsedCall,
    ) -> Result<Result<Option<Duration>, String>, PortError> {
        if !parsed.takes_time() {
            return Ok(Ok(None));
        }
        let context = self.port().run_context(self.id()).await?;
        let Some(budget_check) = self.budget_check(call.task, &context) else { return Ok(Ok(None)) };
        Ok(budget_check.out_of_time().map_or(Ok(budget_check.time_left()), Err))
    }

    async fn judge(&self, call: &Call<'_>, parsed: &ParsedCall) -> Result<Verdict, PortError> {
        // A recorded call was allowed before; it only continues.
        if self.history.is_open(call.op) {
            return Ok(Verdict::Allow);
        }
        let context = self.port().run_context(self.id()).await?;
        let (taint, role) = (self.taint(call.task), self.actor(call.task));
        let judged = JudgedCall {
            role: role.as_str(),
            call: parsed,
            taint: &taint,
            run: Some(self.id()),
            grants: &context.grants,
            is_invented_address: self.is_invented_address(call, parsed, &taint).await?,
        };
        Ok(match self.environment.rules.judge(&judged) {
            Verdict::Ask { .. } if self.may_be_repeated(call).await? => Verdict::Allow,
            verdict @ (Verdict::Allow | Verdict::Ask { .. } | Verdict::Deny { .. }) => verdict,
        })
    }

    /// Whether this call repeats an interrupted one that the person allowed, and allowed to be repeated. That permission
    /// holds only for an identical call in the agent's next turn.
    async fn may_be_repeated(&self, call: &Call<'_>) -> Result<bool, PortError> {
        let Some(task) = self.history.tasks.get(&call.task) else { return Ok(false) };
        let is_allowed = |ask| matches!(self.history.answers.get(&ask), Some(Reply::Allow(_)));
        for earlier in task.interrupted_before(call.op) {
            if !is_allowed(approval_ask_id(earlier.call)) || !is_allowed(repeat_ask_id(earlier.call)) {
                continue;
            }
            let reply = match self.reply(earlier.reply).await {
                // A purged reply cannot be compared.
                Err(PortError::Refused(_)) => continue,
                reply => reply?,
            };
            let requested = reply.and_then(|reply| reply.calls.into_iter().nth(earlier.index));
            let is_same = |requested: models::chat::ToolCall| {
                tool_name(&requested.tool) == call.tool && requested.input == *call.input
            };
            if requested.is_some_and(is_same) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Which files an agent may read without asking the person. Searches and commands do not show it other files either.
    pub(super) async fn read_policy(&self, task: TaskId) -> Result<AgentReadPolicy, PortError> {
        let grants = self.port().run_context(self.id()).await?.grants;
        let (rules, run) = (Arc::clone(&self.environment.rules), Some(self.id()));
        let (taint, role) = (self.taint(task), self.actor(task));
        Ok(AgentReadPolicy::of_one(&self.environment.rules, move |path| {
            let call = ParsedCall::Read { path: path.clone() };
            let (role, taint, grants) = (role.as_str(), &*taint, &*grants);
            let judged = JudgedCall { role, call: &call, taint, run, grants, is_invented_address: false };
            rules.judge(&judged) == Verdict::Allow
        }))
    }

    /// Whether a tainted agent fetches an address that only tainted agents have mentioned.
    async fn is_invented_address(
        &self,
        call: &Call<'_>,
        parsed: &ParsedCall,
        taint: &[Taint],
    ) -> Result<bool, PortError> {
        let (ParsedCall::Fetch { url }, false) = (parsed, taint.is_empty()) else { return Ok(false) };
        let Some(task) = self.history.tasks.get(&call.task) else { return Ok(true) };
        // Other calls of the same turn may have tainted the agent since, but did not influence this one.
        if task.was_requested_untainted(call.op) {
            return Ok(false);
        }
        let text = url.as_str();
        let address = text.trim_end_matches('/');
        // Without a web search the workspace is searched instead, and agents write there.
        let has_web_search =
            self.environment.web.as_ref().is_some_and(|web| web.search(String::new()).is_some());
        let from_web: &[ToolKind] =
            if has_web_search { &[ToolKind::Fetch, ToolKind::WebSearch] } else { &[ToolKind::Fetch] };
        for hash in crate::transcript::trusted_address_sources(&self.history, task, from_web) {
            match self.text(hash).await {
                Ok(text) if text.contains(address) => return Ok(false),
                // A purged text mentions no address.
                Ok(_) | Err(PortError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Asks the person for approval of a call.
    async fn ask(
        &self,
        call: &Call<'_>,
        parsed: &ParsedCall,
        why: String,
        pattern: String,
    ) -> Result<Option<Seq>, PortError> {
        let json = serde_json::to_vec(call.input).unwrap_or_default();
        let staged = self.stage(json).await?;
        let about = AskKind::Approval {
            call: call.op,
            tool: call.tool.into(),
            title: call.title.clone().into(),
            input: staged.content,
            why: why.into(),
            pattern: pattern.into(),
            is_final: parsed.is_final(),
        };
        let ask = RunAsk { ask: approval_ask_id(call.op), task: call.task, about };
        self.record_by(call.task, RunAction::Ask(ask), staged.bytes.into_iter().collect()).await
    }

    /// Asks the person whether an interrupted call may be repeated: it may have had external effects.
    pub(super) async fn ask_repeat(&self, task: TaskId, call: OpId) -> Result<Option<Seq>, PortError> {
        let tool = self.history.call_tools.get(&call).cloned().unwrap_or_else(|| "exec".into());
        let about = AskKind::Interrupted { call, tool, title: self.title_of(call).into() };
        self.record_by(task, RunAction::Ask(RunAsk { ask: repeat_ask_id(call), task, about }), Vec::new())
            .await
    }

    fn title_of(&self, call: OpId) -> String {
        self.history.call_titles.get(&call).map_or_else(|| "a call".to_owned(), ToString::to_string)
    }

    async fn perform(
        &self,
        call: &Call<'_>,
        parsed: ParsedCall,
        left: Option<Duration>,
    ) -> Result<CallProgress, PortError> {
        let outcome = match parsed {
            ParsedCall::Read { path } => self.read(&path).await?,
            ParsedCall::List { path } => self.list(path).await?,
            ParsedCall::Search { words } => self.search(call.task, words).await?,
            ParsedCall::Write { path, text } => self.write(&path, text).await?,
            ParsedCall::Edit { path, find, replace } => self.edit(&path, &find, &replace).await?,
            ParsedCall::Exec { command, hosts, seconds } => {
                let command = shell(command, hosts, seconds);
                return self.exec(call, command, left).await.map(CallProgress::Recorded);
            }
            ParsedCall::Fetch { url } => return self.fetch(call, url, left).await,
            ParsedCall::WebSearch { words } => return self.web_search(call, words, left).await,
            ParsedCall::Delegate { to, task } => self.delegate(call, to, task).await?,
            ParsedCall::Tell { to, text } => self.tell(call, to, text).await?,
            ParsedCall::Report { kind, text } => self.report(call, kind, text).await?,
            ParsedCall::Ask { question, choices } => return self.ask_question(call, question, choices).await,
            ParsedCall::Finish { files, .. } => self.finish(call, files).await?,
            ParsedCall::External { tool, input, .. } => {
                return self.call_external(call, &tool, input, left).await;
            }
        };
        Ok(CallProgress::Done(outcome.map(Box::new)))
    }

    async fn exec(
        &self,
        call: &Call<'_>,
        command: CellCommand,
        left: Option<Duration>,
    ) -> Result<Seq, PortError> {
        let origin = Origin {
            cause: self.history.request_of(call.op),
            taint: self.taint(call.task),
            ..self.origin(call.op, self.actor(call.task))
        };
        let read_policy = self.read_policy(call.task).await?;
        let origin = CommandOrigin { origin, run: self.id(), task: call.task, read_policy, left };
        self.port().exec(origin, command).await
    }

    /// Records the start of a slow call. After a crash a read-only call is repeated, one with external effects is not.
    pub(super) async fn open_call(
        &self,
        call: &Call<'_>,
        effect: CallEffect,
    ) -> Result<Option<Seq>, PortError> {
        if self.history.is_open(call.op) {
            return Ok(None);
        }
        let (tool_call, contents) = self.tool_call(call).await?;
        let tool_call = ToolCall { network: effect == CallEffect::External, ..tool_call };
        let action = Action::StartCall(tool_call);
        self.submit_in_call(call.task, call.op, self.taint(call.task), action, contents).await
    }

    /// Records the result of an open call and the time it took.
    pub(super) async fn close_call(
        &self,
        call: &Call<'_>,
        outcome: Result<ToolOutcome, String>,
        took: Duration,
    ) -> Result<Seq, PortError> {
        let (status, report, outcome, mut contents) = self.stage_result(outcome).await?;
        let report = ToolReport { millis: whole_millis(took), ..report };
        let taint = self.labels(call.task, &outcome.taint);
        contents.extend(outcome.contents);
        let action = Action::FinishCall { status, report, edits: outcome.edits };
        let seq = self.submit_in_call(call.task, call.op, taint, action, contents).await?;
        Ok(seq.unwrap_or(Seq::ZERO))
    }

    /// Records a call together with its result, or only the result if the call is recorded already.
    async fn record_result(
        &self,
        call: &Call<'_>,
        outcome: Result<ToolOutcome, String>,
    ) -> Result<Option<Seq>, PortError> {
        if self.history.is_open(call.op) {
            return self.close_call(call, outcome, Duration::ZERO).await.map(Some);
        }
        let (tool_call, mut contents) = self.tool_call(call).await?;
        let (status, report, outcome, more) = self.stage_result(outcome).await?;
        contents.extend(more);
        contents.extend(outcome.contents);
        let taint = self.labels(call.task, &outcome.taint);
        let also = outcome.also.map(Box::new);
        let action = Action::MakeCall { call: tool_call, status, report, edits: outcome.edits, also };
        self.submit_in_call(call.task, call.op, taint, action, contents).await
    }

    async fn tool_call(
        &self,
        call: &Call<'_>,
    ) -> Result<(ToolCall, Vec<(shared_types::ContentHash, Vec<u8>)>), PortError> {
        let staged = self.stage(serde_json::to_vec(call.input).unwrap_or_default()).await?;
        let tool_call = ToolCall {
            tool: call.tool.into(),
            title: call.title.clone().into(),
            input: staged.content,
            network: false,
            task: Some(call.task),
        };
        Ok((tool_call, staged.bytes.into_iter().collect()))
    }

    /// Splits an outcome into the recorded status and report, the rest of the outcome, and new contents.
    async fn stage_result(
        &self,
        outcome: Result<ToolOutcome, String>,
    ) -> Result<(ToolStatus, ToolReport, ToolOutcome, Vec<(shared_types::ContentHash, Vec<u8>)>), PortError>
    {
        match outcome {
            Ok(mut outcome) => {
                let text = std::mem::take(&mut outcome.text);
                let status = match outcome.failed.take() {
                    Some(reason) => ToolStatus::Failed { reason: reason.into() },
                    None => ToolStatus::Exited { code: 0 },
                };
                let written = text.len() as u64;
                let staged = self.stage_text(text).await?;
                let report = ToolReport { output: Some(staged.content), written, ..ToolReport::default() };
                Ok((status, report, outcome, staged.bytes.into_iter().collect()))
            }
            Err(reason) => {
                let status = ToolStatus::Failed { reason: reason.into() };
                Ok((status, ToolReport::default(), ToolOutcome::default(), Vec::new()))
            }
        }
    }

    /// The taint labels of an agent and further ones.
    fn labels(&self, task: TaskId, more: &[Taint]) -> Vec<Taint> {
        let mut labels = self.taint(task);
        let new: Vec<Taint> = more.iter().filter(|label| !labels.contains(label)).cloned().collect();
        labels.extend(new);
        labels.dedup();
        labels
    }
}
