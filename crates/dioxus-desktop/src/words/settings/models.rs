//! Settings, Models: keys, the local model, roles, budgets, permissions.

use crate::clock;

pub(crate) const ABOUT: &str = "Which models answer, with whose keys, and what they may spend. A key is kept encrypted on this computer; no agent, cell or log ever sees it.";
pub(crate) const KEYS: &str = "Keys";
pub(crate) const ROLES: &str = "Roles";
pub(crate) const MODELS: &str = "Models";
pub(crate) const BUDGETS: &str = "Budgets";
pub(crate) const PERMISSIONS: &str = "Permissions";

// Keys.
pub(crate) const NO_KEY: &str = "no key";
pub(crate) const KEY_UNREADABLE: &str = "it can no longer be opened: set it again";
pub(crate) const SET_KEY: &str = "Set a key";
pub(crate) const REPLACE_KEY: &str = "Replace";
pub(crate) const KEY: &str = "Key";
pub(crate) const FOR_EVERYBODY: &str = "for everybody on this computer";
pub(crate) const KEY_KEPT: &str = "Key kept";
pub(crate) const KEY_CLEARED: &str = "Key cleared";

// Providers by the names that they give themselves.
pub(crate) const OPENAI: &str = "OpenAI";
pub(crate) const ZAI: &str = "Z.ai";
pub(crate) const BEDROCK: &str = "Amazon Bedrock";
pub(crate) const MOONSHOT: &str = "Kimi (Moonshot)";
pub(crate) const SEARXNG: &str = "SearXNG";
pub(crate) const THIS_MACHINE: &str = "This machine";

/// When a key was set, after a hint of it.
pub(crate) fn key_set(hint: Option<&str>, set: &str, for_everybody: bool) -> String {
    let hint = hint.map(|hint| format!("…{hint} · ")).unwrap_or_default();
    let shared = if for_everybody { " · for everybody here" } else { "" };
    format!("{hint}set {set}{shared}")
}

pub(crate) fn clear_key(provider: &str) -> String {
    format!("Clear the key of {provider}")
}

pub(crate) fn key_of(provider: &str) -> String {
    format!("Key of {provider}")
}

// The model of this machine.
pub(crate) const ON_THIS_MACHINE: &str = "On this machine";
pub(crate) const DOWNLOAD: &str = "Download";
pub(crate) const DECLINE: &str = "Decline";
pub(crate) const NOT_TIMED: &str = "Not timed on this machine yet.";

/// `reason` comes from the server.
pub(crate) fn cannot_run(reason: &str) -> String {
    format!("The local model cannot run: {reason}")
}

pub(crate) fn fetched_of(here: u64, all: u64) -> String {
    format!("{} of {}", clock::size(here), clock::size(all))
}

pub(crate) fn to_be_fetched(bytes: u64) -> String {
    format!(
        "Runs on this machine, needs no key and costs nothing; it is slow and works alone. To have it, {} are downloaded once and checked.",
        clock::size(bytes)
    )
}

pub(crate) fn fetch(bytes: u64) -> String {
    format!("Fetch {}", clock::size(bytes))
}

/// Tokens in a second.
pub(crate) fn speed(read: u64, written: u64) -> String {
    format!("Measured here: reads {read} and writes {written} tokens in a second.")
}

// Roles and models.
pub(crate) const NO_MODEL: &str = "no model can answer for it now";
pub(crate) const NOT_READY: &str = " (not ready)";
pub(crate) const ASKING: &str = "Asking…";
pub(crate) const ANSWERED: &str = "Answered";
pub(crate) const DID_NOT_ANSWER: &str = "Did not answer";

pub(crate) fn model_for(role: &str) -> String {
    format!("Model for the {role}")
}

pub(crate) fn gets_for_now(model: &str) -> String {
    format!("gets {model} for now")
}

pub(crate) fn about_model(provider: &str, price: &str, context: &str) -> String {
    format!("{provider} · {price} · {context} context")
}

pub(crate) fn tried(ok: bool, millis: u64, said: &str, cost: &str) -> String {
    let outcome = if ok { ANSWERED } else { DID_NOT_ANSWER };
    format!("{outcome} in {millis} ms. {said} {cost}")
}

// Budgets.
pub(crate) const TODAY: &str = "Today: ";
pub(crate) const NOTHING_YET: &str = "nothing yet";
pub(crate) const SPENT_TODAY: &str = "Spent today";
pub(crate) const FOR_EACH_RUN: &str = "For each run";
pub(crate) const FOR_A_DAY: &str = "For a day";
pub(crate) const FOR_ONE_AGENT: &str = "For one agent";
pub(crate) const FOR_ONE_AGENT_ABOUT: &str = "The budget of one agent of a role in a run, within the budget of the run. At its limit the run pauses; resuming grants the agent the same amount again. Minutes are counted while its model answers and its calls run.";
pub(crate) const DOLLARS: &str = "Dollars";
pub(crate) const MINUTES: &str = "Minutes";
pub(crate) const THOUSAND_TOKENS: &str = "Thousand tokens";
pub(crate) const STEPS: &str = "Steps";
pub(crate) const NO_LIMIT: &str = "no limit";

pub(crate) fn not_a_number(bound: &str) -> String {
    format!("{bound}: that is no number, so nothing was changed. Leave it empty for no limit.")
}

pub(crate) fn budget_now(budget: &str) -> String {
    format!("Now: {budget}")
}

// The outbox.
pub(crate) const OUTBOX: &str = "Before what cannot be undone";
pub(crate) const OUTBOX_ABOUT: &str = "Commands with the network, and MCP tools that do more than read, wait in the outbox for this long. Until then you can call them off.";
pub(crate) const OUTBOX_TIME: &str = "How long calls wait in the outbox";

// Permissions.
pub(crate) const PERMISSIONS_ABOUT: &str =
    "What you allowed for a run or always. Everything else is asked about again.";
pub(crate) const NO_PERMISSIONS: &str = "There is none.";
pub(crate) const PERMISSION_REVOKED: &str = "Permission revoked";

pub(crate) fn granted_always(tool: &str) -> String {
    format!("{tool} · always")
}

pub(crate) fn granted_in_run(tool: &str) -> String {
    format!("{tool} · in one run")
}
