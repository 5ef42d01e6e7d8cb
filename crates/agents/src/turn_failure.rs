//! Why a model did not take a turn, as `llm.fail` stores it.
//!
//! The event has one text for the reason. A permanent failure is marked there by a prefix, which only this module reads
//! and writes: stored events keep their form, and all other code matches on [`TurnFailure`].

/// The mark of a permanent failure in a stored reason.
const PERMANENT_PREFIX: &str = "given up: ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TurnFailure {
    /// Another attempt may succeed, for example after the person added a key.
    Temporary(String),
    /// No attempt will succeed: the agent fails.
    Permanent(String),
}

impl TurnFailure {
    /// Reads the reason of an `llm.fail` event.
    pub(crate) fn from_stored(reason: &str) -> Self {
        match reason.strip_prefix(PERMANENT_PREFIX) {
            Some(reason) => Self::Permanent(reason.to_owned()),
            None => Self::Temporary(reason.to_owned()),
        }
    }

    /// The reason for an `llm.fail` event.
    pub(crate) fn to_stored(&self) -> String {
        match self {
            Self::Temporary(reason) => reason.clone(),
            Self::Permanent(reason) => format!("{PERMANENT_PREFIX}{reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_reason_is_read_back_as_the_same_failure() {
        let cases = [
            (TurnFailure::Temporary("overloaded".into()), "overloaded"),
            (TurnFailure::Permanent("no such model".into()), "given up: no such model"),
        ];
        for (failure, stored) in cases {
            assert_eq!(failure.to_stored(), stored);
            assert_eq!(TurnFailure::from_stored(stored), failure);
        }
    }
}
