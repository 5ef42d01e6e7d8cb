//! Which token comes next: the likeliest that may follow, or with a temperature one of the likely.

use std::cmp::Ordering;

/// How much is left to chance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sampling {
    /// Zero for always the likeliest.
    pub(crate) temperature: f32,
    pub(crate) top_p: f32,
    pub(crate) seed: u64,
}

/// How many of the likeliest tokens are looked at first, and drawn from.
const LIKELY: usize = 64;
/// A text that repeats itself this often over this many tokens is stuck.
const CIRCLES: usize = 6;
const SHORTEST: usize = 48;
const LONGEST_CIRCLE: usize = 40;

#[derive(Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    state: u64,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Self {
        Self { sampling, state: sampling.seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    /// The next token among those that may follow.
    pub(crate) fn pick(&mut self, weights: &[f32], may_follow: impl Fn(u32) -> bool) -> Option<u32> {
        if self.sampling.temperature <= 0.0 {
            let best = (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]))? as u32;
            if may_follow(best) {
                return Some(best);
            }
        }
        let mut order: Vec<u32> = (0..weights.len() as u32).collect();
        let by_weight = |a: &u32, b: &u32| weights[*b as usize].total_cmp(&weights[*a as usize]);
        if order.len() > LIKELY {
            order.select_nth_unstable_by(LIKELY, by_weight);
            order[..LIKELY].sort_unstable_by(by_weight);
        } else {
            order.sort_unstable_by(by_weight);
        }
        let (likely, rest) = order.split_at_mut(LIKELY.min(weights.len()));
        let likely = likely.iter().copied().filter(|token| may_follow(*token));
        if self.sampling.temperature <= 0.0 {
            let mut likely = likely;
            if let Some(token) = likely.next() {
                return Some(token);
            }
        } else {
            let likely: Vec<u32> = likely.collect();
            if !likely.is_empty() {
                return self.draw(&likely, weights);
            }
        }
        rest.sort_unstable_by(by_weight);
        rest.iter().copied().find(|token| may_follow(*token))
    }

    /// One of these, the likeliest first, by chance.
    fn draw(&mut self, tokens: &[u32], weights: &[f32]) -> Option<u32> {
        let first = weights[*tokens.first()? as usize];
        let share =
            |token: &u32| f64::from((weights[*token as usize] - first) / self.sampling.temperature).exp();
        let shares: Vec<f64> = tokens.iter().map(share).collect();
        let all: f64 = shares.iter().sum();
        let mut kept = 0.0;
        let within = shares.iter().position(|share| {
            kept += share;
            kept >= all * f64::from(self.sampling.top_p)
        });
        let count = within.map_or(shares.len(), |last| last + 1);
        let mut left = self.chance() * shares[..count].iter().sum::<f64>();
        let drawn = shares[..count].iter().position(|share| {
            left -= share;
            left.partial_cmp(&0.0) != Some(Ordering::Greater)
        });
        tokens.get(drawn.unwrap_or(count - 1)).copied()
    }

    /// A number from 0 to 1; the same ones for the same seed.
    fn chance(&mut self) -> f64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Whether the text would only repeat its end with this token, as small models do once they are lost.
pub(crate) fn goes_in_circles(written: &[u32], next: u32) -> bool {
    let length = written.len() + 1;
    let at = |index: usize| if index == written.len() { next } else { written[index] };
    (1..=LONGEST_CIRCLE).any(|circle| {
        let span = (circle * CIRCLES).max(SHORTEST);
        span <= length && (length - span + circle..length).all(|index| at(index) == at(index - circle))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLD: Sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 1 };

    #[test]
    fn the_likeliest_that_may_follow_is_taken() {
        let weights: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let pick = |may: &dyn Fn(u32) -> bool| Sampler::new(COLD).pick(&weights, may);
        assert_eq!(pick(&|_| true), Some(999));
        assert_eq!(pick(&|token| token < 990), Some(989));
        assert_eq!(pick(&|token| token == 3), Some(3));
        assert_eq!(pick(&|_| false), None);
    }

    #[test]
    fn chance_stays_among_the_likely_and_comes_again_with_its_seed() {
        let weights = [0.0, 5.0, 5.0, -20.0];
        let sampling = Sampling { temperature: 1.0, top_p: 0.9, seed: 7 };
        let draw = || {
            let mut sampler = Sampler::new(sampling);
            (0..50).map(|_| sampler.pick(&weights, |_| true)).collect::<Vec<_>>()
        };
        let drawn = draw();
        assert!(drawn.contains(&Some(1)) && drawn.contains(&Some(2)));
        assert!(!drawn.contains(&Some(3)));
        assert_eq!(drawn, draw());
    }

    #[test]
    fn a_text_that_only_repeats_itself_is_noticed() {
        let circle: Vec<u32> = (0..200).map(|i| i % 5).collect();
        assert!(goes_in_circles(&circle, 0));
        assert!(!goes_in_circles(&circle, 4));
        assert!(!goes_in_circles(&circle[..30], 0));
        assert!(!goes_in_circles(&(0..200).collect::<Vec<_>>(), 200));
    }
}
