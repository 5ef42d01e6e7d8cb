//! The most that a turn can use, so that a budget can reserve it before the turn starts.

use crate::{
    Gateway,
    chat::{AnswerForm, ChatRequest},
    gateway::ChosenModel,
};

/// Tokens of the message that asks for a second answer, including its quote of the first.
pub(super) const REASK_TOKENS: u64 = 1000;

/// The most that a turn can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorstCase {
    pub tokens: u64,
    /// Micro-dollars; `None` if the price of the model or of a fallback is unknown.
    pub micros: Option<u64>,
}

impl Gateway {
    pub(super) fn worst_case_of(&self, chosen: &ChosenModel, request: &ChatRequest) -> WorstCase {
        let prompt = request.estimated_tokens();
        let bounds = self.candidates(chosen).map(|candidate| {
            let answer = u64::from(request.max_output.min(candidate.max_output));
            // An answer that can be invalid may be asked for twice.
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

    /// The chosen model, followed by its usable fallbacks.
    pub(super) fn candidates(&self, chosen: &ChosenModel) -> impl Iterator<Item = ChosenModel> {
        let fallbacks = self.catalog().models.get(&chosen.alias).map(|model| model.fallbacks.as_slice());
        let others = fallbacks.unwrap_or_default().iter().filter(|alias| self.is_usable(alias));
        std::iter::once(chosen.clone()).chain(others.filter_map(|alias| self.chosen(alias)))
    }
}

fn can_be_reasked(request: &ChatRequest) -> bool {
    match request.answer {
        AnswerForm::Any => !request.tools.is_empty(),
        AnswerForm::Call | AnswerForm::Json { .. } => true,
    }
}
