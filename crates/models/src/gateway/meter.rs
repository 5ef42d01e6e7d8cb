//! What a turn has taken so far, for whoever takes it and for whoever lets go of it before its end.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{
    BYTES_OF_A_TOKEN, Prices,
    chat::{Delta, Request, Usage},
    gateway::Chosen,
    provider::RawReply,
};

/// See the module.
#[derive(Debug, Default)]
pub struct Meter(Mutex<State>);

/// What was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Our name for the model that was asked last; empty if none was.
    pub model: String,
    pub usage: Usage,
    /// Micro-dollars; `None` if not known.
    pub cost: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct State {
    model: String,
    usage: Usage,
    cost: u64,
    /// Whether an answer came whose price nobody knows.
    is_unpriced: bool,
    open: Option<Open>,
}

/// A request that was sent, and is not answered yet.
#[derive(Debug, Clone)]
struct Open {
    input: u64,
    /// Bytes that were heard, thoughts among them.
    heard: usize,
    prices: Option<Prices>,
}

impl Meter {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was taken up to now. An answer that is not whole yet is estimated.
    pub fn taken(&self) -> Taken {
        let mut state = self.state().clone();
        if let Some(open) = state.open.take() {
            state.add(&open.estimate(0), open.prices);
        }
        let State { model, usage, cost, is_unpriced, open: _ } = state;
        Taken { model, usage, cost: (!is_unpriced).then_some(cost) }
    }

    /// A request is being sent.
    pub(super) fn send(&self, chosen: &Chosen, request: &Request) {
        let mut state = self.state();
        state.model.clone_from(&chosen.alias);
        state.open = Some(Open { input: request.tokens(), heard: 0, prices: chosen.prices });
    }

    pub(super) fn hear(&self, delta: &Delta) {
        if let Some(open) = &mut self.state().open {
            open.heard += delta.size();
        }
    }

    /// The request came to nothing.
    pub(super) fn fail(&self) {
        self.state().open = None;
    }

    /// The answer came whole. For a server that does not count it is estimated, so that limits hold.
    pub(super) fn receive(&self, raw: &RawReply) {
        let mut state = self.state();
        if let Some(open) = state.open.take() {
            let counted = raw.usage.filter(|usage| usage.total() > 0);
            state.add(&counted.unwrap_or_else(|| open.estimate(raw.estimate())), open.prices);
        }
    }
}

impl State {
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

impl Open {
    /// What it takes, if so many tokens came or as many as were heard.
    fn estimate(&self, came: u64) -> Usage {
        let heard = self.heard.div_ceil(BYTES_OF_A_TOKEN) as u64;
        Usage { input: self.input, output: heard.max(came), ..Usage::default() }
    }
}
