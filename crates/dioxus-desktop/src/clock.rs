//! Times and sizes for people, in the browser's own time zone.

use js_sys::Date;
use shared_types::Timestamp;
use wasm_bindgen::JsValue;

const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

fn date(ts: Timestamp) -> Date {
    Date::new(&JsValue::from_f64(ts.millis() as f64))
}

fn name<'a>(names: &[&'a str], index: u32) -> &'a str {
    names.get(index as usize).copied().unwrap_or_default()
}

/// `14:32`
pub(crate) fn time(ts: Timestamp) -> String {
    let date = date(ts);
    format!("{:02}:{:02}", date.get_hours(), date.get_minutes())
}

/// `Sun 15 Nov`
pub(crate) fn day(ts: Timestamp) -> String {
    let date = date(ts);
    format!("{} {} {}", name(&DAYS, date.get_day()), date.get_date(), name(&MONTHS, date.get_month()))
}

/// The time today, the day this year, else the full date.
pub(crate) fn when(ts: Timestamp) -> String {
    let (then, now) = (date(ts), Date::new_0());
    if then.get_full_year() != now.get_full_year() {
        return format!("{} {} {}", then.get_date(), name(&MONTHS, then.get_month()), then.get_full_year());
    }
    if then.get_month() == now.get_month() && then.get_date() == now.get_date() {
        return time(ts);
    }
    format!("{} {}", then.get_date(), name(&MONTHS, then.get_month()))
}

/// Day and time.
pub(crate) fn full(ts: Timestamp) -> String {
    format!("{}, {}", day(ts), time(ts))
}

/// `4.1 MB`
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.5 && unit < UNITS.len() - 1 {
        value /= 1000.0;
        unit += 1;
    }
    if value < 10.0 { format!("{value:.1} {}", UNITS[unit]) } else { format!("{value:.0} {}", UNITS[unit]) }
}

/// `1,284`
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}
