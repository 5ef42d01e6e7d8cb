//! The kinds of tools, and which calls of a turn wait for others.

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ToolKind {
    Read,
    List,
    Search,
    Write,
    Edit,
    Exec,
    Fetch,
    WebSearch,
    Delegate,
    Tell,
    Report,
    Ask,
    Finish,
    /// Any external tool; rules use this one name for all of them.
    External,
}

/// The built-in tools.
pub const TOOLS: [ToolKind; 13] = [
    ToolKind::Read,
    ToolKind::List,
    ToolKind::Search,
    ToolKind::Write,
    ToolKind::Edit,
    ToolKind::Exec,
    ToolKind::Fetch,
    ToolKind::WebSearch,
    ToolKind::Delegate,
    ToolKind::Tell,
    ToolKind::Report,
    ToolKind::Ask,
    ToolKind::Finish,
];

impl ToolKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::List => "list",
            Self::Search => "search",
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Exec => "exec",
            Self::Fetch => "fetch",
            Self::WebSearch => "web_search",
            Self::Delegate => "delegate",
            Self::Tell => "tell",
            Self::Report => "report",
            Self::Ask => "ask",
            Self::Finish => "finish",
            Self::External => "mcp",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        TOOLS.into_iter().find(|tool| tool.name() == name)
    }
}

/// Tools that affect the course of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlTool {
    Delegate,
    Tell,
    Finish,
}

impl ControlTool {
    pub(crate) fn is(self, tool: &str) -> bool {
        match self {
            Self::Delegate => tool == ToolKind::Delegate.name(),
            Self::Tell => tool == ToolKind::Tell.name(),
            Self::Finish => tool == ToolKind::Finish.name(),
        }
    }
}

/// Whether a call has to wait for earlier calls of its turn, because it may read or overwrite what they write.
pub(crate) fn depends_on<'a>(tool: &str, mut earlier: impl Iterator<Item = &'a str>) -> bool {
    let writes = |tool: &str| [ToolKind::Write, ToolKind::Edit].iter().any(|kind| kind.name() == tool);
    let readers = [ToolKind::Exec, ToolKind::Read, ToolKind::List, ToolKind::Search];
    let reads = |tool: &str| readers.iter().any(|kind| kind.name() == tool);
    if ControlTool::Finish.is(tool) {
        // An agent finishes only after all other calls of the turn.
        return earlier.next().is_some();
    }
    (writes(tool) || reads(tool)) && earlier.any(writes)
}
