//! Budgets: what a run, a day and one agent of a role may take. What is left empty is not bounded.

use dioxus::prelude::*;
use serde_json::Value;

use crate::apps::runs::share;
use crate::choir::read::{allows, cost, lasted, name, number, object, sign, text};
use crate::desk::desk;
use crate::icons::Icon;

const ROLES: [&str; 4] = ["conductor", "writer", "researcher", "terminal"];

/// What a run may take, all of a day, and one agent.
pub(super) fn budgets(list: &Value) -> Element {
    let desk = desk();
    let (most, today) = (number(&list["daily"], "micros"), number(&list["today"], "micros"));
    let full = share(today, most);
    rsx! {
        p { "Today: " {cost(&list["today"])} if number(&list["today"], "tokens") == 0 { "nothing yet" } }
        if most > 0 {
            div { class: "meter", role: "meter", "aria-label": "Spent today", "aria-valuenow": "{full}", i { class: if full >= 90 { "w" } else { "a" }, width: "{full}%" } }
        }
        h3 { "For each run" }
        Budget { value: list["budget"].clone(), verb: "Keep", onset: move |value| desk.set("runs.budget", value) }
        h3 { "For a day" }
        Budget { value: list["daily"].clone(), verb: "Keep", onset: move |value| desk.set("runs.daily", value) }
        h3 { "For one agent" }
        p { class: "quiet", "What one agent of a role may take in a run, within what the run has. At its bound the run pauses; going on gives the agent as much again. Minutes are counted while its model answers and its calls run." }
        div { class: "bounds",
            for role in ROLES { OfRole { key: "{role}", role } }
        }
        h3 { "Before what cannot be undone" }
        {outbox()}
    }
}

/// For how long, in seconds, a call can be called off; the second where nobody has said anything.
const HOLDS: [u64; 5] = [0, 5, 15, 60, 300];

fn outbox() -> Element {
    let desk = desk();
    let now = desk.setting("runs.outbox").and_then(|value| value.as_u64()).unwrap_or(HOLDS[1]);
    rsx! {
        p { class: "quiet", "Commands with the network, and tools of others that do more than read, lie in the outbox for so long. Until then you can call them off." }
        select { "aria-label": "How long calls wait in the outbox", onchange: move |e| desk.set("runs.outbox", e.value().parse::<u64>().ok().into()),
            if !HOLDS.contains(&now) { option { value: "{now}", selected: true, {lasted(now * 1000)} } }
            for seconds in HOLDS { option { key: "{seconds}", value: "{seconds}", selected: seconds == now, {lasted(seconds * 1000)} } }
        }
    }
}

/// What one agent of a role may take; it opens to be changed.
#[component]
fn OfRole(role: &'static str) -> Element {
    let desk = desk();
    let setting = format!("runs.agent.{role}");
    let value = desk.setting(&setting).unwrap_or_default();
    rsx! {
        details {
            summary {
                Icon { name: sign(role) }
                b { {name(role)} }
                small { {allows(&value)} }
                Icon { name: "chevron-down" }
            }
            Budget { value, verb: "Keep", onset: move |value| desk.set(&setting, value) }
        }
    }
}

/// A bound: its name, its field, and how many of what is stored make one of what is shown.
type Bound = (&'static str, &'static str, u64);

const BOUNDS: [Bound; 4] = [
    ("Dollars", "micros", 10_000),
    ("Minutes", "seconds", 60),
    ("Thousand tokens", "tokens", 1000),
    ("Steps", "steps", 1),
];

/// Four bounds to fill in.
#[component]
pub(crate) fn Budget(value: Value, verb: &'static str, onset: EventHandler<Value>) -> Element {
    // As it is typed, by field.
    let mut typed = use_signal(|| object(&[]));
    let mut wrong = use_signal(|| "");
    let shown = |(_, key, unit): Bound| match typed.read().get(key).and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => value.get(key).and_then(Value::as_u64).map(|n| in_units(n, key, unit)).unwrap_or_default(),
    };
    let current = value.clone();
    let keep = move |event: FormEvent| {
        event.prevent_default();
        let kept = changed(&current, &typed.peek());
        match kept {
            Ok(next) => {
                wrong.set("");
                typed.set(object(&[]));
                onset.call(next);
            }
            Err(key) => wrong.set(key),
        }
    };
    rsx! {
        form { class: "line budget", onsubmit: keep,
            for (label, key, unit) in BOUNDS {
                label { "{label}"
                    input { class: "field", inputmode: "decimal", placeholder: "no limit", value: shown((label, key, unit)),
                        "aria-invalid": (wrong() == key).then_some("true"),
                        oninput: move |e| if let Some(fields) = typed.write().as_object_mut() { fields.insert(key.to_owned(), e.value().into()); },
                    }
                }
            }
            button { class: if verb == "Keep" { "btn" } else { "btn pri" }, r#type: "submit", "{verb}" }
            if let Some((label, ..)) = BOUNDS.iter().find(|(_, key, _)| *key == wrong()) {
                small { class: "wrong", role: "alert", "{label}: that is no number, so nothing was changed. Leave it empty for no limit." }
            } else {
                small { class: "quiet", "Now: " {allows(&value)} }
            }
        }
    }
}

/// A stored number as it is shown.
fn in_units(n: u64, key: &str, unit: u64) -> String {
    if key == "micros" {
        format!("{}.{:02}", n / unit / 100, n / unit % 100)
    } else {
        n.div_ceil(unit).to_string()
    }
}

/// A budget with what was typed in its place, or the field that holds no number.
fn changed(current: &Value, typed: &Value) -> Result<Value, &'static str> {
    let mut next = if current.is_object() { current.clone() } else { object(&[]) };
    for (_, key, unit) in BOUNDS {
        let (Some(fields), true) = (next.as_object_mut(), typed.get(key).is_some()) else { continue };
        let words = text(typed, key).trim();
        let n = if key == "micros" { cents(words) } else { words.parse::<u64>().ok() };
        match n {
            Some(n) => drop(fields.insert(key.to_owned(), n.saturating_mul(unit).into())),
            None if words.is_empty() => drop(fields.remove(key)),
            None => return Err(key),
        }
    }
    Ok(next)
}

/// `1.5` as 150.
fn cents(text: &str) -> Option<u64> {
    let (whole, part) = text.trim().split_once(['.', ',']).unwrap_or((text.trim(), ""));
    let part: String = part.chars().chain("00".chars()).take(2).collect();
    let whole = if whole.is_empty() { 0 } else { whole.parse::<u64>().ok()? };
    whole.checked_mul(100)?.checked_add(part.parse().ok()?).filter(|_| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn dollars_are_read_as_people_write_them() {
        assert_eq!(cents("1.5"), Some(150));
        assert_eq!(cents("1,25"), Some(125));
        assert_eq!(cents(".5"), Some(50));
        assert_eq!(cents("20"), Some(2000));
        assert_eq!(cents(" "), None);
        assert_eq!(cents("x"), None);
    }

    #[test]
    fn what_is_typed_replaces_its_bound_and_what_is_no_number_changes_nothing() {
        let current = json!({ "steps": 20, "seconds": 90 });
        let next = changed(&current, &json!({ "steps": " 30 ", "micros": "1.5", "seconds": "" }));
        assert_eq!(next, Ok(json!({ "steps": 30, "micros": 1_500_000 })));
        assert_eq!(changed(&Value::Null, &json!({ "tokens": "5" })), Ok(json!({ "tokens": 5000 })));
        assert_eq!(changed(&current, &json!({ "steps": "2o" })), Err("steps"));
        assert_eq!(
            (in_units(1_500_000, "micros", 10_000), in_units(90, "seconds", 60)),
            ("1.50".into(), "2".into())
        );
    }
}
