//! What agents were told, said and did in a scenario, as text that is kept beside it.
//!
//! It is told from the log, in the words that a model is sent, and held against what the server of models received over
//! the wire: every request must be a prefix of this text, and the rest is listed at the end. What
//! differs from machine to machine and from provider to provider is put into common words in [`common`] alone.

mod agent;
mod sent;

use std::collections::BTreeSet;

use agents::history::History;
use agents::roles::{ROLES, Role};
use computer::Computer;
use models::chat::{Message, Tool};
use shared_types::RunId;

use crate::scenario_host::ScenarioHost;
use agent::Agent;
use sent::Sent;

/// One line of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    Told(String),
    Says(String),
    Calls { tool: String, input: String },
    Gets { tool: String, text: String },
    Fails { tool: String, text: String },
}

impl Line {
    fn row(&self) -> String {
        match self {
            Self::Told(text) => row("told", text),
            Self::Says(text) => row("says", text),
            Self::Calls { tool, input } => row("calls", &format!("{tool} {input}")),
            Self::Gets { tool, text } => row("gets", &format!("{tool}: {text}")),
            Self::Fails { tool, text } => row("fails", &format!("{tool}: {text}")),
        }
    }
}

/// A word in a column of its own, and a text beside it.
fn row(word: &str, text: &str) -> String {
    let words = std::iter::once(word).chain(std::iter::repeat(""));
    let rows = text.split('\n').zip(words).map(|(line, word)| format!("{word:<8}{line}"));
    rows.map(|row| row.trim_end().to_owned() + "\n").collect()
}

fn lines(messages: &[Message]) -> Vec<Line> {
    let mut lines = Vec::new();
    for message in messages {
        match message {
            Message::User { text } => lines.push(Line::Told(text.clone())),
            Message::Model { text, calls } => {
                // Claude is never sent a text without a letter; the others are.
                let is_said = !["", "(nothing)"].contains(&text.trim());
                lines.extend(is_said.then(|| Line::Says(text.clone())));
                lines.extend(calls.iter().map(|call| {
                    let (tool, input) = (call.tool.clone(), call.input.to_string());
                    Line::Calls { tool, input }
                }));
            }
            Message::Tools { results } => lines.extend(results.iter().map(|result| {
                let (tool, text) = (result.tool.clone(), result.text.clone());
                if result.failed { Line::Fails { tool, text } } else { Line::Gets { tool, text } }
            })),
        }
    }
    lines
}

/// The whole scenario as text.
pub(crate) fn of(host: &ScenarioHost<'_>, computer: &Computer) -> Result<String, String> {
    let (mut parts, mut agents) = (Vec::new(), Vec::new());
    for run in &host.runs {
        let of_run = agents_of(host, computer, *run);
        parts.extend(of_run.iter().map(Agent::to_string));
        parts.push(outcome(host, computer, *run));
        agents.extend(of_run);
    }
    let requests = host.requests();
    let sent: Vec<Sent> = requests.iter().map(sent::read).collect::<Result<_, _>>()?;
    parts.extend(additions(&sent)?);
    parts.extend(not_kept(&agents, &sent));
    Ok(common(host, &parts.join("\n")))
}

/// The first agent, then the others in the order of what they were told: some begin at the same time.
fn agents_of(host: &ScenarioHost<'_>, computer: &Computer, run: RunId) -> Vec<Agent> {
    let events = host.events(computer, run);
    let history = History::from_events(run, &events);
    let agent = |task| Agent::new(&**computer.log(), &history, &events, task);
    let mut agents: Vec<Agent> = history.tasks.values().map(agent).collect();
    agents.sort_by_cached_key(|agent| (agent.requester.is_some(), agent.to_string()));
    agents
}

fn outcome(host: &ScenarioHost<'_>, computer: &Computer, run: RunId) -> String {
    let details = host.details(computer, run);
    let mut text = "the run\n".to_owned();
    text += &row("is", &format!("{:?}", details.line.state).to_lowercase());
    text += &details.line.reason.map(|reason| row("because", &reason)).unwrap_or_default();
    text += &details.summary.map(|summary| row("tells", &summary)).unwrap_or_default();
    text.extend(details.results.iter().map(|path| row("made", path.as_str())));
    text
}

/// What agents were told and offered besides what their role always is.
fn additions(sent: &[Sent]) -> Result<BTreeSet<String>, String> {
    let mut additions = BTreeSet::new();
    for sent in sent {
        let (name, offered) = (sent.role.name(), sent.role.tool_definitions());
        let words = sent.system.strip_prefix(sent.role.system_prompt()).unwrap_or_default();
        let tools = sent.tools.strip_prefix(offered.as_slice());
        let tools = tools.ok_or_else(|| format!("a model of the {name} is offered {:?}", sent.tools))?;
        let told = (!words.is_empty()).then(|| row("told", words.trim_start()));
        let more: String =
            told.into_iter().chain(tools.iter().map(|tool| row("offered", &offer(tool)))).collect();
        if !more.is_empty() {
            additions.insert(format!("{name}, besides what it always is\n{more}"));
        }
    }
    Ok(additions)
}

/// What models were sent and the log does not tell: an answer that could not be used, or a turn that was taken back.
fn not_kept(agents: &[Agent], sent: &[Sent]) -> Vec<String> {
    let mut parts = BTreeSet::new();
    for sent in sent {
        let same_role = agents.iter().filter(|agent| agent.role == sent.role.name());
        let known = same_role.map(|agent| common_lines(&agent.lines, &sent.lines)).max().unwrap_or_default();
        let rows: String = sent.lines[known..].iter().map(Line::row).collect();
        if !rows.is_empty() {
            parts.insert(format!("{}, sent and not kept\n{rows}", sent.role.name()));
        }
    }
    // What was sent again with more after it is told once.
    let is_whole =
        |part: &&String| !parts.iter().any(|other| other != *part && other.starts_with(part.as_str()));
    parts.iter().filter(is_whole).cloned().collect()
}

/// How many lines of a request the log tells. What is said to an agent before it answers becomes one message.
fn common_lines(told: &[Line], sent: &[Line]) -> usize {
    let is_same = |(told, sent): &(&Line, &Line)| match (told, sent) {
        (Line::Told(all), Line::Told(some)) => all.starts_with(some.as_str()),
        (told, sent) => told == sent,
    };
    told.iter().zip(sent).take_while(is_same).count()
}

/// The system prompt and the tools of a role.
pub(crate) fn of_role(role: Role) -> String {
    let offers: Vec<String> = role.tool_definitions().iter().map(|tool| offer(tool) + "\n").collect();
    format!("{}\n\n{}", role.system_prompt(), offers.join("\n"))
}

fn offer(tool: &Tool) -> String {
    let input = serde_json::to_string_pretty(&tool.input).unwrap();
    format!("{}: {}\n{input}", tool.name, tool.description)
}

fn role_of(system: &str) -> Result<Role, String> {
    let found = ROLES.into_iter().find(|role| system.starts_with(role.system_prompt()));
    found.ok_or_else(|| format!("no role has this system prompt: {system}"))
}

/// In words that are the same on every machine and with every provider.
fn common(host: &ScenarioHost<'_>, text: &str) -> String {
    let text = text.replace(&*host.path().to_string_lossy(), "[workspace]");
    text.split_inclusive('\n')
        .map(|line| without_providers_words(line).unwrap_or_else(|| line.to_owned()))
        .collect()
}

/// Why a provider refused, each says in its own words and with its own number.
fn without_providers_words(line: &str) -> Option<String> {
    let (before, said) = line.split_once("scripted: ")?;
    let (_, after) = said.split_once(" (HTTP ")?;
    let (_, after) = after.split_once(')')?;
    Some(format!("{before}scripted: [its words]{after}"))
}
