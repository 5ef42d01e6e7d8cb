//! Token prices. An unknown price gives an unknown cost, never zero.

use serde::{Deserialize, Serialize};

use crate::chat::Usage;

/// Micro-dollars per million tokens: 3 dollars per million are 3,000,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: u64,
    pub output: u64,
    /// Defaults to the price of `input`.
    pub cache_read: Option<u64>,
    /// Defaults to the price of `input`.
    pub cache_write: Option<u64>,
}

impl Prices {
    /// The cost in micro-dollars, rounded up so that a small request is not free.
    pub fn cost(&self, usage: &Usage) -> u64 {
        let price = |tokens: u64, per_million: u64| u128::from(tokens) * u128::from(per_million);
        let sum = price(usage.input, self.input)
            + price(usage.output, self.output)
            + price(usage.cache_read, self.cache_read.unwrap_or(self.input))
            + price(usage.cache_write, self.cache_write.unwrap_or(self.input));
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }

    /// The highest cost in micro-dollars of this many tokens, whichever input price applies.
    pub(crate) fn at_most(&self, input: u64, output: u64) -> u64 {
        let cache = self.cache_write.unwrap_or(self.input);
        let highest = Self { input: self.input.max(cache), ..*self };
        highest.cost(&Usage { input, output, ..Usage::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SONNET: Prices = Prices {
        input: 3_000_000,
        output: 15_000_000,
        cache_read: Some(300_000),
        cache_write: Some(3_750_000),
    };

    #[test]
    fn every_kind_of_token_has_its_own_price() {
        let usage = Usage { input: 1000, output: 200, cache_read: 10_000, cache_write: 2000 };
        assert_eq!(SONNET.cost(&usage), 3000 + 3000 + 3000 + 7500);
    }

    #[test]
    fn a_small_call_is_not_free() {
        let cheap = Prices { input: 50_000, output: 400_000, cache_read: None, cache_write: None };
        assert_eq!(cheap.cost(&Usage { input: 1, ..Usage::default() }), 1);
        assert_eq!(cheap.cost(&Usage { cache_read: 1_000_000, ..Usage::default() }), 50_000);
    }

    #[test]
    fn the_worst_case_uses_the_highest_input_price() {
        assert_eq!(SONNET.at_most(1_000_000, 1_000_000), 3_750_000 + 15_000_000);
    }
}
