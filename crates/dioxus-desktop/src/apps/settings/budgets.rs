//! Budgets: what a run, a day and one agent of a role may take. What is left empty is not bounded.

use dioxus::prelude::*;
use serde_json::Value;
use shared_types::payload::run::Budget;
use shared_types::wire::ModelList;

use crate::apps::runs::share;
use crate::dom;
use crate::format::{budget, cost, duration, role_icon, role_name};
use crate::icons::Icon;
use crate::state::app_state;
use crate::words;

const ROLES: [&str; 4] = ["conductor", "writer", "researcher", "terminal"];

/// Keeps a budget as a setting.
fn keep(key: &str, value: Budget) {
    match serde_json::to_value(value) {
        Ok(value) => app_state().set(key, without_nulls(value)),
        Err(error) => dom::warn(&format!("{key}: {error}")),
    }
}

/// Bounds that are not set are left out of a setting.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            other
        }
    }
}

/// What a run may take, all of a day, and one agent.
pub(super) fn budgets(list: &ModelList) -> Element {
    let (most, today) = (list.daily.micros.unwrap_or_default(), list.today.micros);
    let full = share(today, most);
    rsx! {
        p { {words::settings::models::TODAY} {cost(&list.today)} if list.today.tokens == 0 { {words::settings::models::NOTHING_YET} } }
        if most > 0 {
            div { class: "meter", role: "meter", "aria-label": words::settings::models::SPENT_TODAY, "aria-valuenow": "{full}", i { class: if full >= 90 { "w" } else { "a" }, width: "{full}%" } }
        }
        h3 { {words::settings::models::FOR_EACH_RUN} }
        BudgetForm { value: list.budget, verb: words::settings::KEEP, onset: move |value| keep("runs.budget", value) }
        h3 { {words::settings::models::FOR_A_DAY} }
        BudgetForm { value: list.daily, verb: words::settings::KEEP, onset: move |value| keep("runs.daily", value) }
        h3 { {words::settings::models::FOR_ONE_AGENT} }
        p { class: "quiet", {words::settings::models::FOR_ONE_AGENT_ABOUT} }
        div { class: "bounds",
            for role in ROLES { OfRole { key: "{role}", role } }
        }
        h3 { {words::settings::models::OUTBOX} }
        {outbox()}
    }
}

/// For how many seconds a call can be called off. The second is the default.
const HOLDS: [u64; 5] = [0, 5, 15, 60, 300];

fn outbox() -> Element {
    let app_state = app_state();
    let now = app_state.setting_as("runs.outbox").unwrap_or(HOLDS[1]);
    rsx! {
        p { class: "quiet", {words::settings::models::OUTBOX_ABOUT} }
        select { "aria-label": words::settings::models::OUTBOX_TIME, onchange: move |e| app_state.set("runs.outbox", e.value().parse::<u64>().ok().into()),
            if !HOLDS.contains(&now) { option { value: "{now}", selected: true, {duration(now * 1000)} } }
            for seconds in HOLDS { option { key: "{seconds}", value: "{seconds}", selected: seconds == now, {duration(seconds * 1000)} } }
        }
    }
}

/// What one agent of a role may take; it opens to be changed.
#[component]
fn OfRole(role: &'static str) -> Element {
    let setting = format!("runs.agent.{role}");
    let value: Budget = app_state().setting_as(&setting).unwrap_or_default();
    rsx! {
        details {
            summary {
                Icon { name: role_icon(role) }
                b { {role_name(role)} }
                small { {budget(&value)} }
                Icon { name: "chevron-down" }
            }
            BudgetForm { value, verb: words::settings::KEEP, onset: move |value| keep(&setting, value) }
        }
    }
}

/// One bound of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound {
    Dollars,
    Minutes,
    Tokens,
    Steps,
}

const BOUNDS: [Bound; 4] = [Bound::Dollars, Bound::Minutes, Bound::Tokens, Bound::Steps];

/// What was typed into each field, in the order of [`BOUNDS`].
type Typed = [Option<String>; 4];

impl Bound {
    fn label(self) -> &'static str {
        match self {
            Self::Dollars => words::settings::models::DOLLARS,
            Self::Minutes => words::settings::models::MINUTES,
            Self::Tokens => words::settings::models::THOUSAND_TOKENS,
            Self::Steps => words::settings::models::STEPS,
        }
    }

    fn field(self, budget: &mut Budget) -> &mut Option<u64> {
        match self {
            Self::Dollars => &mut budget.micros,
            Self::Minutes => &mut budget.seconds,
            Self::Tokens => &mut budget.tokens,
            Self::Steps => &mut budget.steps,
        }
    }

    /// A bound as the form shows it.
    fn show(self, mut budget: Budget) -> String {
        let Some(n) = *self.field(&mut budget) else { return String::new() };
        match self {
            Self::Dollars => format!("{}.{:02}", n / 1_000_000, n / 10_000 % 100),
            Self::Minutes => n.div_ceil(60).to_string(),
            Self::Tokens => n.div_ceil(1000).to_string(),
            Self::Steps => n.to_string(),
        }
    }

    /// The number that was typed, in the units of a budget.
    fn parse(self, text: &str) -> Option<u64> {
        let (n, unit) = match self {
            Self::Dollars => (cents(text)?, 10_000),
            Self::Minutes => (text.parse::<u64>().ok()?, 60),
            Self::Tokens => (text.parse::<u64>().ok()?, 1000),
            Self::Steps => (text.parse::<u64>().ok()?, 1),
        };
        Some(n.saturating_mul(unit))
    }
}

/// Four bounds to fill in.
#[component]
pub(crate) fn BudgetForm(
    value: Budget,
    verb: &'static str,
    #[props(default = "btn")] class: &'static str,
    onset: EventHandler<Budget>,
) -> Element {
    let mut typed = use_signal(Typed::default);
    let mut wrong = use_signal(|| None::<Bound>);
    let submit = move |event: FormEvent| {
        event.prevent_default();
        let changed = changed(value, &typed.peek());
        match changed {
            Ok(next) => {
                wrong.set(None);
                typed.set(Typed::default());
                onset.call(next);
            }
            Err(bound) => wrong.set(Some(bound)),
        }
    };
    let shown = |at: usize, bound: Bound| match &typed.read()[at] {
        Some(text) => text.clone(),
        None => bound.show(value),
    };
    rsx! {
        form { class: "line budget", onsubmit: submit,
            for (at, bound) in BOUNDS.into_iter().enumerate() {
                label { {bound.label()}
                    input { class: "field", inputmode: "decimal", placeholder: words::settings::models::NO_LIMIT, value: shown(at, bound),
                        "aria-invalid": (wrong() == Some(bound)).then_some("true"),
                        oninput: move |e| typed.write()[at] = Some(e.value()),
                    }
                }
            }
            button { class, r#type: "submit", "{verb}" }
            if let Some(bound) = wrong() {
                small { class: "wrong", role: "alert", {words::settings::models::not_a_number(bound.label())} }
            } else {
                small { class: "quiet", {words::settings::models::budget_now(&budget(&value))} }
            }
        }
    }
}

/// A budget with what was typed in its place, or the bound whose field holds no number.
fn changed(current: Budget, typed: &Typed) -> Result<Budget, Bound> {
    let mut next = current;
    for (bound, text) in BOUNDS.into_iter().zip(typed) {
        let Some(text) = text.as_deref().map(str::trim) else { continue };
        let n = if text.is_empty() { None } else { Some(bound.parse(text).ok_or(bound)?) };
        *bound.field(&mut next) = n;
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

    fn typed(entries: &[(Bound, &str)]) -> Typed {
        BOUNDS.map(|bound| {
            entries.iter().find(|(other, _)| *other == bound).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn what_is_typed_replaces_its_bound_and_what_is_no_number_changes_nothing() {
        let current = Budget { steps: Some(20), seconds: Some(90), ..Budget::default() };
        let next = changed(
            current,
            &typed(&[(Bound::Steps, " 30 "), (Bound::Dollars, "1.5"), (Bound::Minutes, "")]),
        );
        assert_eq!(next, Ok(Budget { steps: Some(30), micros: Some(1_500_000), ..Budget::default() }));
        let next = changed(Budget::default(), &typed(&[(Bound::Tokens, "5")]));
        assert_eq!(next, Ok(Budget { tokens: Some(5000), ..Budget::default() }));
        assert_eq!(changed(current, &typed(&[(Bound::Steps, "2o")])), Err(Bound::Steps));
        let shown = Budget { micros: Some(1_500_000), ..current };
        assert_eq!((Bound::Dollars.show(shown), Bound::Minutes.show(shown)), ("1.50".into(), "2".into()));
    }
}
