//! An attack as a file: what it tries, what it is given, and what must hold afterwards.
//!
//! This module knows nothing about cells. The runner describes the result of an attack as an [`Outcome`], and
//! [`Attack::judge`] lists the violations. So the same files test every backend, and the whole product.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

/// Printed by a script that got what it must not get.
const BREACH: &str = "BREACH";
/// Printed by a script at its end, so that a missing tool does not look like working isolation.
const TRIED: &str = "TRIED";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Attack {
    /// The file's name.
    #[serde(skip)]
    pub(crate) name: String,
    /// What it tries, and why that must fail.
    pub(crate) about: String,
    /// The script.
    pub(crate) run: String,
    #[serde(default)]
    pub(crate) with: Interpreter,
    /// Run it on a terminal.
    #[serde(default)]
    pub(crate) terminal: bool,
    #[serde(default)]
    pub(crate) workspace: Workspace,
    /// Overrides of the default limits.
    #[serde(default)]
    pub(crate) limits: toml::Table,
    /// Files in the workspace before the attack.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) expect: Expect,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Interpreter {
    #[default]
    Sh,
    /// With `prelude.pl` prepended.
    Perl,
}

/// How the workspace is mounted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workspace {
    #[default]
    Layered,
    Direct,
}

/// What must hold in addition to the rules for every attack.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Expect {
    /// The allowed ends, in the form of [`Outcome::end`]; `exited:0` by default.
    pub(crate) ends: Vec<String>,
    /// Texts that must be printed; `TRIED` by default.
    pub(crate) prints: Vec<String>,
    pub(crate) lacks: Vec<String>,
    /// The expected kind of the layer's entry at each path.
    pub(crate) layer: BTreeMap<String, String>,
    /// The minimum number of entries in the layer, which the host must then be able to handle.
    pub(crate) entries: usize,
    /// The cell must still run the next command.
    pub(crate) answers: bool,
}

/// The result of an attack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// `exited:0`, `signaled:9`, `limited:time`, `stopped`.
    pub(crate) end: String,
    pub(crate) output: String,
    /// Paths in the layer, with their kinds.
    pub(crate) layer: Vec<(String, String)>,
    /// The next command ran.
    pub(crate) answers: bool,
    /// The secret that the attack must not learn.
    pub(crate) secret: String,
}

impl Attack {
    /// All attacks of a folder, sorted by name.
    pub(crate) fn all(folder: &Path) -> Vec<Self> {
        let mut attacks: Vec<Self> = std::fs::read_dir(folder)
            .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
            .map(|path| Self::read(&path))
            .collect();
        attacks.sort_by(|a, b| a.name.cmp(&b.name));
        attacks
    }

    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let mut attack: Self = toml::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        attack.name = path.file_stem().unwrap().to_string_lossy().into_owned();
        if attack.with == Interpreter::Perl {
            let prelude = std::fs::read_to_string(path.with_file_name("prelude.pl")).unwrap();
            attack.run = format!("{prelude}\n{}", attack.run);
        }
        attack
    }

    pub(crate) fn argv(&self) -> [&str; 3] {
        match self.with {
            Interpreter::Sh => ["/bin/sh", "-c", &self.run],
            Interpreter::Perl => ["/usr/bin/perl", "-e", &self.run],
        }
    }

    /// Limits small enough to be reached quickly.
    pub(crate) fn limits(&self) -> toml::Table {
        let mut limits: toml::Table = toml::from_str(
            "memory = 268435456\nprocesses = 64\ncpu_percent = 200\ntime = 30.0\ndisk = 67108864\nfiles = 20000\noutput = 1048576\nopen_files = 256\n",
        )
        .unwrap();
        limits.extend(self.limits.clone());
        limits
    }

    /// The violations; none if the isolation held.
    pub(crate) fn judge(&self, outcome: &Outcome) -> Vec<Violation> {
        let mut violations = Vec::new();
        let expect = &self.expect;
        let default = |named: &[String], otherwise: &str| {
            if named.is_empty() { vec![otherwise.to_owned()] } else { named.to_vec() }
        };
        let ends = default(&expect.ends, "exited:0");
        if !ends.contains(&outcome.end) {
            violations.push(Violation::Ended { was: outcome.end.clone(), wanted: ends.join(" or ") });
        }
        for text in default(&expect.prints, TRIED) {
            if !outcome.output.contains(&text) {
                violations.push(Violation::NotPrinted(text));
            }
        }
        let lacks = expect.lacks.iter().map(String::as_str).chain([BREACH, outcome.secret.as_str()]);
        for text in lacks.filter(|text| outcome.output.contains(text)) {
            violations.push(Violation::Printed(text.to_owned()));
        }
        let found: BTreeMap<&str, &str> =
            outcome.layer.iter().map(|(path, kind)| (path.as_str(), kind.as_str())).collect();
        for (path, kind) in &expect.layer {
            let is = found.get(path.as_str()).copied().unwrap_or("absent");
            if is != kind {
                violations.push(Violation::Layer {
                    path: path.clone(),
                    is: is.to_owned(),
                    wanted: kind.clone(),
                });
            }
        }
        if outcome.layer.len() < expect.entries {
            violations.push(Violation::Entries { were: outcome.layer.len(), wanted: expect.entries });
        }
        if expect.answers && !outcome.answers {
            violations.push(Violation::Silent);
        }
        violations
    }
}

/// A violated expectation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    Ended {
        was: String,
        wanted: String,
    },
    NotPrinted(String),
    Printed(String),
    Layer {
        path: String,
        is: String,
        wanted: String,
    },
    Entries {
        were: usize,
        wanted: usize,
    },
    Silent,
    /// Something on the host has changed.
    Machine(String),
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended { was, wanted } => write!(f, "it ended with {was}, not with {wanted}"),
            Self::NotPrinted(text) => write!(f, "it did not print {text:?}"),
            Self::Printed(text) => write!(f, "it printed {text:?}"),
            Self::Layer { path, is, wanted } => write!(f, "the layer has {is} at {path:?}, not {wanted}"),
            Self::Entries { were, wanted } => write!(f, "the layer has {were} entries, fewer than {wanted}"),
            Self::Silent => write!(f, "the cell does not answer any more"),
            Self::Machine(what) => write!(f, "{what}"),
        }
    }
}
