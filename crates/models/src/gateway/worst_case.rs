//! What a turn can take at most, so that it can be set aside before the turn is taken.

use crate::{
    Gateway,
    chat::{AnswerForm, Request},
    gateway::Chosen,
};

/// Tokens that our message takes which says what was wrong with an answer, with the answer that it quotes.
pub(super) const REASK_TOKENS: u64 = 1000;

/// The most that a turn can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstCase {
    pub tokens: u64,
    /// Micro-dollars; `None` if the price of anybody who may answer is not known.
    pub micros: Option<u64>,
}

impl Gateway {
    pub(super) fn bound(&self, chosen: &Chosen, request: &Request) -> WorstCase {
        let prompt = request.tokens();
        let bounds = self.candidates(chosen).map(|candidate| {
            let answer = u64::from(request.max_output.min(candidate.max_output));
            // An answer that may be wrong in form may be asked for a second time.
            let (input, output) = match can_be_reasked(request) {
                true => (2 * prompt + REASK_TOKENS, 2 * answer),
                false => (prompt, answer),
            };
            let micros = candidate.prices.map(|prices| prices.at_most(input, output));
            WorstCase { tokens: input + output, micros }
        });
        let none = WorstCase { tokens: 0, micros: Some(0) };
        bounds.fold(none, |one, other| WorstCase {
            tokens: one.tokens.max(other.tokens),
            micros: one.micros.zip(other.micros).map(|(one, other)| one.max(other)),
        })
    }

    /// The chosen model, then those that may take its place.
    pub(super) fn candidates(&self, chosen: &Chosen) -> impl Iterator<Item = Chosen> {
        let fallbacks = self.catalog().models.get(&chosen.alias).map(|model| model.fallbacks.as_slice());
        let others = fallbacks.unwrap_or_default().iter().filter(|alias| self.is_usable(alias));
        std::iter::once(chosen.clone()).chain(others.filter_map(|alias| self.chosen(alias)))
    }
}

fn can_be_reasked(request: &Request) -> bool {
    match request.answer {
        AnswerForm::Any => !request.tools.is_empty(),
        AnswerForm::Call | AnswerForm::Json { .. } => true,
    }
}
