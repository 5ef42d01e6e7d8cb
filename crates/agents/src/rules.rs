//! What agents may do, as data: the first rule that fits decides, and a grant of the person's turns "ask" into "allow".
//!
//! The rules come with examples of what they must lead to; rules whose examples fail are not loaded.

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use serde_json::Value;
use shared_types::payload::capability::Grant;
use shared_types::{FilePath, RunId, Taint};
use thiserror::Error;

use crate::roles::{self, ROLES};
use crate::toolbox::{ExternalTool, PREFIX};
use crate::tools::{TOOLS, ToolKind, ParsedCall, normalized_host};

/// The rules that hold where the person wrote no others.
const BUILT_IN: &str = include_str!("rules.toml");

/// Why rules are not loaded.
#[derive(Debug, Error)]
pub enum RulesError {
    #[error("the rules cannot be read: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("rule {rule}: {pattern:?} is not a pattern: {source}")]
    Pattern { rule: usize, pattern: String, source: globset::Error },
    #[error("rule {rule}: {name:?} is no {what}")]
    Name { rule: usize, what: &'static str, name: String },
    #[error("example {example}: {reason}")]
    Example { example: usize, reason: String },
}

/// What is done about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// The person decides; with what a lasting grant would cover.
    Ask {
        why: String,
        pattern: String,
    },
    Deny {
        why: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Then {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    /// Tools that it is about; all, if there is none.
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    roles: Vec<String>,
    /// Patterns of paths, hosts, lines of shell, or tools of servers; anything, if there is none.
    #[serde(default)]
    targets: Vec<String>,
    /// Patterns of hosts. What allows speaks of calls that go to such hosts only, anything else of those that go to one.
    #[serde(default)]
    hosts: Vec<String>,
    /// Only calls that reach the outside, or only those that do not.
    network: Option<bool>,
    /// Only where the agent has read untrusted words, or only where not.
    tainted: Option<bool>,
    then: Then,
    #[serde(default)]
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    role: String,
    tool: String,
    input: Value,
    #[serde(default)]
    tainted: bool,
    then: Then,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesText {
    #[serde(default, rename = "rule")]
    rules: Vec<RuleText>,
    #[serde(default, rename = "example")]
    examples: Vec<Example>,
}

#[derive(Debug)]
struct Rule {
    text: RuleText,
    targets: Option<GlobSet>,
    /// The same as patterns of hosts, which is what they are for pages.
    pages: Option<GlobSet>,
    hosts: Option<GlobSet>,
}

impl Rule {
    fn new(at: usize, text: RuleText) -> Result<Self, RulesError> {
        let wrong =
            |what: &'static str, name: &str| RulesError::Name { rule: at + 1, what, name: name.into() };
        if let Some(name) = text.tools.iter().find(|name| !is_tool(name)) {
            return Err(wrong("tool", name));
        }
        if let Some(name) = text.roles.iter().find(|name| roles::named(name).is_none()) {
            return Err(wrong("role", name));
        }
        if let Some(name) = text.hosts.iter().find(|name| !name.is_ascii()) {
            return Err(wrong("host in ASCII (write it as a browser sends it: xn--…)", name));
        }
        let patterns = |of: &[String]| (!of.is_empty()).then(|| set(at + 1, of)).transpose();
        let plain = |of: &[String]| of.iter().map(|host| normalized_host(host)).collect::<Vec<_>>();
        let targets = patterns(&text.targets)?;
        let fetch = ToolKind::Fetch.name();
        let is_of_pages = text.tools.is_empty() || text.tools.iter().any(|tool| tool == fetch);
        let pages = if is_of_pages { patterns(&plain(&text.targets))? } else { None };
        let hosts = patterns(&plain(&text.hosts))?;
        Ok(Self { text, targets, pages, hosts })
    }

    fn fits_target(&self, call: &ParsedCall, target: &str) -> bool {
        let is_page = call.kind() == ToolKind::Fetch;
        let targets = if is_page { &self.pages } else { &self.targets };
        targets.as_ref().is_none_or(|targets| targets.is_match(target))
    }

    fn fits_hosts(&self, wanted: &[&str]) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let fits = |host: &&str| hosts.is_match(normalized_host(host));
        match self.text.then {
            Then::Allow => !wanted.is_empty() && wanted.iter().all(fits),
            // What stands for many hosts may stand for one of these.
            Then::Ask | Then::Deny => wanted.iter().any(|host| host.contains('*') || fits(host)),
        }
    }
}

/// Rules that were checked against their examples.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// A call to be judged.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCall<'a> {
    pub role: &'a str,
    pub call: &'a ParsedCall,
    pub taint: &'a [Taint],
    pub run: Option<RunId>,
    pub grants: &'a [Grant],
    /// It leads to an address that the agent made up itself after it had read untrusted words.
    pub is_invented_address: bool,
}

impl Rules {
    pub fn built_in() -> Result<Self, RulesError> {
        Self::parse(BUILT_IN)
    }

    /// Rules of the person's, which come before the built-in ones.
    pub fn with(table: &toml::Table) -> Result<Self, RulesError> {
        let RulesText { rules, examples } = table.clone().try_into()?;
        Self::before(rules, &examples, Self::built_in()?.rules)
    }

    fn parse(text: &str) -> Result<Self, RulesError> {
        let RulesText { rules, examples } = toml::from_str(text)?;
        Self::before(rules, &examples, Vec::new())
    }

    /// Puts rules before others and holds all of them against the examples of the first.
    fn before(first: Vec<RuleText>, examples: &[Example], others: Vec<Rule>) -> Result<Self, RulesError> {
        let first = first.into_iter().enumerate().map(|(at, text)| Rule::new(at, text));
        let mut rules = first.collect::<Result<Vec<_>, _>>()?;
        rules.extend(others);
        let rules = Self { rules };
        for (at, example) in examples.iter().enumerate() {
            rules.check(example).map_err(|reason| RulesError::Example { example: at + 1, reason })?;
        }
        Ok(rules)
    }

    fn check(&self, example: &Example) -> Result<(), String> {
        let role =
            roles::named(&example.role).ok_or_else(|| format!("there is no role {:?}", example.role))?;
        let call = if example.tool == ToolKind::Foreign.name() {
            foreign(&example.input)?
        } else {
            ParsedCall::read(role, &example.tool, &example.input)?
        };
        let taint = if example.tainted { vec![Taint::WEB] } else { Vec::new() };
        let judged = JudgedCall {
            role: &example.role,
            call: &call,
            taint: &taint,
            run: None,
            grants: &[],
            is_invented_address: false,
        };
        let then = match self.judge(&judged) {
            Verdict::Allow => Then::Allow,
            Verdict::Ask { .. } => Then::Ask,
            Verdict::Deny { .. } => Then::Deny,
        };
        if then == example.then {
            Ok(())
        } else {
            Err(format!("it leads to {then:?}, not to {:?}", example.then))
        }
    }

    /// Whether every agent may read a file without being asked, also one that has read untrusted words and one whose role
    /// no rule names. No grant counts.
    pub fn may_everyone_read(&self, path: &FilePath) -> bool {
        let call = ParsedCall::Read { path: path.clone() };
        let allows = |role: &str, taint: &[Taint]| {
            let judged = JudgedCall { role, call: &call, taint, run: None, grants: &[], is_invented_address: false };
            self.judge(&judged) == Verdict::Allow
        };
        let mut roles = ROLES.iter().map(|role| role.name()).chain([""]);
        roles.all(|role| allows(role, &[]) && allows(role, &[Taint::WEB]))
    }

    /// What is done about a call.
    pub fn judge(&self, judged: &JudgedCall<'_>) -> Verdict {
        let (name, target, is_final) =
            (judged.call.kind().name(), judged.call.target(), judged.call.is_final());
        let hosts = judged.call.hosts();
        let is_tainted = !judged.taint.is_empty();
        let fits = |rule: &&Rule| {
            let text = &rule.text;
            (text.tools.is_empty() || text.tools.iter().any(|tool| tool == name))
                && (text.roles.is_empty() || text.roles.iter().any(|role| role == judged.role))
                && text.network.is_none_or(|network| network == is_final)
                && text.tainted.is_none_or(|tainted| tainted == is_tainted)
                && rule.fits_target(judged.call, &target)
                && rule.fits_hosts(&hosts)
        };
        let rule = self.rules.iter().find(fits);
        let (then, why) =
            rule.map_or((Then::Ask, "no rule speaks of it"), |rule| (rule.text.then, &*rule.text.why));
        let (then, why) = match then {
            // What cannot be taken back is never done on the word of a stranger.
            Then::Allow if is_final && is_tainted => (Then::Ask, "it has read untrusted words"),
            Then::Allow if judged.is_invented_address => (
                Then::Ask,
                "it made this address up after it had read untrusted words, and could carry something out",
            ),
            Then::Allow | Then::Ask | Then::Deny => (then, why),
        };
        match then {
            Then::Allow => Verdict::Allow,
            Then::Deny => Verdict::Deny { why: why.to_owned() },
            Then::Ask if granted(judged) => Verdict::Allow,
            Then::Ask => Verdict::Ask { why: why.to_owned(), pattern: pattern(judged.call) },
        }
    }
}

/// A tool of somebody else's, as an example speaks of it.
fn foreign(input: &Value) -> Result<ParsedCall, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        server: String,
        tool: String,
        #[serde(default)]
        reads_only: bool,
    }
    let Named { server, tool, reads_only } =
        serde_json::from_value(input.clone()).map_err(|e| e.to_string())?;
    let name = format!("{PREFIX}{server}_{tool}");
    ParsedCall::foreign(&name, ExternalTool { server, tool, reads_only }, &Value::Null)
}

fn is_tool(name: &str) -> bool {
    TOOLS.iter().chain([&ToolKind::Foreign]).any(|tool| tool.name() == name)
}

fn set(rule: usize, patterns: &[String]) -> Result<GlobSet, RulesError> {
    let bad = |pattern: &str, source| RulesError::Pattern { rule, pattern: pattern.to_owned(), source };
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(Glob::new(pattern).map_err(|e| bad(pattern, e))?);
    }
    builder.build().map_err(|e| bad("", e))
}

/// What a grant for hosts begins with.
const HOSTS: &str = "hosts ";

/// What a lasting grant for a call covers: its hosts, or exactly this target.
fn pattern(call: &ParsedCall) -> String {
    match call {
        ParsedCall::Exec { hosts, .. } if !hosts.is_empty() => format!("{HOSTS}{}", hosts.join(" ")),
        // The same command in other words, which nobody can take for hosts.
        ParsedCall::Exec { command, .. } if command.starts_with(HOSTS) => format!("exec {command}"),
        ParsedCall::Exec { .. }
        | ParsedCall::Read { .. }
        | ParsedCall::List { .. }
        | ParsedCall::Search { .. }
        | ParsedCall::Write { .. }
        | ParsedCall::Edit { .. }
        | ParsedCall::Fetch { .. }
        | ParsedCall::WebSearch { .. }
        | ParsedCall::Delegate { .. }
        | ParsedCall::Tell { .. }
        | ParsedCall::Report { .. }
        | ParsedCall::Ask { .. }
        | ParsedCall::Finish { .. }
        | ParsedCall::Foreign { .. } => call.target(),
    }
}

/// Whether the person allowed it. What holds in all runs was said before anybody knew what the agent would read, so for
/// one that has read untrusted words only what was allowed in its own run counts where nothing can be taken back.
fn granted(judged: &JudgedCall<'_>) -> bool {
    let needs_own_run = !judged.taint.is_empty() && (judged.call.is_final() || judged.is_invented_address);
    judged.grants.iter().any(|grant| {
        let in_time = match grant.run {
            Some(run) => judged.run == Some(run),
            None => !needs_own_run,
        };
        in_time && &*grant.tool == judged.call.name() && covers(&grant.pattern, judged.call)
    })
}

fn covers(pattern: &str, call: &ParsedCall) -> bool {
    match (pattern.strip_prefix(HOSTS), call) {
        (Some(allowed), ParsedCall::Exec { hosts, .. }) => {
            let allowed: Vec<&str> = allowed.split(' ').collect();
            !hosts.is_empty() && hosts.iter().all(|host| allowed.contains(&host.as_str()))
        }
        (Some(_), _) => false,
        (None, _) => pattern == self::pattern(call),
    }
}

#[cfg(test)]
mod tests;
