//! What agents may do, as data: the first matching rule decides, and a grant of the person turns "ask" into "allow".
//!
//! Rules come with examples of their decisions; rules whose examples fail are not loaded.

use globset::{Glob, GlobSet, GlobSetBuilder};
use serde::Deserialize;
use serde_json::Value;
use shared_types::payload::capability::Grant;
use shared_types::{FilePath, RunId, Taint};
use thiserror::Error;

use crate::roles::{self, ROLES};
use crate::tool_kind::{TOOLS, ToolKind};
use crate::toolbox::{ExternalTool, PREFIX};
use crate::tools::{ParsedCall, normalized_host};

/// The built-in rules. The person's rules come before them.
const BUILT_IN: &str = include_str!("rules.toml");

/// Why rules cannot be loaded.
#[derive(Debug, Error)]
pub enum RulesError {
    #[error("cannot read the rules: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("rule {rule}: invalid pattern {pattern:?}: {source}")]
    Pattern { rule: usize, pattern: String, source: globset::Error },
    #[error("rule {rule}: {name:?} is not a {what}")]
    Name { rule: usize, what: &'static str, name: String },
    #[error("example {example}: {reason}")]
    Example { example: usize, reason: String },
}

/// The decision about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// The person decides. `pattern` is what a grant for more than this call would cover.
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
enum RuleDecision {
    Allow,
    Ask,
    Deny,
}

impl std::fmt::Display for RuleDecision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleConfig {
    /// The tools that it applies to; empty means all.
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    roles: Vec<String>,
    /// Patterns of paths, hosts, shell lines or external tools; empty means all.
    #[serde(default)]
    targets: Vec<String>,
    /// Patterns of hosts. An allowing rule applies if all hosts of a call match, any other rule if one host matches.
    #[serde(default)]
    hosts: Vec<String>,
    /// If set, applies only to calls that are final, or only to those that are not.
    network: Option<bool>,
    /// If set, applies only to tainted agents, or only to untainted ones.
    tainted: Option<bool>,
    then: RuleDecision,
    #[serde(default)]
    why: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleExample {
    role: String,
    tool: String,
    input: Value,
    #[serde(default)]
    tainted: bool,
    then: RuleDecision,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesConfig {
    #[serde(default, rename = "rule")]
    rules: Vec<RuleConfig>,
    #[serde(default, rename = "example")]
    examples: Vec<RuleExample>,
}

#[derive(Debug)]
struct Rule {
    config: RuleConfig,
    targets: Option<GlobSet>,
    /// The targets as normalized patterns of hosts, which are the targets of `fetch`.
    host_targets: Option<GlobSet>,
    hosts: Option<GlobSet>,
}

impl Rule {
    fn new(at: usize, config: RuleConfig) -> Result<Self, RulesError> {
        let invalid =
            |what: &'static str, name: &str| RulesError::Name { rule: at + 1, what, name: name.into() };
        if let Some(name) = config.tools.iter().find(|name| !is_tool(name)) {
            return Err(invalid("tool", name));
        }
        if let Some(name) = config.roles.iter().find(|name| roles::named(name).is_none()) {
            return Err(invalid("role", name));
        }
        if let Some(name) = config.hosts.iter().find(|name| !name.is_ascii()) {
            return Err(invalid("host in ASCII (use the Punycode form: xn--…)", name));
        }
        let patterns = |of: &[String]| (!of.is_empty()).then(|| glob_set(at + 1, of)).transpose();
        let normalized = |of: &[String]| of.iter().map(|host| normalized_host(host)).collect::<Vec<_>>();
        let targets = patterns(&config.targets)?;
        let fetch = ToolKind::Fetch.name();
        let covers_fetch = config.tools.is_empty() || config.tools.iter().any(|tool| tool == fetch);
        let host_targets = if covers_fetch { patterns(&normalized(&config.targets))? } else { None };
        let hosts = patterns(&normalized(&config.hosts))?;
        Ok(Self { config, targets, host_targets, hosts })
    }

    fn matches_target(&self, call: &ParsedCall, target: &str) -> bool {
        let is_fetch = call.kind() == ToolKind::Fetch;
        let targets = if is_fetch { &self.host_targets } else { &self.targets };
        targets.as_ref().is_none_or(|targets| targets.is_match(target))
    }

    fn matches_hosts(&self, requested: &[&str]) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let is_match = |host: &&str| hosts.is_match(normalized_host(host));
        match self.config.then {
            RuleDecision::Allow => !requested.is_empty() && requested.iter().all(is_match),
            // A requested wildcard may include a host of this rule.
            RuleDecision::Ask | RuleDecision::Deny => {
                requested.iter().any(|host| host.contains('*') || is_match(host))
            }
        }
    }
}

/// Rules whose examples hold.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// A call with everything that the decision depends on.
#[derive(Debug, Clone, Copy)]
pub struct JudgedCall<'a> {
    pub role: &'a str,
    pub call: &'a ParsedCall,
    pub taint: &'a [Taint],
    pub run: Option<RunId>,
    pub grants: &'a [Grant],
    /// Whether it fetches an address that the agent composed itself after it was tainted.
    pub is_invented_address: bool,
}

impl Rules {
    pub fn built_in() -> Result<Self, RulesError> {
        Self::parse(BUILT_IN)
    }

    /// The person's rules, followed by the built-in ones.
    pub fn with(table: &toml::Table) -> Result<Self, RulesError> {
        let RulesConfig { rules, examples } = table.clone().try_into()?;
        Self::prepend(rules, &examples, Self::built_in()?.rules)
    }

    fn parse(text: &str) -> Result<Self, RulesError> {
        let RulesConfig { rules, examples } = toml::from_str(text)?;
        Self::prepend(rules, &examples, Vec::new())
    }

    /// Puts rules before others, and checks the result against the examples of the first.
    fn prepend(
        first: Vec<RuleConfig>,
        examples: &[RuleExample],
        others: Vec<Rule>,
    ) -> Result<Self, RulesError> {
        let first = first.into_iter().enumerate().map(|(at, config)| Rule::new(at, config));
        let mut rules = first.collect::<Result<Vec<_>, _>>()?;
        rules.extend(others);
        let rules = Self { rules };
        for (at, example) in examples.iter().enumerate() {
            rules.check(example).map_err(|reason| RulesError::Example { example: at + 1, reason })?;
        }
        Ok(rules)
    }

    fn check(&self, example: &RuleExample) -> Result<(), String> {
        let role =
            roles::named(&example.role).ok_or_else(|| format!("there is no role {:?}", example.role))?;
        let call = if example.tool == ToolKind::External.name() {
            external_tool(&example.input)?
        } else {
            ParsedCall::parse(role, &example.tool, &example.input)?
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
        let decision = match self.judge(&judged) {
            Verdict::Allow => RuleDecision::Allow,
            Verdict::Ask { .. } => RuleDecision::Ask,
            Verdict::Deny { .. } => RuleDecision::Deny,
        };
        if decision == example.then {
            Ok(())
        } else {
            Err(format!("the rules decide {decision}, not {}", example.then))
        }
    }

    /// Whether every agent may read a file without asking the person: agents of all roles, also of roles that no rule names,
    /// tainted or not. Grants do not count.
    pub fn may_everyone_read(&self, path: &FilePath) -> bool {
        let call = ParsedCall::Read { path: path.clone() };
        let allows = |role: &str, taint: &[Taint]| {
            let judged =
                JudgedCall { role, call: &call, taint, run: None, grants: &[], is_invented_address: false };
            self.judge(&judged) == Verdict::Allow
        };
        let mut roles = ROLES.iter().map(|role| role.name()).chain([""]);
        roles.all(|role| allows(role, &[]) && allows(role, &[Taint::WEB]))
    }

    /// Decides about a call.
    pub fn judge(&self, judged: &JudgedCall<'_>) -> Verdict {
        let (name, target, is_final) =
            (judged.call.kind().name(), judged.call.target(), judged.call.is_final());
        let hosts = judged.call.hosts();
        let is_tainted = !judged.taint.is_empty();
        let applies = |rule: &&Rule| {
            let config = &rule.config;
            (config.tools.is_empty() || config.tools.iter().any(|tool| tool == name))
                && (config.roles.is_empty() || config.roles.iter().any(|role| role == judged.role))
                && config.network.is_none_or(|network| network == is_final)
                && config.tainted.is_none_or(|tainted| tainted == is_tainted)
                && rule.matches_target(judged.call, &target)
                && rule.matches_hosts(&hosts)
        };
        let rule = self.rules.iter().find(applies);
        let (decision, why) = rule
            .map_or((RuleDecision::Ask, "no rule covers it"), |rule| (rule.config.then, &*rule.config.why));
        let (decision, why) = match decision {
            // A tainted agent makes no final call without the person.
            RuleDecision::Allow if is_final && is_tainted => {
                (RuleDecision::Ask, "the agent has read tainted text")
            }
            RuleDecision::Allow if judged.is_invented_address => (
                RuleDecision::Ask,
                "the agent composed this address after it had read tainted text; it could leak data",
            ),
            RuleDecision::Allow | RuleDecision::Ask | RuleDecision::Deny => (decision, why),
        };
        match decision {
            RuleDecision::Allow => Verdict::Allow,
            RuleDecision::Deny => Verdict::Deny { why: why.to_owned() },
            RuleDecision::Ask if is_granted(judged) => Verdict::Allow,
            RuleDecision::Ask => Verdict::Ask { why: why.to_owned(), pattern: grant_pattern(judged.call) },
        }
    }
}

/// The call of an external tool in an example.
fn external_tool(input: &Value) -> Result<ParsedCall, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ExternalToolExample {
        server: String,
        tool: String,
        #[serde(default)]
        reads_only: bool,
    }
    let ExternalToolExample { server, tool, reads_only } =
        serde_json::from_value(input.clone()).map_err(|e| e.to_string())?;
    let name = format!("{PREFIX}{server}_{tool}");
    ParsedCall::parse_external(&name, ExternalTool { server, tool, reads_only }, &Value::Null)
}

fn is_tool(name: &str) -> bool {
    TOOLS.iter().chain([&ToolKind::External]).any(|tool| tool.name() == name)
}

fn glob_set(rule: usize, patterns: &[String]) -> Result<GlobSet, RulesError> {
    let bad = |pattern: &str, source| RulesError::Pattern { rule, pattern: pattern.to_owned(), source };
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(Glob::new(pattern).map_err(|e| bad(pattern, e))?);
    }
    builder.build().map_err(|e| bad("", e))
}

/// The prefix of grants for hosts. Stored grants contain it.
const HOSTS_PREFIX: &str = "hosts ";

/// What a grant for more than one call covers: the hosts of this call, or exactly its target.
fn grant_pattern(call: &ParsedCall) -> String {
    match call {
        ParsedCall::Exec { hosts, .. } if !hosts.is_empty() => format!("{HOSTS_PREFIX}{}", hosts.join(" ")),
        // Another spelling of the command, which cannot be confused with a grant for hosts.
        ParsedCall::Exec { command, .. } if command.starts_with(HOSTS_PREFIX) => format!("exec {command}"),
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
        | ParsedCall::External { .. } => call.target(),
    }
}

/// Whether a grant covers the call. A grant for all runs was given before the person could know what the agent would read,
/// so for final calls of a tainted agent only grants for its own run count.
fn is_granted(judged: &JudgedCall<'_>) -> bool {
    let needs_own_run = !judged.taint.is_empty() && (judged.call.is_final() || judged.is_invented_address);
    judged.grants.iter().any(|grant| {
        let is_in_scope = match grant.run {
            Some(run) => judged.run == Some(run),
            None => !needs_own_run,
        };
        is_in_scope && &*grant.tool == judged.call.name() && covers(&grant.pattern, judged.call)
    })
}

fn covers(pattern: &str, call: &ParsedCall) -> bool {
    match (pattern.strip_prefix(HOSTS_PREFIX), call) {
        (Some(allowed), ParsedCall::Exec { hosts, .. }) => {
            let allowed: Vec<&str> = allowed.split(' ').collect();
            !hosts.is_empty() && hosts.iter().all(|host| allowed.contains(&host.as_str()))
        }
        (Some(_), _) => false,
        (None, _) => pattern == grant_pattern(call),
    }
}

#[cfg(test)]
mod tests;
