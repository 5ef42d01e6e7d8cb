//! Statistics over measurements.

use std::time::{Duration, Instant};

/// The median.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// The 99th percentile.
pub(super) fn p99_ms(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    let index = (times.len() * 99).div_ceil(100).saturating_sub(1);
    times.get(index).copied().map_or(f64::NAN, milliseconds)
}

pub(super) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A result with the time it took.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Rounds to meaningful digits: whole numbers from a thousand on, three decimals below ten.
pub(super) fn rounded(value: f64) -> f64 {
    let unit = match value.abs() {
        v if v >= 1000.0 => 1.0,
        v if v >= 10.0 => 10.0,
        _ => 1000.0,
    };
    (value * unit).round() / unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_percentiles_are_taken_from_sorted_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        let times = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(p99_ms(times), 198.0);
        assert_eq!(p99_ms(vec![Duration::from_millis(7)]), 7.0);
    }

    #[test]
    fn figures_keep_the_digits_that_mean_something() {
        assert_eq!(rounded(41_234.56), 41_235.0);
        assert_eq!(rounded(12.345), 12.3);
        assert_eq!(rounded(0.98765), 0.988);
    }
}
