//! A model takes a turn for an agent.

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
use crate::budget::{BudgetCheck, Reserved, OUT_OF_TIME, with_time_limit};
use crate::fit::fit;
use crate::history::History;
use crate::plan::{PlannedStep, GIVEN_UP, plan};
use crate::port::{PortError, RunContext};
use crate::roles;
use crate::transcript;

/// Tokens of an answer, where the model would write more.
const ANSWER: u32 = 8_192;
/// The same for a model on the person's own machine, which writes slowly.
const LOCAL_ANSWER: u32 = 1_024;

/// What asking a model came to, before anything is recorded.
enum Thought {
    Whole(CompletedTurn),
    Failed(ModelError),
    /// A budget does not allow it.
    TooMuch(String),
    /// A budget had no more time for it.
    OutOfTime(String),
    /// Nobody waits for it any more.
    Unwanted,
    /// The machine's own model worked for somebody else: what is known is old by now.
    Later,
}

impl Job {
    /// A model takes a turn. What it took is recorded, whatever comes of it.
    pub(super) async fn take_turn(&self, task: TaskId) -> Result<Option<Seq>, PortError> {
        let (meter, mut place) = (UsageMeter::default(), None);
        // Nothing that is being recorded is let go of.
        let came = tokio::select! {
            biased;
            came = self.think(task, &meter, &mut place) => came?,
            () = self.cancelled.notified() => Thought::Unwanted,
        };
        match came {
            Thought::Whole(turn) => self.took(task, turn).await,
            Thought::Failed(error) => self.failed(task, &error).await,
            Thought::TooMuch(why) => {
                self.record(RunAction::Pause(PauseReason::Budget(why.into())), Vec::new()).await
            }
            Thought::OutOfTime(why) => {
                let reason = "its time was over before the answer was whole; what it took is an estimate";
                self.record_loss(task, meter.reading(), reason).await?;
                self.record(RunAction::Pause(PauseReason::Budget(why.into())), Vec::new()).await
            }
            Thought::Unwanted => {
                let reason = "nobody waits for its answer any more; what it took is an estimate";
                self.record_loss(task, meter.reading(), reason).await
            }
            Thought::Later => self.take_turn_later(task).await,
        }
    }

    /// Asks a model, and records nothing. What the turn takes at most is set aside until that is done.
    async fn think(
        &self,
        task: TaskId,
        meter: &UsageMeter,
        place: &mut Option<Place>,
    ) -> Result<Thought, PortError> {
        let standing = self.port().standing(self.id()).await?;
        let role = self.history.tasks.get(&task).and_then(|task| roles::named(&task.role));
        let Some(role) = role else {
            let error = ModelError::new("", ErrorClass::Unusable, "there is no such role any more");
            return Ok(Thought::Failed(error));
        };
        let chosen = match self.choose(role.name(), &standing) {
            Ok(chosen) => chosen,
            Err(error) => return Ok(Thought::Failed(error)),
        };
        if chosen.is_local && self.environment.local.acquire(self.id(), task).await {
            return Ok(Thought::Later);
        }
        let most = if chosen.is_local { LOCAL_ANSWER } else { ANSWER }.min(chosen.max_output);
        let mut request = self.request(task, role, &chosen, most, self.room(&chosen, most)).await?;
        let mut was_too_long = false;
        loop {
            let worst = self.environment.gateway.worst_case(&chosen, &request);
            // Set aside first and looked at then: a turn that ends in between is counted twice rather than not at all.
            let place = place.insert(Place::take(self, &worst));
            let standing = self.port().standing(self.id()).await?;
            if let Some(why) = self.too_much(task, &standing, place, &worst) {
                return Ok(Thought::TooMuch(why));
            }
            let left = self.budget_check(task, &standing).and_then(|budget_check| budget_check.time_left());
            let turn = self.environment.gateway.take_turn(&chosen, &request, self.listener(task), meter);
            let error = match with_time_limit(left, turn).await {
                Some(Ok(turn)) => {
                    if was_too_long {
                        self.rooms().insert(chosen.alias, request.estimated_tokens());
                    }
                    return Ok(Thought::Whole(turn));
                }
                Some(Err(error)) => error,
                None => return Ok(Thought::OutOfTime(self.out_of_time(task, &standing))),
            };
            // Where something was paid for, that is recorded, and the agent gives up.
            if error.class != ErrorClass::ContextTooLong || error.usage.total() > 0 {
                return Ok(Thought::Failed(error));
            }
            let shorter = self.request(task, role, &chosen, most, request.estimated_tokens() / 3 * 2).await?;
            if shorter.estimated_tokens() >= request.estimated_tokens() {
                return Ok(Thought::Failed(error));
            }
            (request, was_too_long) = (shorter, true);
        }
    }

    /// The same after a while, with what was said and done meanwhile; nothing, if nobody waits for the turn any more.
    async fn take_turn_later(&self, task: TaskId) -> Result<Option<Seq>, PortError> {
        let events = self.port().events_of(self.id()).await?;
        let history = Arc::new(History::from_events(self.id(), &events));
        if !plan(&history).contains(&PlannedStep::TakeTurn { task }) {
            return Ok(None);
        }
        let now = Self { history, ..self.clone() };
        Box::pin(now.take_turn(task)).await
    }

    /// Tokens that a model can be told, as far as is known.
    fn room(&self, chosen: &ChosenModel, answer: u32) -> u64 {
        let known = self.rooms().get(&chosen.alias).copied();
        chosen.prompt_limit(answer).min(known.unwrap_or(u64::MAX))
    }

    fn rooms(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.environment.rooms.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The person's choice for the run, then for the role, then the catalog's.
    fn choose(&self, role: &str, standing: &RunContext) -> Result<ChosenModel, ModelError> {
        let of_run = self.history.run().and_then(|run| run.model.as_deref());
        let of_role = standing.roles.iter().find(|(name, _)| name == role).map(|(_, model)| model.as_str());
        self.environment.gateway.choose(of_run.or(of_role), role)
    }

    /// What the agent's model is told and offered, in so many tokens where that is possible.
    async fn request(
        &self,
        task: TaskId,
        role: roles::Role,
        chosen: &ChosenModel,
        max_output: u32,
        room: u64,
    ) -> Result<ChatRequest, PortError> {
        let Some(own) = self.history.tasks.get(&task) else {
            return Err(PortError::Refused("the agent is not in its own run".into()));
        };
        // Held here, since what is kept at hand may be let go at any time.
        let mut texts = transcript::Texts::new();
        for hash in transcript::needed_contents(own) {
            match self.text(hash).await {
                Ok(text) => drop(texts.insert(hash, text)),
                // Words that were purged are told to be.
                Err(PortError::Refused(_)) => {}
                Err(error @ PortError::Unavailable(_)) => return Err(error),
            }
        }
        let offer = self.offer(role, chosen).await;
        let mut request = ChatRequest {
            system: system(role, &offer.silent),
            messages: Vec::new(),
            tools: role.tool_definitions().into_iter().chain(offer.tools).collect(),
            max_output,
            answer: AnswerForm::Any,
        };
        let room = usize::try_from(room.saturating_sub(request.estimated_tokens())).unwrap_or(usize::MAX);
        let told = transcript::conversation(&self.history, own, &texts);
        request.messages = fit(told, room.saturating_mul(BYTES_PER_TOKEN));
        Ok(request)
    }

    /// Why the turn would be too much.
    fn too_much(
        &self,
        task: TaskId,
        standing: &RunContext,
        place: &Place,
        worst: &WorstCase,
    ) -> Option<String> {
        let (of_run, of_day) = place.reserved();
        self.budget_check(task, standing)?.exceeded(&of_run, &of_day, worst)
    }

    /// Which time was over before the answer was whole. That of a role is counted when a turn is recorded.
    fn out_of_time(&self, task: TaskId, standing: &RunContext) -> String {
        let why = self.budget_check(task, standing).and_then(|budget_check| budget_check.out_of_time());
        why.unwrap_or_else(|| OUT_OF_TIME.into())
    }

    /// The bounds within which an agent works now.
    pub(super) fn bounds<'a>(&'a self, task: TaskId, standing: &'a RunContext) -> Option<BudgetCheck<'a>> {
        let run = self.history.run()?;
        Some(BudgetCheck { run, task: run.task(task), standing, now: self.port().now() })
    }

    fn listener(&self, task: TaskId) -> DeltaListener {
        let (environment, run) = (Arc::clone(&self.environment), self.id());
        Arc::new(move |delta| match delta {
            Delta::Text(text) if !text.is_empty() => environment.port.say(run, task, &text),
            Delta::Restart => environment.port.say(run, task, ""),
            Delta::Text(_) | Delta::Thought(_) | Delta::Call { .. } | Delta::Input(_) => {}
        })
    }

    async fn took(&self, task: TaskId, turn: CompletedTurn) -> Result<Option<Seq>, PortError> {
        let wanted = turn
            .reply
            .calls
            .iter()
            .map(|call| RequestedCall { call: self.port().new_op(), tool: tool_name(&call.tool).into() });
        let (calls, usage): (Vec<RequestedCall>, _) = (wanted.collect(), turn.reply.usage);
        let ended = match turn.reply.stop {
            StopReason::Refusal => ReplyEnd::Refused,
            StopReason::Length => ReplyEnd::InterruptedCall,
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
        let taken = MeterReading { model: reply.model.to_string(), usage, cost: reply.micros };
        let recorded =
            self.record_by(task, RunAction::RecordReply(reply), staged.bytes.into_iter().collect()).await;
        self.count_if_refused(task, taken, recorded).await
    }

    /// What a turn took is recorded also where the run or the agent is over, or went back, so that nothing else is.
    async fn count_if_refused(
        &self,
        task: TaskId,
        taken: MeterReading,
        recorded: Result<Option<Seq>, PortError>,
    ) -> Result<Option<Seq>, PortError> {
        if let Err(PortError::Refused(_)) = &recorded {
            self.record_loss(task, taken, "nobody waits for its answer any more").await?;
        }
        recorded
    }

    async fn record_loss(
        &self,
        task: TaskId,
        taken: MeterReading,
        reason: &str,
    ) -> Result<Option<Seq>, PortError> {
        let (tokens, micros) = (tokens(&taken.usage), taken.cost);
        if tokens.total() == 0 {
            return Ok(None);
        }
        let loss = LlmFail { task, model: taken.model.into(), reason: reason.into(), tokens, micros };
        self.record(RunAction::RecordLoss(loss), Vec::new()).await
    }

    /// No model answered: the run waits for the person where that may help, else the agent gives up.
    async fn failed(&self, task: TaskId, error: &ModelError) -> Result<Option<Seq>, PortError> {
        let reason = error.to_string();
        match error.class {
            ErrorClass::Retryable
            | ErrorClass::RateLimit { .. }
            | ErrorClass::Overloaded
            | ErrorClass::Auth
            | ErrorClass::Unavailable => {
                self.record_failure(task, error, reason.clone()).await?;
                self.record(RunAction::Pause(PauseReason::Model(reason.into())), Vec::new()).await
            }
            ErrorClass::BadRequest | ErrorClass::ContextTooLong | ErrorClass::Unusable => {
                self.record_failure(task, error, format!("{GIVEN_UP}{reason}")).await
            }
        }
    }

    async fn record_failure(
        &self,
        task: TaskId,
        error: &ModelError,
        reason: String,
    ) -> Result<Option<Seq>, PortError> {
        let reason: String = reason.chars().filter(|c| !c.is_control() || *c == '\n').take(1_000).collect();
        let tokens = tokens(&error.usage);
        let micros = error.cost.filter(|_| tokens.total() > 0);
        let fail =
            LlmFail { task, model: error.model.as_str().into(), reason: reason.into(), tokens, micros };
        let known = self.history.seq();
        let taken = MeterReading { model: error.model.clone(), usage: error.usage, cost: error.cost };
        let recorded = self.record(RunAction::RecordFailure { fail, known }, Vec::new()).await;
        self.count_if_refused(task, taken, recorded).await
    }
}

fn tokens(usage: &Usage) -> Tokens {
    Tokens {
        input: usage.input,
        cache_read: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output,
    }
}

/// What an agent is told before everything else, and which tools it has to do without.
fn system(role: roles::Role, silent: &[String]) -> String {
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

/// What one turn takes at most, set aside.
struct Place {
    job: Job,
    worst: WorstCase,
}

impl Place {
    fn take(job: &Job, worst: &WorstCase) -> Self {
        let lock = |of: &std::sync::Mutex<Reserved>| {
            of.lock().unwrap_or_else(PoisonError::into_inner).add(worst);
        };
        lock(&job.reserved);
        lock(&job.environment.reserved);
        Self { job: job.clone(), worst: *worst }
    }

    fn reserved(&self) -> (Reserved, Reserved) {
        let read = |of: &std::sync::Mutex<Reserved>| *of.lock().unwrap_or_else(PoisonError::into_inner);
        (read(&self.job.reserved), read(&self.job.environment.reserved))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for of in [&self.job.reserved, &self.job.environment.reserved] {
            of.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.worst);
        }
    }
}

#[cfg(test)]
mod tests;
