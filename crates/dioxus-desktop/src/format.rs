//! Runs, agents, models and budgets as a person reads them.

use shared_types::Taint;
use shared_types::payload::run::Budget;
use shared_types::wire::{AgentState, ModelLine, RunCost, RunState};

use crate::words;

/// `$0.31`, from millionths.
pub(crate) fn money(micros: u64) -> String {
    match micros {
        0 => "$0".into(),
        1..10_000 => words::runs::UNDER_A_CENT.into(),
        _ => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

/// `12.3k`
pub(crate) fn short(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{}.{}k", n / 1000, n % 1000 / 100),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

/// Tokens and money in a line.
pub(crate) fn cost(of: &RunCost) -> String {
    let mut out = if of.tokens == 0 { String::new() } else { words::runs::tokens(&short(of.tokens)) };
    if of.micros > 0 {
        if !out.is_empty() {
            out.push_str(" · ");
        }
        out.push_str(&money(of.micros));
    }
    out
}

/// `4 s`, `6:12`, `1:02:00`
pub(crate) fn duration(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

/// The word for the state of a run, and its class.
pub(crate) fn run_state(of: RunState) -> (&'static str, &'static str) {
    match of {
        RunState::Running => (words::runs::WORKING, "chip run"),
        RunState::Waiting => (words::runs::WAITING, "chip warn"),
        RunState::Paused => (words::runs::PAUSED, "chip warn"),
        RunState::Cancelled => (words::runs::STOPPED, "chip"),
        RunState::Failed => (words::FAILED, "chip bad"),
        RunState::Completed => (words::runs::DONE, "chip ok"),
    }
}

/// The word for the state of an agent, and its class. No agent works in a run that is paused.
pub(crate) fn agent_state(of: AgentState, is_paused: bool) -> (&'static str, &'static str) {
    run_state(match of {
        AgentState::Working if is_paused => RunState::Paused,
        AgentState::Working => RunState::Running,
        AgentState::Done => RunState::Completed,
        AgentState::Failed => RunState::Failed,
        AgentState::Cancelled => RunState::Cancelled,
    })
}

/// The icon of a role.
pub(crate) fn role_icon(role: &str) -> &'static str {
    match role {
        "conductor" => "activity",
        "writer" => "feather",
        "researcher" => "search",
        "terminal" => "square-terminal",
        _ => "sparkles",
    }
}

/// A role as a name.
pub(crate) fn role_name(role: &str) -> String {
    let mut name = role.to_owned();
    if let Some(first) = name.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    name
}

/// The origins of untrusted text; empty if there is none.
pub(crate) fn origins(taint: &[Taint]) -> String {
    let names = taint.iter().map(|label| match label {
        web if *web == Taint::WEB => words::runs::FROM_WEB,
        import if *import == Taint::IMPORT => words::runs::FROM_IMPORT,
        command if *command == Taint::COMMAND => words::runs::FROM_COMMAND,
        mcp if *mcp == Taint::MCP => words::runs::FROM_MCP,
        other => other.as_str(),
    });
    names.collect::<Vec<_>>().join(", ")
}

/// The price of a model for a million input and output tokens.
pub(crate) fn price(model: &ModelLine) -> String {
    match (model.input_price, model.output_price) {
        (Some(0), Some(0)) => words::runs::FREE.into(),
        (Some(read), Some(written)) => words::runs::price(&money(read), &money(written)),
        (None, _) | (_, None) => words::runs::PRICE_UNKNOWN.into(),
    }
}

/// A budget on one line.
pub(crate) fn budget(budget: &Budget) -> String {
    let parts = [
        budget.micros.map(money),
        budget.seconds.map(|n| duration(n * 1000)),
        budget.tokens.map(|n| words::runs::tokens(&short(n))),
        budget.steps.map(words::steps),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { words::runs::NO_LIMIT.into() } else { parts.join(" · ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_and_budgets_are_short() {
        assert_eq!(money(312_345), "$0.31");
        assert_eq!(money(12_000_000), "$12.00");
        assert_eq!(money(900), "under 1¢");
        assert_eq!(short(12_345), "12.3k");
        assert_eq!(duration(372_000), "6:12");
        let taken = RunCost { tokens: 1500, micros: 20_000, ..RunCost::default() };
        assert_eq!(cost(&taken), "1.5k tokens · $0.02");
        assert_eq!(cost(&RunCost::default()), "");
        assert_eq!(budget(&Budget::default()), "no limit");
        let bounds = Budget { micros: Some(1_000_000), seconds: Some(90), ..Budget::default() };
        assert_eq!(budget(&bounds), "$1.00 · 1:30");
    }

    #[test]
    fn origins_of_untrusted_text_have_names() {
        let mail = Taint::parse("mail").unwrap();
        assert_eq!(origins(&[Taint::WEB, mail]), "a web page, mail");
        assert_eq!(origins(&[]), "");
    }
}
