//! An attack as a file: what it tries, what it is given, and what must be true afterwards.
//!
//! This knows nothing of cells: whoever runs an attack says what came of it as an [`Outcome`], and [`Attack::judge`]
//! says what is violations with that. So the same files serve every backend, and the whole product.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde::Deserialize;

/// The word a script prints when it got what it must not get.
const BREACH: &str = "BREACH";
/// The word a script prints when it came to its end, so that a missing tool does not look like a wall.
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
    /// It runs on a terminal.
    #[serde(default)]
    pub(crate) terminal: bool,
    #[serde(default)]
    pub(crate) workspace: Workspace,
    /// Limits other than those of [`limits`].
    #[serde(default)]
    pub(crate) limits: toml::Table,
    /// What stands in the workspace before.
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
    /// With `prelude.pl` before it.
    Perl,
}

/// How the workspace is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Workspace {
    #[default]
    Layered,
    Direct,
}

/// What must be true, beside what must be true of every attack.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Expect {
    /// The ends that are fine, each as [`Outcome::end`] writes it; `exited:0` if none is named.
    pub(crate) ends: Vec<String>,
    /// What is printed; `TRIED` if nothing is named.
    pub(crate) prints: Vec<String>,
    pub(crate) lacks: Vec<String>,
    /// What the layer holds at a path, by kind.
    pub(crate) layer: BTreeMap<String, String>,
    /// The layer holds at least that many entries, since it is what the host has to cope with.
    pub(crate) entries: usize,
    /// The cell runs the next command as if nothing had been.
    pub(crate) answers: bool,
}

/// What came of an attack.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    /// `exited:0`, `signaled:9`, `limited:time`, `stopped`.
    pub(crate) end: String,
    pub(crate) output: String,
    /// Paths in the layer, with their kinds.
    pub(crate) layer: Vec<(String, String)>,
    /// The next command ran.
    pub(crate) answers: bool,
    /// What the attack must not learn.
    pub(crate) secret: String,
}

impl Attack {
    /// All attacks of a folder, by name.
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

    /// Limits small enough that running into them is quick.
    pub(crate) fn limits(&self) -> toml::Table {
        let mut limits: toml::Table = toml::from_str(
            "memory = 268435456\nprocesses = 64\ncpu_percent = 200\ntime = 30.0\ndisk = 67108864\nfiles = 20000\noutput = 1048576\nopen_files = 256\n",
        )
        .unwrap();
        limits.extend(self.limits.clone());
        limits
    }

    /// What is violations; nothing, if the walls held.
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

/// One thing that is not as it must be.
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
    /// Something of the host is not as it was.
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
