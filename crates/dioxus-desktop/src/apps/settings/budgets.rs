//! Budgets of a run, of a day and of one agent of a role. An empty field means no limit.

use dioxus::prelude::*;
use serde_json::Value;
use shared_types::payload::run::Budget;
use shared_types::wire::ModelList;

use crate::api;
use crate::apps::runs::share;
use crate::format::{budget, cost, duration, role_icon, role_name};
use crate::icons::Icon;
use crate::state::app_state;
use crate::words;

const ROLES: [&str; 4] = ["conductor", "writer", "researcher", "terminal"];

/// Saves a budget as a setting.
fn save(key: &str, value: Budget) {
    match serde_json::to_value(value) {
        Ok(value) => app_state().set(key, without_nulls(value)),
        Err(error) => app_state().report_unreadable(&api::unreadable(&format!("{key}: {error}"))),
    }
}

/// Limits that are not set are left out of a setting.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            other
        }
    }
}

/// The forms for all budgets, and today's spending.
pub(super) fn budgets(list: &ModelList) -> Element {
    let (most, today) = (list.daily.micros.unwrap_or_default(), list.today.micros);
    let full = share(today, most);
    rsx! {
        p { {words::settings::models::TODAY} {cost(&list.today)} if list.today.tokens == 0 { {words::settings::models::NOTHING_YET} } }
        if most > 0 {
            div { class: "meter", role: "meter", "aria-label": words::settings::models::SPENT_TODAY, "aria-valuenow": "{full}", i { class: if full >= 90 { "w" } else { "a" }, width: "{full}%" } }
        }
        h3 { {words::settings::models::FOR_EACH_RUN} }
        BudgetForm { value: list.budget, verb: words::settings::KEEP, onset: move |value| save("runs.budget", value) }
        h3 { {words::settings::models::FOR_A_DAY} }
        BudgetForm { value: list.daily, verb: words::settings::KEEP, onset: move |value| save("runs.daily", value) }
        h3 { {words::settings::models::FOR_ONE_AGENT} }
        p { class: "quiet", {words::settings::models::FOR_ONE_AGENT_ABOUT} }
        div { class: "bounds",
            for role in ROLES { RoleBudget { key: "{role}", role } }
        }
        h3 { {words::settings::models::OUTBOX} }
        {outbox()}
    }
}

/// Seconds that a call can wait in the outbox, where it can be cancelled. The second is the default.
const OUTBOX_SECONDS: [u64; 5] = [0, 5, 15, 60, 300];

fn outbox() -> Element {
    let app_state = app_state();
    let now = app_state.setting_as("runs.outbox").unwrap_or(OUTBOX_SECONDS[1]);
    rsx! {
        p { class: "quiet", {words::settings::models::OUTBOX_ABOUT} }
        select { "aria-label": words::settings::models::OUTBOX_TIME, onchange: move |e| {
                if let Some(Some(seconds)) = app_state.read_choice::<u64>(&e.value()) {
                    app_state.set("runs.outbox", seconds.into());
                }
            },
            if !OUTBOX_SECONDS.contains(&now) { option { value: "{now}", selected: true, {duration(now * 1000)} } }
            for seconds in OUTBOX_SECONDS { option { key: "{seconds}", value: "{seconds}", selected: seconds == now, {duration(seconds * 1000)} } }
        }
    }
}

/// The budget of one agent of a role; it opens to be changed.
#[component]
fn RoleBudget(role: &'static str) -> Element {
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
            BudgetForm { value, verb: words::settings::KEEP, onset: move |value| save(&setting, value) }
        }
    }
}

/// One limit of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BudgetLimit {
    Dollars,
    Minutes,
    Tokens,
    Steps,
}

const BUDGET_LIMITS: [BudgetLimit; 4] =
    [BudgetLimit::Dollars, BudgetLimit::Minutes, BudgetLimit::Tokens, BudgetLimit::Steps];

/// The text of each changed field, in the order of [`BUDGET_LIMITS`].
type Typed = [Option<String>; 4];

impl BudgetLimit {
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

    /// A limit as the form shows it.
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

/// A form with the four limits.
#[component]
pub(crate) fn BudgetForm(
    value: Budget,
    verb: &'static str,
    #[props(default = "btn")] class: &'static str,
    onset: EventHandler<Budget>,
) -> Element {
    let mut typed = use_signal(Typed::default);
    let mut wrong = use_signal(|| None::<BudgetLimit>);
    let submit = move |event: FormEvent| {
        event.prevent_default();
        let changed = changed(value, &typed.peek());
        match changed {
            Ok(next) => {
                wrong.set(None);
                typed.set(Typed::default());
                onset.call(next);
            }
            Err(limit) => wrong.set(Some(limit)),
        }
    };
    let shown = |at: usize, limit: BudgetLimit| match &typed.read()[at] {
        Some(text) => text.clone(),
        None => limit.show(value),
    };
    rsx! {
        form { class: "line budget", onsubmit: submit,
            for (at, limit) in BUDGET_LIMITS.into_iter().enumerate() {
                label { {limit.label()}
                    input { class: "field", inputmode: "decimal", placeholder: words::settings::models::NO_LIMIT, value: shown(at, limit),
                        "aria-invalid": (wrong() == Some(limit)).then_some("true"),
                        oninput: move |e| typed.write()[at] = Some(e.value()),
                    }
                }
            }
            button { class, r#type: "submit", "{verb}" }
            if let Some(limit) = wrong() {
                small { class: "wrong", role: "alert", {words::settings::models::not_a_number(limit.label())} }
            } else {
                small { class: "quiet", {words::settings::models::budget_now(&budget(&value))} }
            }
        }
    }
}

/// The budget with the limits that were typed, or the limit whose field has no number.
fn changed(current: Budget, typed: &Typed) -> Result<Budget, BudgetLimit> {
    let mut next = current;
    for (limit, text) in BUDGET_LIMITS.into_iter().zip(typed) {
        let Some(text) = text.as_deref().map(str::trim) else { continue };
        let n = if text.is_empty() { None } else { Some(limit.parse(text).ok_or(limit)?) };
        *limit.field(&mut next) = n;
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

    fn typed(entries: &[(BudgetLimit, &str)]) -> Typed {
        BUDGET_LIMITS.map(|limit| {
            entries.iter().find(|(other, _)| *other == limit).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn what_is_typed_replaces_its_bound_and_what_is_no_number_changes_nothing() {
        let current = Budget { steps: Some(20), seconds: Some(90), ..Budget::default() };
        let next = changed(
            current,
            &typed(&[
                (BudgetLimit::Steps, " 30 "),
                (BudgetLimit::Dollars, "1.5"),
                (BudgetLimit::Minutes, ""),
            ]),
        );
        assert_eq!(next, Ok(Budget { steps: Some(30), micros: Some(1_500_000), ..Budget::default() }));
        let next = changed(Budget::default(), &typed(&[(BudgetLimit::Tokens, "5")]));
        assert_eq!(next, Ok(Budget { tokens: Some(5000), ..Budget::default() }));
        assert_eq!(changed(current, &typed(&[(BudgetLimit::Steps, "2o")])), Err(BudgetLimit::Steps));
        let shown = Budget { micros: Some(1_500_000), ..current };
        assert_eq!(
            (BudgetLimit::Dollars.show(shown), BudgetLimit::Minutes.show(shown)),
            ("1.50".into(), "2".into())
        );
    }
}
