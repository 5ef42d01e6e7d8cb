//! Parses the delay that a provider asks for after a rate limit.

use std::time::{Duration, SystemTime};

use jiff::{Timestamp, fmt::rfc2822};
use reqwest::header::HeaderMap;

/// From `retry-after-ms` or `retry-after`, which is a number of seconds or a date.
pub(super) fn from_headers(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let millis =
        text("retry-after-ms").and_then(|text| text.parse::<f64>().ok()).map(|millis| millis / 1000.0);
    let after = text("retry-after");
    let seconds = millis.or_else(|| after.and_then(|text| text.parse().ok()));
    match (seconds, after) {
        (Some(seconds), _) => Duration::try_from_secs_f64(seconds).ok(),
        (None, Some(date)) => until(date, now),
        (None, None) => None,
    }
}

fn until(date: &str, now: SystemTime) -> Option<Duration> {
    let then = rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    let now = Timestamp::try_from(now).ok()?;
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_milliseconds_and_dates_are_understood() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_420); // Wed, 21 Oct 2015 07:27:00 GMT
        let cases = [
            ("retry-after", "7", Some(Duration::from_secs(7))),
            ("retry-after", "0.5", Some(Duration::from_millis(500))),
            ("retry-after-ms", "250", Some(Duration::from_millis(250))),
            ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", Some(Duration::from_secs(60))),
            ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT", Some(Duration::ZERO)),
            ("retry-after", "soon", None),
            ("retry-after", "-3", None),
            ("x-other", "3", None),
        ];
        for (name, value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(from_headers(&headers, now), expected, "{name}: {value}");
        }
    }
}
