//! Takes a turn: waits for a free slot at the provider, retries with delays, asks a second time after an invalid
//! answer, and falls back to other models.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    ErrorClass, Gateway, LocalModelEndpoint, ModelError, ProviderKind,
    chat::{ChatRequest, Delta, DeltaListener, Reply},
    gateway::{ChosenModel, MeterReading, UsageMeter},
    mask::mask,
    provider::{self, ProviderError, RawReply, RequestTarget},
    reply_parser::{self, InvalidReply},
};

/// The result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedTurn {
    pub reply: Reply,
    /// The catalog alias of the model that answered.
    pub model: String,
    /// Micro-dollars of all complete answers, like the usage in `reply`; `None` if a price is unknown.
    pub cost: Option<u64>,
    /// Number of requests sent, including failed ones.
    pub attempts: u32,
    pub millis: u64,
}

/// Counters of a running turn.
#[derive(Debug)]
struct TurnProgress<'m> {
    start: Instant,
    attempts: u32,
    /// Whether the listener received deltas that a restart has to discard.
    has_deltas: bool,
    /// Complete answers; each of them is billed.
    answers: u32,
    meter: &'m UsageMeter,
}

/// Maximum number of billed answers per turn, over all models. The worst case reserves this many.
const MAX_ANSWERS: u32 = 2;

impl<'m> TurnProgress<'m> {
    fn begin(meter: &'m UsageMeter) -> Self {
        Self { start: Instant::now(), attempts: 0, has_deltas: false, answers: 0, meter }
    }

    /// Counts a complete answer.
    fn count_answer(&mut self, raw: &RawReply) {
        self.answers += 1;
        self.meter.finish_request(raw);
    }

    /// Adds the usage so far to the error.
    fn into_error(self, error: ModelError) -> ModelError {
        let MeterReading { usage, cost, .. } = self.meter.reading();
        ModelError { usage, cost, ..error }
    }

    fn into_turn(self, model: String, reply: Reply) -> CompletedTurn {
        let millis = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let MeterReading { usage, cost, .. } = self.meter.reading();
        CompletedTurn { reply: Reply { usage, ..reply }, model, cost, attempts: self.attempts, millis }
    }
}

impl Gateway {
    pub(super) async fn ask_with_fallbacks(
        &self,
        chosen: &ChosenModel,
        request: &ChatRequest,
        listener: DeltaListener,
        meter: &UsageMeter,
    ) -> Result<CompletedTurn, ModelError> {
        let mut progress = TurnProgress::begin(meter);
        let mut first_error = None;
        let prompt_tokens = request.estimated_tokens();
        for candidate in self.candidates(chosen) {
            if first_error.is_some() && candidate.context < prompt_tokens {
                continue;
            }
            match self
                .ask_for_valid_reply(
                    &candidate,
                    request,
                    &listener,
                    &mut progress,
                    self.0.catalog.retry.attempts,
                )
                .await
            {
                Ok(reply) => return Ok(progress.into_turn(candidate.alias, reply)),
                Err(error) if !should_try_fallback(error.class, progress.has_deltas) => {
                    return Err(progress.into_error(first_error.unwrap_or(error)));
                }
                Err(error) => {
                    tracing::info!(model = candidate.alias, class = ?error.class, "model request failed");
                    first_error.get_or_insert(error);
                }
            }
        }
        // The candidates always include the chosen model, so there was an error.
        let none = || failed(chosen, ErrorClass::Unavailable, "No model was available.".into());
        Err(progress.into_error(first_error.unwrap_or_else(none)))
    }

    pub(super) async fn ask_without_fallback(
        &self,
        chosen: &ChosenModel,
        request: &ChatRequest,
    ) -> Result<CompletedTurn, ModelError> {
        let meter = UsageMeter::default();
        let mut progress = TurnProgress::begin(&meter);
        let listener: DeltaListener = Arc::new(|_| {});
        let reply = self.ask_for_valid_reply(chosen, request, &listener, &mut progress, 1).await?;
        Ok(progress.into_turn(chosen.alias.clone(), reply))
    }

    /// Asks one model. If its answer is invalid, tells it why and asks once more.
    async fn ask_for_valid_reply(
        &self,
        chosen: &ChosenModel,
        request: &ChatRequest,
        listener: &DeltaListener,
        progress: &mut TurnProgress<'_>,
        max_attempts: u32,
    ) -> Result<Reply, ModelError> {
        let Some(model) = self.catalog().models.get(&chosen.alias) else {
            return Err(failed(chosen, ErrorClass::Unavailable, "This model is not configured.".into()));
        };
        let sent = ChatRequest {
            max_output: request.max_output.min(model.max_output),
            ..reply_parser::with_object_schema(request)
        };
        let first = self.ask_with_retries(chosen, &sent, listener, progress, max_attempts).await?;
        let invalid = match reply_parser::parse(first, request, model) {
            Ok(reply) => return Ok(reply),
            Err(invalid) => invalid,
        };
        let unusable = |InvalidReply { problem, .. }| {
            let message = format!("The answer makes no sense, though it was asked for twice: {problem}");
            failed(chosen, ErrorClass::Unusable, message)
        };
        if progress.answers >= MAX_ANSWERS {
            return Err(unusable(invalid));
        }
        let again = reply_parser::ask_again(&sent, &invalid);
        let second = self.ask_with_retries(chosen, &again, listener, progress, max_attempts).await?;
        reply_parser::parse(second, request, model).map_err(unusable)
    }

    /// Sends the request until a complete answer arrives, at most `max_attempts` times.
    async fn ask_with_retries(
        &self,
        chosen: &ChosenModel,
        request: &ChatRequest,
        listener: &DeltaListener,
        progress: &mut TurnProgress<'_>,
        max_attempts: u32,
    ) -> Result<RawReply, ModelError> {
        let mut attempt = 0;
        loop {
            if std::mem::take(&mut progress.has_deltas) {
                listener(Delta::Restart);
            }
            attempt += 1;
            let error = match self.send_request(chosen, request, listener, progress).await {
                Ok(raw) => {
                    progress.count_answer(&raw);
                    return Ok(raw);
                }
                Err(error) => error,
            };
            let pause = self.retry_pause(error.class, attempt).filter(|_| attempt < max_attempts);
            let Some(pause) = pause else { return Err(error) };
            tracing::debug!(model = chosen.alias, ?pause, class = ?error.class, "retrying");
            self.0.clock.sleep(pause).await;
        }
    }

    /// Sends one request.
    async fn send_request(
        &self,
        chosen: &ChosenModel,
        request: &ChatRequest,
        listener: &DeltaListener,
        progress: &mut TurnProgress<'_>,
    ) -> Result<RawReply, ModelError> {
        let unavailable = |message: &str| failed(chosen, ErrorClass::Unavailable, message.into());
        let catalog = self.catalog();
        let model =
            catalog.models.get(&chosen.alias).ok_or_else(|| unavailable("This model is not configured."))?;
        let provider = catalog
            .providers
            .get(&model.provider)
            .ok_or_else(|| unavailable("Its provider is not configured."))?;
        let slots = self
            .0
            .slots
            .get(&model.provider)
            .ok_or_else(|| unavailable("Its provider is not configured."))?;
        if let Some((class, problem)) = self.unusable(&chosen.alias) {
            return Err(failed(chosen, class, problem.to_string()));
        }
        let _slot = slots.acquire().await.map_err(|_| unavailable("Its provider was closed."))?;
        let (base_url, key) = match (provider.kind, self.local()) {
            (ProviderKind::Local, Some(local)) => {
                let LocalModelEndpoint { base_url, bearer } = local.endpoint().await?;
                (base_url, bearer)
            }
            (ProviderKind::Local, None) => return Err(unavailable("This server has no local model.")),
            (ProviderKind::Anthropic | ProviderKind::Openai | ProviderKind::Bedrock, _) => {
                let base_url =
                    provider.base_url.clone().ok_or_else(|| unavailable("Its provider has no base_url."))?;
                (base_url, self.0.keys.key(&model.provider))
            }
        };
        progress.attempts += 1;
        let target = RequestTarget {
            model,
            provider,
            base_url: &base_url,
            key: key.as_ref(),
            now: self.0.clock.now(),
        };
        let meter = progress.meter;
        let on_delta = |delta| {
            progress.has_deltas = true;
            meter.count_delta(&delta);
            listener(delta);
        };
        meter.start_request(chosen, request);
        let outcome = provider::send(&self.0.http, &target, request, on_delta).await;
        outcome.map_err(|ProviderError { class, message }| {
            meter.discard_request();
            failed(chosen, class, mask(&message, key.as_ref()))
        })
    }

    /// How long to wait before the next attempt; `None` if a retry cannot help.
    fn retry_pause(&self, class: ErrorClass, attempt: u32) -> Option<Duration> {
        let retry = self.0.catalog.retry;
        let longest = Duration::from_millis(retry.longest_pause_ms);
        let doubled = retry.first_pause_ms.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        let bound = Duration::from_millis(doubled).min(longest);
        match class {
            ErrorClass::RateLimit { after: Some(after) } if after > longest => None,
            ErrorClass::RateLimit { after: Some(after) } => Some(after + jitter(bound.min(after) / 4)),
            ErrorClass::RateLimit { after: None } | ErrorClass::Retryable | ErrorClass::Overloaded => {
                Some(jitter(bound))
            }
            ErrorClass::Auth
            | ErrorClass::BadRequest
            | ErrorClass::ContextTooLong
            | ErrorClass::Unusable
            | ErrorClass::Unavailable => None,
        }
    }
}

/// A random duration up to `bound` ("full jitter"), so that clients that failed together do not retry together.
fn jitter(bound: Duration) -> Duration {
    let mut bits = [0; 4];
    // Without randomness every client waits for the full bound, which is safe.
    let share = getrandom::fill(&mut bits)
        .map_or(1.0, |()| f64::from(u32::from_le_bytes(bits)) / f64::from(u32::MAX));
    bound.mul_f64(share)
}

/// Whether to try a fallback after the last attempt failed. `has_deltas` says whether that attempt's answer had begun.
fn should_try_fallback(class: ErrorClass, has_deltas: bool) -> bool {
    match class {
        ErrorClass::Overloaded
        | ErrorClass::RateLimit { .. }
        | ErrorClass::Auth
        | ErrorClass::Unavailable => true,
        // A provider that breaks off in the middle of an answer bills for it; one that cannot be reached does not.
        ErrorClass::Retryable => !has_deltas,
        ErrorClass::BadRequest | ErrorClass::ContextTooLong | ErrorClass::Unusable => false,
    }
}

fn failed(chosen: &ChosenModel, class: ErrorClass, message: String) -> ModelError {
    ModelError::new(chosen.alias.clone(), class, message)
}
