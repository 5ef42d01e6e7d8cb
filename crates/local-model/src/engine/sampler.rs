//! Chooses the next token: the most likely allowed one, or with a temperature a random one of the most likely.

use std::cmp::Ordering;

/// The sampling parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampling {
    /// Zero always takes the most likely token.
    pub(crate) temperature: f32,
    pub(crate) top_p: f32,
    pub(crate) seed: u64,
}

/// Number of most likely tokens that are sorted and sampled.
const TOP_K: usize = 64;
/// A text is stuck in a loop if its end repeats this often and over at least this many tokens.
const REPEATS: usize = 6;
const SHORTEST_LOOP: usize = 48;
const LONGEST_PERIOD: usize = 40;

#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    state: u64,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self { sampling, state: sampling.seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    /// Chooses the next token among the allowed ones.
    pub(crate) fn pick(&mut self, logits: &[f32], is_allowed: impl Fn(u32) -> bool) -> Option<u32> {
        if self.sampling.temperature <= 0.0 {
            let best = (0..logits.len()).max_by(|a, b| logits[*a].total_cmp(&logits[*b]))? as u32;
            if is_allowed(best) {
                return Some(best);
            }
        }
        let mut order: Vec<u32> = (0..logits.len() as u32).collect();
        let by_logit = |a: &u32, b: &u32| logits[*b as usize].total_cmp(&logits[*a as usize]);
        if order.len() > TOP_K {
            order.select_nth_unstable_by(TOP_K, by_logit);
            order[..TOP_K].sort_unstable_by(by_logit);
        } else {
            order.sort_unstable_by(by_logit);
        }
        let (likely, rest) = order.split_at_mut(TOP_K.min(logits.len()));
        let likely = likely.iter().copied().filter(|token| is_allowed(*token));
        if self.sampling.temperature <= 0.0 {
            let mut likely = likely;
            if let Some(token) = likely.next() {
                return Some(token);
            }
        } else {
            let likely: Vec<u32> = likely.collect();
            if !likely.is_empty() {
                return self.draw(&likely, logits);
            }
        }
        rest.sort_unstable_by(by_logit);
        rest.iter().copied().find(|token| is_allowed(*token))
    }

    /// Draws one of these tokens, which are sorted by likelihood.
    fn draw(&mut self, tokens: &[u32], logits: &[f32]) -> Option<u32> {
        let first = logits[*tokens.first()? as usize];
        let share =
            |token: &u32| f64::from((logits[*token as usize] - first) / self.sampling.temperature).exp();
        let shares: Vec<f64> = tokens.iter().map(share).collect();
        let all: f64 = shares.iter().sum();
        let mut kept = 0.0;
        let within = shares.iter().position(|share| {
            kept += share;
            kept >= all * f64::from(self.sampling.top_p)
        });
        let count = within.map_or(shares.len(), |last| last + 1);
        let mut left = self.random() * shares[..count].iter().sum::<f64>();
        let drawn = shares[..count].iter().position(|share| {
            left -= share;
            left.partial_cmp(&0.0) != Some(Ordering::Greater)
        });
        tokens.get(drawn.unwrap_or(count - 1)).copied()
    }

    /// A pseudo-random number from 0 to 1; the same sequence for the same seed.
    fn random(&mut self) -> f64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Whether the text would be stuck in a loop with this token, as small models tend to be.
pub(crate) fn would_repeat(written: &[u32], next: u32) -> bool {
    let length = written.len() + 1;
    let at = |index: usize| if index == written.len() { next } else { written[index] };
    (1..=LONGEST_PERIOD).any(|period| {
        let span = (period * REPEATS).max(SHORTEST_LOOP);
        span <= length && (length - span + period..length).all(|index| at(index) == at(index - period))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLD: Sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 1 };

    #[test]
    fn the_most_likely_allowed_token_is_chosen() {
        let logits: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let pick = |may: &dyn Fn(u32) -> bool| Sampler::new(COLD).pick(&logits, may);
        assert_eq!(pick(&|_| true), Some(999));
        assert_eq!(pick(&|token| token < 990), Some(989));
        assert_eq!(pick(&|token| token == 3), Some(3));
        assert_eq!(pick(&|_| false), None);
    }

    #[test]
    fn sampling_stays_within_top_p_and_is_reproducible() {
        let logits = [0.0, 5.0, 5.0, -20.0];
        let sampling = Sampling { temperature: 1.0, top_p: 0.9, seed: 7 };
        let draw = || {
            let mut sampler = Sampler::new(sampling);
            (0..50).map(|_| sampler.pick(&logits, |_| true)).collect::<Vec<_>>()
        };
        let drawn = draw();
        assert!(drawn.contains(&Some(1)) && drawn.contains(&Some(2)));
        assert!(!drawn.contains(&Some(3)));
        assert_eq!(drawn, draw());
    }

    #[test]
    fn repetition_is_detected() {
        let circle: Vec<u32> = (0..200).map(|i| i % 5).collect();
        assert!(would_repeat(&circle, 0));
        assert!(!would_repeat(&circle, 4));
        assert!(!would_repeat(&circle[..30], 0));
        assert!(!would_repeat(&(0..200).collect::<Vec<_>>(), 200));
    }
}
