//! Taking a turn: a place at the provider, tries with pauses between them, one more question when the answer makes no
//! sense, and others who take the place of a model that cannot answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    ErrorClass, Gateway, Kind, LocalEndpoint, ModelError,
    chat::{Delta, Listener, Reply, Request},
    gateway::{Chosen, Meter, Taken},
    mask::mask,
    provider::{self, Failure, RawReply, Target},
    reading::{self, Flaw},
};

/// A turn that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub reply: Reply,
    /// Our name for the model that answered.
    pub model: String,
    /// Micro-dollars of all answers that came whole, as the usage of the reply is theirs; `None` if not known.
    pub cost: Option<u64>,
    /// Requests that were sent, those included that failed.
    pub attempts: u32,
    pub millis: u64,
}

/// What is counted while a turn is taken.
#[derive(Debug)]
struct Tally<'m> {
    start: Instant,
    attempts: u32,
    /// Whether anything was heard that a restart must make void.
    begun: bool,
    /// Answers that came whole: each of them is paid for.
    answers: u32,
    meter: &'m Meter,
}

/// Answers that are paid for in one turn, whoever gives them. A worst case reserves so many.
const ANSWERS: u32 = 2;

impl<'m> Tally<'m> {
    fn begin(meter: &'m Meter) -> Self {
        Self { start: Instant::now(), attempts: 0, begun: false, answers: 0, meter }
    }

    /// Counts an answer that came whole.
    fn add(&mut self, raw: &RawReply) {
        self.answers += 1;
        self.meter.receive(raw);
    }

    /// What was taken though nothing came of it.
    fn failed(self, error: ModelError) -> ModelError {
        let Taken { usage, cost, .. } = self.meter.taken();
        ModelError { usage, cost, ..error }
    }

    fn turn(self, model: String, reply: Reply) -> Turn {
        let millis = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Taken { usage, cost, .. } = self.meter.taken();
        Turn { reply: Reply { usage, ..reply }, model, cost, attempts: self.attempts, millis }
    }
}

impl Gateway {
    pub(super) async fn ask_in_order(
        &self,
        chosen: &Chosen,
        request: &Request,
        listener: Listener,
        meter: &Meter,
    ) -> Result<Turn, ModelError> {
        let mut tally = Tally::begin(meter);
        let mut first_error = None;
        let length = request.tokens();
        for candidate in self.candidates(chosen) {
            if first_error.is_some() && candidate.context < length {
                continue;
            }
            match self
                .ask_sensibly(&candidate, request, &listener, &mut tally, self.0.catalog.retry.attempts)
                .await
            {
                Ok(reply) => return Ok(tally.turn(candidate.alias, reply)),
                Err(error) if !another_may_help(error.class, tally.begun) => {
                    return Err(tally.failed(first_error.unwrap_or(error)));
                }
                Err(error) => {
                    tracing::info!(model = candidate.alias, class = ?error.class, "a model could not answer");
                    first_error.get_or_insert(error);
                }
            }
        }
        // There is always the chosen model itself, so there was an error.
        let nobody = || failed(chosen, ErrorClass::Unavailable, "Nobody was asked.".into());
        Err(tally.failed(first_error.unwrap_or_else(nobody)))
    }

    pub(super) async fn ask_once(&self, chosen: &Chosen, request: &Request) -> Result<Turn, ModelError> {
        let meter = Meter::default();
        let mut tally = Tally::begin(&meter);
        let listener: Listener = Arc::new(|_| {});
        let reply = self.ask_sensibly(chosen, request, &listener, &mut tally, 1).await?;
        Ok(tally.turn(chosen.alias.clone(), reply))
    }

    /// Asks one model; when its answer makes no sense, says so and asks once more.
    async fn ask_sensibly(
        &self,
        chosen: &Chosen,
        request: &Request,
        listener: &Listener,
        tally: &mut Tally<'_>,
        tries: u32,
    ) -> Result<Reply, ModelError> {
        let Some(model) = self.catalog().models.get(&chosen.alias) else {
            return Err(failed(chosen, ErrorClass::Unavailable, "No such model is configured.".into()));
        };
        let asked =
            Request { max_output: request.max_output.min(model.max_output), ..reading::asked(request) };
        let first = self.ask_patiently(chosen, &asked, listener, tally, tries).await?;
        let flaw = match reading::read(first, request, model) {
            Ok(reply) => return Ok(reply),
            Err(flaw) => flaw,
        };
        let senseless = |Flaw { problem, .. }| {
            let message = format!("The answer makes no sense, though it was asked for twice: {problem}");
            failed(chosen, ErrorClass::Unusable, message)
        };
        if tally.answers >= ANSWERS {
            return Err(senseless(flaw));
        }
        let again = reading::ask_again(&asked, &flaw);
        let second = self.ask_patiently(chosen, &again, listener, tally, tries).await?;
        reading::read(second, request, model).map_err(senseless)
    }

    /// Asks until there is a whole answer, with pauses, as often as is allowed.
    async fn ask_patiently(
        &self,
        chosen: &Chosen,
        request: &Request,
        listener: &Listener,
        tally: &mut Tally<'_>,
        tries: u32,
    ) -> Result<RawReply, ModelError> {
        let mut tried = 0;
        loop {
            if std::mem::take(&mut tally.begun) {
                listener(Delta::Restart);
            }
            tried += 1;
            let error = match self.ask(chosen, request, listener, tally).await {
                Ok(raw) => {
                    tally.add(&raw);
                    return Ok(raw);
                }
                Err(error) => error,
            };
            let pause = self.pause(error.class, tried).filter(|_| tried < tries);
            let Some(pause) = pause else { return Err(error) };
            tracing::debug!(model = chosen.alias, ?pause, class = ?error.class, "asking again");
            self.0.clock.sleep(pause).await;
        }
    }

    /// One request.
    async fn ask(
        &self,
        chosen: &Chosen,
        request: &Request,
        listener: &Listener,
        tally: &mut Tally<'_>,
    ) -> Result<RawReply, ModelError> {
        let missing = |message: &str| failed(chosen, ErrorClass::Unavailable, message.into());
        let catalog = self.catalog();
        let model =
            catalog.models.get(&chosen.alias).ok_or_else(|| missing("No such model is configured."))?;
        let provider =
            catalog.providers.get(&model.provider).ok_or_else(|| missing("It has no provider."))?;
        let place = self.0.places.get(&model.provider).ok_or_else(|| missing("It has no provider."))?;
        if let Some((class, message)) = self.obstacle(&chosen.alias) {
            return Err(failed(chosen, class, message));
        }
        let _place = place.acquire().await.map_err(|_| missing("Its provider was closed."))?;
        let (base_url, key) = match (provider.kind, self.local()) {
            (Kind::Local, Some(local)) => {
                let LocalEndpoint { base_url, bearer } = local.endpoint().await?;
                (base_url, bearer)
            }
            (Kind::Local, None) => return Err(missing("There is no local model here.")),
            (Kind::Anthropic | Kind::Openai | Kind::Bedrock, _) => {
                let base_url =
                    provider.base_url.clone().ok_or_else(|| missing("Its provider has no base_url."))?;
                (base_url, self.0.keys.key(&model.provider))
            }
        };
        tally.attempts += 1;
        let target =
            Target { model, provider, base_url: &base_url, key: key.as_ref(), now: self.0.clock.now() };
        let meter = tally.meter;
        let hear = |delta| {
            tally.begun = true;
            meter.hear(&delta);
            listener(delta);
        };
        meter.send(chosen, request);
        let outcome = provider::ask(&self.0.http, &target, request, hear).await;
        outcome.map_err(|Failure { class, message }| {
            meter.fail();
            failed(chosen, class, mask(&message, key.as_ref()))
        })
    }

    /// How long to wait before the next try; `None` if there is no point in one.
    fn pause(&self, class: ErrorClass, tried: u32) -> Option<Duration> {
        let retry = self.0.catalog.retry;
        let longest = Duration::from_millis(retry.longest_pause_ms);
        let doubled = retry.first_pause_ms.saturating_mul(1 << tried.saturating_sub(1).min(20));
        let bound = Duration::from_millis(doubled).min(longest);
        match class {
            ErrorClass::RateLimit { after: Some(after) } if after > longest => None,
            ErrorClass::RateLimit { after: Some(after) } => Some(after + chance_of(bound.min(after) / 4)),
            ErrorClass::RateLimit { after: None } | ErrorClass::Retryable | ErrorClass::Overloaded => {
                Some(chance_of(bound))
            }
            ErrorClass::Auth
            | ErrorClass::BadRequest
            | ErrorClass::ContextTooLong
            | ErrorClass::Unusable
            | ErrorClass::Unavailable => None,
        }
    }
}

/// Anything from nothing to the bound ("full jitter"), so that those who failed together do not come back together.
fn chance_of(bound: Duration) -> Duration {
    let mut bits = [0; 4];
    // Without chance everybody waits longest, which is safe.
    let share = getrandom::fill(&mut bits)
        .map_or(1.0, |()| f64::from(u32::from_le_bytes(bits)) / f64::from(u32::MAX));
    bound.mul_f64(share)
}

/// Whether somebody else is asked when a model has failed for good. What was heard is of its last answer.
fn another_may_help(class: ErrorClass, was_heard: bool) -> bool {
    match class {
        ErrorClass::Overloaded
        | ErrorClass::RateLimit { .. }
        | ErrorClass::Auth
        | ErrorClass::Unavailable => true,
        // Who cannot be reached is replaced. Who breaks off in the middle of an answer is paid for it.
        ErrorClass::Retryable => !was_heard,
        ErrorClass::BadRequest | ErrorClass::ContextTooLong | ErrorClass::Unusable => false,
    }
}

fn failed(chosen: &Chosen, class: ErrorClass, message: String) -> ModelError {
    ModelError::new(chosen.alias.clone(), class, message)
}
