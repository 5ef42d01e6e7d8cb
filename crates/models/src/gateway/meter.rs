//! Counts the usage of a turn, so that it is known even if the turn is cancelled.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    BYTES_PER_TOKEN, Prices,
    chat::{ChatRequest, Delta, Usage},
    gateway::ChosenModel,
    provider::RawReply,
};

/// Counts the tokens and the cost of one turn while it runs.
#[derive(Debug, Default)]
pub struct UsageMeter(Mutex<MeterState>);

/// The usage that a [`UsageMeter`] has counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeterReading {
    /// The catalog alias of the model of the last request; empty before the first.
    pub model: String,
    pub usage: Usage,
    /// Micro-dollars; `None` if a price is unknown.
    pub cost: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct MeterState {
    model: String,
    usage: Usage,
    cost: u64,
    /// Whether a model without known prices was used.
    is_unpriced: bool,
    open: Option<OpenRequest>,
}

/// A request whose answer is not complete yet.
#[derive(Debug, Clone)]
struct OpenRequest {
    input: u64,
    /// Bytes of the answer so far, including thinking.
    output_bytes: usize,
    prices: Option<Prices>,
}

impl UsageMeter {
    fn state(&self) -> MutexGuard<'_, MeterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The usage so far. An incomplete answer is estimated.
    pub fn reading(&self) -> MeterReading {
        let mut state = self.state().clone();
        if let Some(open) = state.open.take() {
            state.add(&open.estimate(0), open.prices);
        }
        let MeterState { model, usage, cost, is_unpriced, open: _ } = state;
        MeterReading { model, usage, cost: (!is_unpriced).then_some(cost) }
    }

    /// Starts counting a request.
    pub(super) fn start_request(&self, chosen: &ChosenModel, request: &ChatRequest) {
        let mut state = self.state();
        state.model.clone_from(&chosen.alias);
        state.open =
            Some(OpenRequest { input: request.estimated_tokens(), output_bytes: 0, prices: chosen.prices });
    }

    pub(super) fn count_delta(&self, delta: &Delta) {
        if let Some(open) = &mut self.state().open {
            open.output_bytes += delta.estimated_bytes();
        }
    }

    /// Drops a request that failed: it is not billed.
    pub(super) fn discard_request(&self) {
        self.state().open = None;
    }

    /// Counts a complete answer. If the server reports no usage it is estimated, so that budgets still hold.
    pub(super) fn finish_request(&self, raw: &RawReply) {
        let mut state = self.state();
        if let Some(open) = state.open.take() {
            let counted = raw.usage.filter(|usage| usage.total() > 0);
            state.add(&counted.unwrap_or_else(|| open.estimate(raw.estimate())), open.prices);
        }
    }
}

impl MeterState {
    fn add(&mut self, usage: &Usage, prices: Option<Prices>) {
        self.usage.input += usage.input;
        self.usage.cache_read += usage.cache_read;
        self.usage.cache_write += usage.cache_write;
        self.usage.output += usage.output;
        match prices {
            Some(prices) => self.cost = self.cost.saturating_add(prices.cost(usage)),
            None => self.is_unpriced = true,
        }
    }
}

impl OpenRequest {
    /// The estimated usage: output is the larger of the streamed bytes and `output_tokens`.
    fn estimate(&self, output_tokens: u64) -> Usage {
        let streamed = self.output_bytes.div_ceil(BYTES_PER_TOKEN) as u64;
        Usage { input: self.input, output: streamed.max(output_tokens), ..Usage::default() }
    }
}
