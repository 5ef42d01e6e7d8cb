//! The tools of agents. A call is parsed into a typed [`ParsedCall`] before anything acts on it; `crate::job` performs it.

use serde::Deserialize;
use serde_json::{Map, Value};
use shared_types::FilePath;
use shared_types::payload::task::MessageKind;
use url::Url;

use crate::roles::Role;
use crate::shorten::one_line;
use crate::tool_kind::ToolKind;
use crate::toolbox::ExternalTool;

/// A tool call with valid arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum ParsedCall {
    Read { path: FilePath },
    List { path: Option<FilePath> },
    Search { words: String },
    Write { path: FilePath, text: String },
    Edit { path: FilePath, find: String, replace: String },
    Exec { command: String, hosts: Vec<String>, seconds: Option<u64> },
    Fetch { url: Url },
    WebSearch { words: String },
    Delegate { to: Role, task: String },
    Tell { to: Role, text: String },
    Report { kind: MessageKind, text: String },
    Ask { question: String, choices: Vec<String> },
    Finish { summary: String, files: Vec<FilePath> },
    External { name: String, tool: ExternalTool, input: Map<String, Value> },
}

/// The arguments of all tools together; each tool uses its own.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Arguments {
    path: Option<String>,
    text: Option<String>,
    words: Option<String>,
    find: Option<String>,
    replace: Option<String>,
    command: Option<String>,
    hosts: Vec<String>,
    seconds: Option<u64>,
    url: Option<String>,
    agent: Option<String>,
    task: Option<String>,
    kind: Option<String>,
    question: Option<String>,
    choices: Vec<String>,
    summary: Option<String>,
    files: Vec<String>,
}

impl ParsedCall {
    /// Parses a call of an agent with this role. The error is a sentence for the model.
    pub fn parse(role: Role, tool: &str, input: &Value) -> Result<Self, String> {
        let kind = ToolKind::named(tool).filter(|kind| role.tools().contains(kind)).ok_or_else(|| {
            let names: Vec<&str> = role.tools().iter().map(|tool| tool.name()).collect();
            format!("you have no tool {tool:?}; yours are {}", names.join(", "))
        })?;
        let arguments: Arguments = serde_json::from_value(input.clone())
            .map_err(|e| format!("{tool}: the arguments are wrong: {e}"))?;
        let missing = |name: &str| format!("{tool}: `{name}` is missing");
        let path = |text: Option<String>| parse_path(&text.ok_or_else(|| missing("path"))?);
        Ok(match kind {
            ToolKind::Read => Self::Read { path: path(arguments.path)? },
            ToolKind::List => match arguments.path.as_deref().map(|path| path.trim_matches('/')) {
                None | Some("" | ".") => Self::List { path: None },
                Some(folder) => Self::List { path: Some(parse_path(folder)?) },
            },
            ToolKind::Search => Self::Search { words: arguments.words.ok_or_else(|| missing("words"))? },
            ToolKind::Write => Self::Write {
                path: path(arguments.path)?,
                text: arguments.text.ok_or_else(|| missing("text"))?,
            },
            ToolKind::Edit => Self::Edit {
                path: path(arguments.path)?,
                find: arguments.find.filter(|find| !find.is_empty()).ok_or_else(|| missing("find"))?,
                replace: arguments.replace.ok_or_else(|| missing("replace"))?,
            },
            ToolKind::Exec => Self::Exec {
                command: arguments
                    .command
                    .filter(|line| !line.trim().is_empty())
                    .ok_or_else(|| missing("command"))?,
                hosts: arguments.hosts,
                seconds: arguments.seconds,
            },
            ToolKind::Fetch => {
                let text = arguments.url.ok_or_else(|| missing("url"))?;
                let url = Url::parse(&text).map_err(|e| format!("fetch: {text:?} is not an address: {e}"))?;
                if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
                    return Err(format!("fetch: only http and https can be read, not {text:?}"));
                }
                Self::Fetch { url }
            }
            ToolKind::WebSearch => {
                Self::WebSearch { words: arguments.words.ok_or_else(|| missing("words"))? }
            }
            ToolKind::Delegate => {
                let name = arguments.agent.ok_or_else(|| missing("agent"))?;
                let to = crate::roles::named(&name).filter(|to| role.helpers().contains(to));
                let task =
                    arguments.task.filter(|task| !task.trim().is_empty()).ok_or_else(|| missing("task"))?;
                Self::Delegate {
                    to: to.ok_or_else(|| format!("delegate: there is no agent {name:?} for you"))?,
                    task,
                }
            }
            ToolKind::Tell => {
                let name = arguments.agent.ok_or_else(|| missing("agent"))?;
                let to = crate::roles::named(&name).filter(|to| role.helpers().contains(to));
                let text =
                    arguments.text.filter(|text| !text.trim().is_empty()).ok_or_else(|| missing("text"))?;
                Self::Tell {
                    to: to.ok_or_else(|| format!("tell: there is no agent {name:?} for you"))?,
                    text,
                }
            }
            ToolKind::Report => Self::Report {
                kind: match arguments.kind.as_deref() {
                    Some("finding") => MessageKind::Finding,
                    Some("question") => MessageKind::Question,
                    Some("progress") => MessageKind::Progress,
                    Some(other) => return Err(format!("report: {other:?} is not a kind of report")),
                    None => return Err(missing("kind")),
                },
                text: arguments.text.filter(|text| !text.trim().is_empty()).ok_or_else(|| missing("text"))?,
            },
            ToolKind::Ask => Self::Ask {
                question: arguments
                    .question
                    .filter(|q| !q.trim().is_empty())
                    .ok_or_else(|| missing("question"))?,
                choices: arguments.choices,
            },
            ToolKind::Finish => Self::Finish {
                summary: arguments
                    .summary
                    .filter(|s| !s.trim().is_empty())
                    .ok_or_else(|| missing("summary"))?,
                files: arguments.files.iter().map(|path| parse_path(path)).collect::<Result<_, _>>()?,
            },
            ToolKind::External => return Err(format!("there is no tool {tool:?}")),
        })
    }

    /// Parses a call of an external tool. The error is a sentence for the model.
    pub fn parse_external(name: &str, tool: ExternalTool, input: &Value) -> Result<Self, String> {
        match input {
            Value::Object(input) => Ok(Self::External { name: name.to_owned(), tool, input: input.clone() }),
            Value::Null => Ok(Self::External { name: name.to_owned(), tool, input: Map::new() }),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(format!("{name}: the arguments are not an object"))
            }
        }
    }

    /// The name of its tool in events and grants.
    pub fn name(&self) -> &str {
        match self {
            Self::External { name, .. } => name,
            Self::Read { .. }
            | Self::List { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Exec { .. }
            | Self::Fetch { .. }
            | Self::WebSearch { .. }
            | Self::Delegate { .. }
            | Self::Tell { .. }
            | Self::Report { .. }
            | Self::Ask { .. }
            | Self::Finish { .. } => self.kind().name(),
        }
    }

    pub fn kind(&self) -> ToolKind {
        match self {
            Self::Read { .. } => ToolKind::Read,
            Self::List { .. } => ToolKind::List,
            Self::Search { .. } => ToolKind::Search,
            Self::Write { .. } => ToolKind::Write,
            Self::Edit { .. } => ToolKind::Edit,
            Self::Exec { .. } => ToolKind::Exec,
            Self::Fetch { .. } => ToolKind::Fetch,
            Self::WebSearch { .. } => ToolKind::WebSearch,
            Self::Delegate { .. } => ToolKind::Delegate,
            Self::Tell { .. } => ToolKind::Tell,
            Self::Report { .. } => ToolKind::Report,
            Self::Ask { .. } => ToolKind::Ask,
            Self::Finish { .. } => ToolKind::Finish,
            Self::External { .. } => ToolKind::External,
        }
    }

    /// What the targets of rules are matched against: a path, a host, a shell line or `SERVER/TOOL`.
    pub fn target(&self) -> String {
        match self {
            Self::Read { path } | Self::Write { path, .. } | Self::Edit { path, .. } => path.to_string(),
            Self::List { path } => path.as_ref().map(ToString::to_string).unwrap_or_default(),
            Self::Exec { command, .. } => command.clone(),
            Self::Fetch { url } => normalized_host(url.host_str().unwrap_or_default()),
            Self::Search { words } | Self::WebSearch { words } => words.clone(),
            Self::Delegate { to, .. } | Self::Tell { to, .. } => to.name().into(),
            Self::Report { .. } | Self::Ask { .. } | Self::Finish { .. } => String::new(),
            Self::External { tool, .. } => format!("{}/{}", tool.server, tool.tool),
        }
    }

    /// The hosts that it contacts.
    pub fn hosts(&self) -> Vec<&str> {
        match self {
            Self::Exec { hosts, .. } => hosts.iter().map(String::as_str).collect(),
            Self::Fetch { url } => url.host_str().into_iter().collect(),
            Self::Read { .. }
            | Self::List { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::WebSearch { .. }
            | Self::Delegate { .. }
            | Self::Tell { .. }
            | Self::Report { .. }
            | Self::Ask { .. }
            | Self::Finish { .. }
            | Self::External { .. } => Vec::new(),
        }
    }

    /// Whether it may have external effects, which cannot be undone.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Exec { hosts, .. } => !hosts.is_empty(),
            Self::External { tool, .. } => !tool.reads_only,
            Self::Read { .. }
            | Self::List { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Fetch { .. }
            | Self::WebSearch { .. }
            | Self::Delegate { .. }
            | Self::Tell { .. }
            | Self::Report { .. }
            | Self::Ask { .. }
            | Self::Finish { .. } => false,
        }
    }

    /// Whether it may take long, because a command or another server does the work.
    pub fn takes_time(&self) -> bool {
        match self {
            Self::Exec { .. } | Self::Fetch { .. } | Self::WebSearch { .. } | Self::External { .. } => true,
            Self::Read { .. }
            | Self::List { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Delegate { .. }
            | Self::Tell { .. }
            | Self::Report { .. }
            | Self::Ask { .. }
            | Self::Finish { .. } => false,
        }
    }

    /// Whether it is a slow call that only reads, and is repeated after a restart of the server.
    pub fn is_repeated_after_restart(&self) -> bool {
        match self {
            Self::Fetch { .. } | Self::WebSearch { .. } => true,
            Self::External { tool, .. } => tool.reads_only,
            Self::Exec { .. }
            | Self::Read { .. }
            | Self::List { .. }
            | Self::Search { .. }
            | Self::Write { .. }
            | Self::Edit { .. }
            | Self::Delegate { .. }
            | Self::Tell { .. }
            | Self::Report { .. }
            | Self::Ask { .. }
            | Self::Finish { .. } => false,
        }
    }

    /// One line that describes the call to people.
    pub fn title(&self) -> String {
        let line = match self {
            Self::Read { path } => format!("read {path}"),
            Self::List { path: Some(path) } => format!("list {path}"),
            Self::List { path: None } => "list the workspace".into(),
            Self::Search { words } => format!("search {words}"),
            Self::Write { path, .. } => format!("write {path}"),
            Self::Edit { path, .. } => format!("edit {path}"),
            Self::Exec { command, .. } => command.clone(),
            Self::Fetch { url } => format!("fetch {url}"),
            Self::WebSearch { words } => format!("search the web: {words}"),
            Self::Delegate { to, task } => format!("{}: {task}", to.name()),
            Self::Tell { to, text } => format!("to the {}: {text}", to.name()),
            Self::Report { text, .. } => text.clone(),
            Self::Ask { question, .. } => question.clone(),
            Self::Finish { summary, .. } => summary.clone(),
            Self::External { tool, input, .. } => {
                format!("{}: {} {}", tool.server, tool.tool, Value::Object(input.clone()))
            }
        };
        one_line(&line)
    }
}

/// A host in the form in which hosts are compared: lower case, without port and without trailing dot.
pub(crate) fn normalized_host(host: &str) -> String {
    let host = host.trim();
    let host = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        Some(_) | None => host,
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

fn parse_path(text: &str) -> Result<FilePath, String> {
    let inside = text.trim_start_matches("./").trim_start_matches("/workspace/").trim_end_matches('/');
    FilePath::parse(inside).map_err(|e| format!("{text:?} is not a path in the workspace: {e}"))
}
