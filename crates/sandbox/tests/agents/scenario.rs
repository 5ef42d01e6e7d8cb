//! Scenarios as data: what is there, what is wanted, what models and the person do, and what must come of it.

use std::collections::BTreeMap;
use std::path::Path;

use scripted_model::Script;
use serde::Deserialize;
use shared_types::payload::run::{ApprovalScope, Budget};

/// What an agent is told of a call that was cut off, where the person lets it be made again. Models do as they are
/// told.
const AGAIN: &str = "The person says: it may be made again.";

/// What an agent is told where turns do not fit into what its model can read.
const LEFT_OUT: &str = " earlier turns of yours are left out.";

/// One scenario.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    #[serde(skip)]
    pub(crate) name: String,
    /// What it shows.
    pub(crate) about: String,
    pub(crate) objective: String,
    /// Files that are there before.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Those of them that the person puts beside the first objective.
    #[serde(default)]
    pub(crate) attached: Vec<String>,
    #[serde(default)]
    pub(crate) budget: Budget,
    /// Settings that the person made before.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, serde_json::Value>,
    /// Pages of the web, by address.
    #[serde(default)]
    pub(crate) pages: BTreeMap<String, String>,
    /// MCP servers as `choir.toml` would name them; `{fixtures}` stands for the folder of fixtures.
    #[serde(default)]
    pub(crate) mcp: toml::Table,
    /// What the models say.
    pub(crate) script: toml::Table,
    /// What the person does.
    #[serde(default)]
    pub(crate) person: Vec<ScriptedAction>,
    pub(crate) expect: Expect,
    /// Other objectives on the same computer.
    #[serde(default)]
    pub(crate) beside: Vec<SecondRun>,
    /// What is different where it was stopped.
    #[serde(default)]
    pub(crate) crash: Crash,
}

/// What is different where a scenario was stopped and went on. Where this says nothing, nothing is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Crash {
    /// What the person says to a call that was cut off and may have reached the outside.
    pub(crate) again: RepeatPolicy,
    /// What else may come of the first run. Where time, or who comes first, decides, it need not be the same.
    #[serde(rename = "end")]
    pub(crate) ends: Vec<Expect>,
}

/// Whether a call that was cut off is made again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RepeatPolicy {
    #[default]
    Yes,
    No,
}

/// Another objective, of another run. The models of both are found in the one script by what they are told first.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecondRun {
    pub(crate) objective: String,
    /// The type of event of the first run after which it begins.
    pub(crate) after: String,
    /// Which of them; the first is 1.
    #[serde(default = "first")]
    pub(crate) number: usize,
    pub(crate) expect: Expect,
}

/// Something that the person does once its time has come.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScriptedAction {
    /// The type of event after which it is done: `run.ask`, `llm.reply`, `tool.call`, …
    pub(crate) after: String,
    /// Which of them; the first is 1.
    #[serde(default = "first")]
    pub(crate) number: usize,
    /// Milliseconds that the person takes for it.
    #[serde(default)]
    pub(crate) takes_ms: u64,
    #[serde(flatten)]
    pub(crate) act: PersonAction,
}

fn first() -> usize {
    1
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PersonAction {
    Allow(ApprovalScope),
    Deny(String),
    Answer(String),
    Steer(String),
    Stop(Yes),
    /// Revokes all grants.
    Revoke(Yes),
    /// Pauses, and goes on after so many milliseconds.
    Pause(u64),
    /// Goes on with more.
    Raise(Budget),
    /// Lets it try again from a turn; the first is 1.
    Retry(usize),
    /// Writes a file: its path and its text.
    Write((String, String)),
}

/// The word that makes a gesture of a key.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Yes {
    Yes,
}

/// What must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expect {
    /// `completed`, `failed`, `cancelled`, `paused`.
    pub(crate) state: String,
    /// Part of the reason, where there is one.
    pub(crate) reason: Option<String>,
    /// Files afterwards, whole; those that no run names are as before.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    /// Files that must not be there.
    #[serde(default)]
    pub(crate) absent: Vec<String>,
    /// Part of what the person is told at the end.
    pub(crate) summary: Option<String>,
    /// How often the person was asked.
    #[serde(default)]
    pub(crate) asks: usize,
    /// Turns that were taken.
    pub(crate) turns: u64,
    /// What it cost, in millionths of a dollar.
    pub(crate) micros: u64,
    /// Tools that were used, with how their calls ended, in any order: `exec ok`, `write failed`.
    pub(crate) calls: Vec<String>,
    /// How many calls of one turn were under way at once, at least.
    #[serde(default)]
    pub(crate) at_once: usize,
    /// Labels that agents carry at the end, by role.
    #[serde(default)]
    pub(crate) taint: BTreeMap<String, Vec<String>>,
    /// Files as they are after the whole run was undone, and those before it, where that is not as before.
    #[serde(default)]
    pub(crate) undone: BTreeMap<String, String>,
}

impl Scenario {
    pub(crate) fn all() -> Vec<Self> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios");
        let mut paths: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let read = |path: &std::path::PathBuf| {
            let text = std::fs::read_to_string(path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut scenario: Self = toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(!scenario.about.is_empty(), "{name} does not say what it shows");
            scenario.name = name;
            scenario
        };
        paths.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")).map(read).collect()
    }

    /// What must come of each of its runs, if this must come of the first one.
    pub(crate) fn expected<'e>(&'e self, first: &'e Expect) -> impl Iterator<Item = &'e Expect> {
        std::iter::once(first).chain(self.beside.iter().map(|beside| &beside.expect))
    }

    /// The MCP servers, where their programs really are.
    pub(crate) fn servers(&self) -> toml::Table {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").canonicalize().unwrap();
        let text = toml::to_string(&self.mcp).unwrap();
        text.replace("{fixtures}", fixtures.to_str().unwrap()).parse().unwrap()
    }

    pub(crate) fn script(&self) -> Script {
        let text = toml::to_string(&self.script).unwrap();
        let script = Script::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", self.name));
        Script { again: Some(AGAIN.to_owned()), left_out: Some(LEFT_OUT.to_owned()), ..script }
    }
}
