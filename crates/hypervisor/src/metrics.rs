//! The server's counters, in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;

/// A counter that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of the web server.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Responses by status class, 1xx to 5xx.
    responses: [Counter; 5],
    /// Requests refused by a rate limit.
    pub too_many: Counter,
    pub signed_in: Counter,
}

impl Metrics {
    pub(super) fn count_response(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(counter) = self.responses.get(class) {
            counter.add();
        }
        if status == StatusCode::TOO_MANY_REQUESTS {
            self.too_many.add();
        }
    }

    /// Writes all counters.
    pub fn write(&self, text: &mut String) {
        text.push_str("# HELP choir_http_responses_total Responses by status class.\n");
        text.push_str("# TYPE choir_http_responses_total counter\n");
        for (class, counter) in (1..).zip(&self.responses) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "choir_http_responses_total{{class=\"{class}xx\"}} {}", counter.get());
        }
        let too_many = "Requests refused by a rate limit.";
        metric(text, "choir_http_too_many_total", "counter", too_many, self.too_many.get());
        metric(text, "choir_sign_ins_total", "counter", "Sessions started.", self.signed_in.get());
    }
}

/// Writes one metric without labels.
pub fn metric(text: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
}
