//! A turn of an agent's model: prompt, budgets, request, and the record of its reply or failure.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard, PoisonError};

use kernel::RunAction;
use models::chat::{AnswerForm, ChatRequest, Delta, DeltaListener, StopReason, Usage};
use models::{
    BYTES_PER_TOKEN, ChosenModel, CompletedTurn, ErrorClass, MeterReading, ModelError, UsageMeter, WorstCase,
};
use shared_types::payload::llm::{LlmFail, LlmReply, ReplyEnd, RequestedCall, Tokens};
use shared_types::payload::run::PauseReason;
use shared_types::{Seq, TaskId};

use super::Job;
use super::call::tool_name;
use crate::budget::{BudgetCheck, Reserved, with_time_limit};
use crate::fit::fit;
use crate::history::History;
use crate::plan::{PlannedStep, plan};
use crate::port::{PortError, RunContext};
use crate::roles;
use crate::transcript;

/// The most tokens of an answer.
const MAX_ANSWER_TOKENS: u32 = 8_192;
/// The most tokens of an answer of the local model, which writes slowly.
const MAX_LOCAL_ANSWER_TOKENS: u32 = 1_024;

/// The result of a request to a model, before anything is recorded.
enum TurnResult {
    Completed(CompletedTurn),
    Failed(ModelError),
    /// The request could exceed a budget, and was not sent.
    OverBudget(String),
    /// A budget left too little time for the answer.
    OutOfTime(String),
    /// The turn is no longer needed.
    Cancelled,
    /// The turn had to wait for the local model, so its history may be outdated.
    Outdated,
}

impl Job {
    /// Lets the model take a turn. Its usage is recorded even if the turn fails or is cancelled.
    pub(super) async fn take_turn(&self, task: TaskId) -> Result<Option<Seq>, PortError> {
        let (meter, mut reservation) = (UsageMeter::default(), None);
        // A finished request wins over a cancellation, so that its reply is recorded.
        let result = tokio::select! {
            biased;
            result = self.request_turn(task, &meter, &mut reservation) => result?,
            () = self.cancelled.notified() => TurnResult::Cancelled,
        };
        match result {
            TurnResult::Completed(turn) => self.record_turn(task, turn).await,
            TurnResult::Failed(error) => self.turn_failed(task, &error).await,
            TurnResult::OverBudget(why) => self.pause_for_budget(why).await,
            TurnResult::OutOfTime(why) => {
                let reason = "out of time before the answer was complete; the usage is an estimate";
                self.record_loss(task, meter.reading(), reason).await?;
                self.pause_for_budget(why).await
            }
            TurnResult::Cancelled => {
                let reason = "the answer was no longer needed; the usage is an estimate";
                self.record_loss(task, meter.reading(), reason).await
            }
            TurnResult::Outdated => self.take_turn_with_new_history(task).await,
        }
    }

    /// Sends the request to the model, and records nothing. The worst case of the turn stays reserved as long as the caller
    /// keeps `reservation`.
    async fn request_turn(
        &self,
        task: TaskId,
        meter: &UsageMeter,
        reservation: &mut Option<UsageReservation>,
    ) -> Result<TurnResult, PortError> {
        let context = self.port().run_context(self.id()).await?;
        let role = self.history.tasks.get(&task).and_then(|task| roles::named(&task.role));
        let Some(role) = role else {
            let error = ModelError::new("", ErrorClass::Unusable, "there is no such role any more");
            return Ok(TurnResult::Failed(error));
        };
        let chosen = match self.choose(role.name(), &context) {
            Ok(chosen) => chosen,
            Err(error) => return Ok(TurnResult::Failed(error)),
        };
        if chosen.is_local && self.environment.local.acquire(self.id(), task).await {
            return Ok(TurnResult::Outdated);
        }
        let max_output =
            if chosen.is_local { MAX_LOCAL_ANSWER_TOKENS } else { MAX_ANSWER_TOKENS }.min(chosen.max_output);
        let mut request =
            self.request(task, role, &chosen, max_output, self.prompt_limit(&chosen, max_output)).await?;
        let mut was_too_long = false;
        loop {
            let worst_case = self.environment.gateway.worst_case(&chosen, &request);
            // Reserve first, then check: a turn that ends in between is counted twice rather than not at all.
            let reservation = reservation.insert(UsageReservation::new(self, &worst_case));
            let context = self.port().run_context(self.id()).await?;
            if let Some(why) = self.exceeded_budget(task, &context, reservation, &worst_case) {
                return Ok(TurnResult::OverBudget(why));
            }
            let left = self.budget_check(task, &context).and_then(|budget_check| budget_check.time_left());
            let turn = self.environment.gateway.take_turn(&chosen, &request, self.listener(task), meter);
            let error = match with_time_limit(left, turn).await {
                Some(Ok(turn)) => {
                    if was_too_long {
                        self.accepted_prompts().insert(chosen.alias, request.estimated_tokens());
                    }
                    return Ok(TurnResult::Completed(turn));
                }
                Some(Err(error)) => error,
                None => return Ok(TurnResult::OutOfTime(self.out_of_time(task, &context))),
            };
            // A failure with usage is recorded, and no shorter prompt is tried.
            if error.class != ErrorClass::ContextTooLong || error.usage.total() > 0 {
                return Ok(TurnResult::Failed(error));
            }
            let shorter =
                self.request(task, role, &chosen, max_output, request.estimated_tokens() / 3 * 2).await?;
            if shorter.estimated_tokens() >= request.estimated_tokens() {
                return Ok(TurnResult::Failed(error));
            }
            (request, was_too_long) = (shorter, true);
        }
    }

    /// Takes the turn with the current history; returns `None` if the plan no longer contains it.
    async fn take_turn_with_new_history(&self, task: TaskId) -> Result<Option<Seq>, PortError> {
        let events = self.port().events_of(self.id()).await?;
        let history = Arc::new(History::from_events(self.id(), &events));
        if !plan(&history).contains(&PlannedStep::TakeTurn { task }) {
            return Ok(None);
        }
        let current = Self { history, ..self.clone() };
        Box::pin(current.take_turn(task)).await
    }

    /// The most tokens of a prompt for a model: the catalog's limit, or less if the provider rejected that.
    fn prompt_limit(&self, chosen: &ChosenModel, answer: u32) -> u64 {
        let accepted = self.accepted_prompts().get(&chosen.alias).copied();
        chosen.prompt_limit(answer).min(accepted.unwrap_or(u64::MAX))
    }

    /// The prompt sizes that providers accepted after they had rejected a longer prompt, by model.
    fn accepted_prompts(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.environment.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The person's choice for the run, then for the role, then the catalog's.
    fn choose(&self, role: &str, context: &RunContext) -> Result<ChosenModel, ModelError> {
        let run_choice = self.history.run().and_then(|run| run.model.as_deref());
        let role_choice =
            context.roles.iter().find(|(name, _)| name == role).map(|(_, model)| model.as_str());
        self.environment.gateway.choose(run_choice.or(role_choice), role)
    }

    /// The request for an agent's turn, shortened to `limit` tokens if possible.
    async fn request(
        &self,
        task: TaskId,
        role: roles::Role,
        chosen: &ChosenModel,
        max_output: u32,
        limit: u64,
    ) -> Result<ChatRequest, PortError> {
        let Some(agent) = self.history.tasks.get(&task) else {
            return Err(PortError::Refused("the agent is not part of the run".into()));
        };
        // Collected here, because the cache may drop any text at any time.
        let mut texts = transcript::Texts::new();
        for hash in transcript::needed_contents(agent) {
            match self.text(hash).await {
                Ok(text) => drop(texts.insert(hash, text)),
                // The conversation marks purged texts.
                Err(PortError::Refused(_)) => {}
                Err(error @ PortError::Unavailable(_)) => return Err(error),
            }
        }
        let external = self.external_tools(role, chosen).await;
        let mut request = ChatRequest {
            system: system_prompt(role, &external.silent),
            messages: Vec::new(),
            tools: role.tool_definitions().into_iter().chain(external.tools).collect(),
            max_output,
            answer: AnswerForm::Any,
        };
        let left = usize::try_from(limit.saturating_sub(request.estimated_tokens())).unwrap_or(usize::MAX);
        let conversation = transcript::conversation(&self.history, agent, &texts);
        request.messages = fit(conversation, left.saturating_mul(BYTES_PER_TOKEN));
        Ok(request)
    }

    /// The budget that the turn could exceed, in a sentence for the person.
    fn exceeded_budget(
        &self,
        task: TaskId,
        context: &RunContext,
        reservation: &UsageReservation,
        worst_case: &WorstCase,
    ) -> Option<String> {
        let (run_reserved, day_reserved) = reservation.totals();
        self.budget_check(task, context)?.exceeded(&run_reserved, &day_reserved, worst_case)
    }

    /// The time limit that ended a turn. The time of a role is only counted when a turn is recorded, so it may not show.
    fn out_of_time(&self, task: TaskId, context: &RunContext) -> String {
        let why = self.budget_check(task, context).and_then(|budget_check| budget_check.out_of_time());
        why.unwrap_or_else(|| "a budget left too little time for the answer".into())
    }

    /// The limits that apply to an agent now.
    pub(super) fn budget_check<'a>(
        &'a self,
        task: TaskId,
        context: &'a RunContext,
    ) -> Option<BudgetCheck<'a>> {
        let run = self.history.run()?;
        Some(BudgetCheck { run, task: run.task(task), context, now: self.port().now() })
    }

    fn listener(&self, task: TaskId) -> DeltaListener {
        let (environment, run) = (Arc::clone(&self.environment), self.id());
        Arc::new(move |delta| match delta {
            Delta::Text(text) if !text.is_empty() => environment.port.stream_text(run, task, &text),
            Delta::Restart => environment.port.stream_text(run, task, ""),
            Delta::Text(_) | Delta::Thought(_) | Delta::Call { .. } | Delta::Input(_) => {}
        })
    }

    /// Records a reply.
    async fn record_turn(&self, task: TaskId, turn: CompletedTurn) -> Result<Option<Seq>, PortError> {
        let requested = turn
            .reply
            .calls
            .iter()
            .map(|call| RequestedCall { call: self.port().new_op(), tool: tool_name(&call.tool).into() });
        let (calls, usage): (Vec<RequestedCall>, _) = (requested.collect(), turn.reply.usage);
        let ended = match turn.reply.stop {
            StopReason::Refusal => ReplyEnd::Refused,
            StopReason::Length => ReplyEnd::Cut,
            StopReason::End | StopReason::Calls if calls.is_empty() && turn.reply.text.trim().is_empty() => {
                ReplyEnd::Empty
            }
            StopReason::End | StopReason::Calls => ReplyEnd::Whole,
        };
        let json = serde_json::to_string(&turn.reply).map_err(|e| PortError::Refused(e.to_string()))?;
        let staged = self.stage_text(json).await?;
        let reply = LlmReply {
            task,
            model: turn.model.into(),
            seen: self.history.seq(),
            reply: staged.content,
            ended,
            calls,
            tokens: tokens(&usage),
            micros: turn.cost,
            millis: turn.millis,
            attempts: turn.attempts,
        };
        let reading = MeterReading { model: reply.model.to_string(), usage, cost: reply.micros };
        let recorded =
            self.record_by(task, RunAction::RecordReply(reply), staged.bytes.into_iter().collect()).await;
        self.record_loss_if_refused(task, reading, recorded).await
    }

    /// Records the usage of a turn whose reply was refused because the run or the agent is over or was rewound.
    async fn record_loss_if_refused(
        &self,
        task: TaskId,
        reading: MeterReading,
        recorded: Result<Option<Seq>, PortError>,
    ) -> Result<Option<Seq>, PortError> {
        if let Err(PortError::Refused(_)) = &recorded {
            self.record_loss(task, reading, "the answer was no longer needed").await?;
        }
        recorded
    }

    /// Records the usage of a turn without a reply.
    async fn record_loss(
        &self,
        task: TaskId,
        reading: MeterReading,
        reason: &str,
    ) -> Result<Option<Seq>, PortError> {
        let (tokens, micros) = (tokens(&reading.usage), reading.cost);
        if tokens.total() == 0 {
            return Ok(None);
        }
        let (model, reason) = (reading.model.into(), reason.into());
        let loss = LlmFail { task, model, reason, permanent: false, tokens, micros };
        self.record(RunAction::RecordLoss(loss), Vec::new()).await
    }

    /// Records that no model answered. The run pauses if the person may be able to help, else the agent fails.
    async fn turn_failed(&self, task: TaskId, error: &ModelError) -> Result<Option<Seq>, PortError> {
        match error.class {
            ErrorClass::Retryable
            | ErrorClass::RateLimit { .. }
            | ErrorClass::Overloaded
            | ErrorClass::Auth
            | ErrorClass::Unavailable => {
                self.record_failure(task, error, Attempts::MaySucceed).await?;
                let reason = error.to_string().into();
                self.record(RunAction::Pause(PauseReason::Model(reason)), Vec::new()).await
            }
            ErrorClass::BadRequest | ErrorClass::ContextTooLong | ErrorClass::Unusable => {
                self.record_failure(task, error, Attempts::WillFail).await
            }
        }
    }

    async fn record_failure(
        &self,
        task: TaskId,
        error: &ModelError,
        further: Attempts,
    ) -> Result<Option<Seq>, PortError> {
        let reason = error.to_string();
        let reason: String = reason.chars().filter(|c| !c.is_control() || *c == '\n').take(1_000).collect();
        let tokens = tokens(&error.usage);
        let micros = error.cost.filter(|_| tokens.total() > 0);
        let (model, permanent) = (error.model.as_str().into(), further == Attempts::WillFail);
        let fail = LlmFail { task, model, reason: reason.into(), permanent, tokens, micros };
        let known = self.history.seq();
        let reading = MeterReading { model: error.model.clone(), usage: error.usage, cost: error.cost };
        let recorded = self.record(RunAction::RecordFailure { fail, known }, Vec::new()).await;
        self.record_loss_if_refused(task, reading, recorded).await
    }
}

/// What is known of further attempts at a turn that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempts {
    /// For example after the person added a key.
    MaySucceed,
    WillFail,
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
    }
}

/// The system prompt of a role, with a note about servers whose tools are missing.
fn system_prompt(role: roles::Role, silent: &[String]) -> String {
    match silent {
        [] => role.system_prompt().to_owned(),
        names => format!(
            "{}\n- The tools of these servers are not there now, since they do not answer: {}. Work without them, and \
             say so where it matters.",
            role.system_prompt(),
            names.join(", ")
        ),
    }
}

/// Reserves the worst case of one turn, in its run and for all runs, until it is dropped.
struct UsageReservation {
    job: Job,
    worst_case: WorstCase,
}

impl UsageReservation {
    fn new(job: &Job, worst_case: &WorstCase) -> Self {
        let reserve = |of: &std::sync::Mutex<Reserved>| {
            of.lock().unwrap_or_else(PoisonError::into_inner).add(worst_case);
        };
        reserve(&job.reserved);
        reserve(&job.environment.reserved);
        Self { job: job.clone(), worst_case: *worst_case }
    }

    /// The reservations of the run and of all runs, this one included.
    fn totals(&self) -> (Reserved, Reserved) {
        let read = |of: &std::sync::Mutex<Reserved>| *of.lock().unwrap_or_else(PoisonError::into_inner);
        (read(&self.job.reserved), read(&self.job.environment.reserved))
    }
}

impl Drop for UsageReservation {
    fn drop(&mut self) {
        for of in [&self.job.reserved, &self.job.environment.reserved] {
            of.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.worst_case);
        }
    }
}

#[cfg(test)]
mod tests;
