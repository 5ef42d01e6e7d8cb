//! `choir.toml`, overridden by `CHOIR_*` variables; every value knows where it came from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isolation::Limits;
use serde::Serialize;
use toml::{Table, Value};

use crate::cells::{BackendKind, CellSettings};
use crate::error::{ComputerError, ErrorCode};

/// Where a setting comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    Default,
    File(PathBuf),
    Variable(String),
}

impl std::fmt::Display for SettingSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "${name}"),
        }
    }
}

/// One setting as `choir doctor` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct SettingLine {
    pub key: &'static str,
    pub value: String,
    pub origin: SettingSource,
    pub help: &'static str,
}

/// The configuration of one computer.
#[derive(Debug, Clone)]
pub struct Config {
    /// A checkpoint is made after this many operations on files; 0 turns it off.
    pub auto_operations: u64,
    /// A checkpoint is made this many seconds after the first operation without one; 0 turns it off.
    pub auto_seconds: u64,
    /// Where checkpoints are pushed; `{user}` stands for the user's id.
    pub remote: Option<String>,
    pub push: bool,
    /// Where commands run, and what they may use.
    pub cells: CellSettings,
    pub settings: Vec<SettingLine>,
}

struct Key {
    /// Section and name, as `choir doctor` shows them.
    full: &'static str,
    default: Value,
    help: &'static str,
}

impl Key {
    fn section(&self) -> &'static str {
        self.full.split_once('.').map_or(self.full, |(section, _)| section)
    }

    fn name(&self) -> &'static str {
        self.full.split_once('.').map_or(self.full, |(_, name)| name)
    }
}

fn keys() -> Vec<Key> {
    let key = |full, default: Value, help| Key { full, default, help };
    let text = || Value::String(String::new());
    vec![
        key("git.auto_operations", 50.into(), "checkpoint after this many operations on files (0: never)"),
        key("git.auto_seconds", 900.into(), "checkpoint when one has waited this long (0: never)"),
        key("git.remote", text(), "where checkpoints are pushed; {user} is the user's id"),
        key("git.push", false.into(), "push every checkpoint to the remote"),
        key("cells.backend", "jail".into(), "isolation backend: jail or container"),
        key("cells.image", text(), "a root file system or OCI layout in place of the machine's own programs"),
        key(
            "cells.tools",
            Value::Array(Vec::new()),
            "folders of programs that commands see, read-only, beside the machine's own",
        ),
        key("cells.memory_mb", 2048.into(), "memory per command, in MB"),
        key("cells.processes", 512.into(), "processes per command"),
        key("cells.cpu_percent", 200.into(), "CPU per command, in percent of one processor"),
        key("cells.seconds", 600.into(), "time limit per command, in seconds"),
        key("cells.disk_mb", 4096.into(), "disk space per command, in MB"),
        key("cells.trash_mb", 1024.into(), "ignored files that commands replaced, kept for undo, in MB"),
    ]
}

impl Config {
    /// Reads the file of a computer, if it has one, and the environment.
    pub fn load(state: &Path) -> Result<Self> {
        Self::read(state).map_err(|e| ComputerError::new(ErrorCode::BadRequest, format!("{e:#}")).into())
    }

    fn read(state: &Path) -> Result<Self> {
        let path = match std::env::var_os("CHOIR_CONFIG") {
            Some(path) => PathBuf::from(path),
            None => state.join("choir.toml"),
        };
        let table = match std::fs::read_to_string(&path) {
            Ok(text) => {
                text.parse::<Table>().with_context(|| format!("{} is not valid TOML", path.display()))?
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Table::new(),
            Err(e) => return Err(e).with_context(|| format!("{} cannot be read", path.display())),
        };
        Self::resolve(&table, &path, &|name| std::env::var(name).ok())
    }

    fn resolve(table: &Table, path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self> {
        check_known(table, path)?;
        let mut values = BTreeMap::new();
        let mut settings = Vec::new();
        for key in keys() {
            let (value, origin) = value_of(&key, table, path, variable)?;
            settings.push(SettingLine { key: key.full, value: value.to_string(), origin, help: key.help });
            values.insert(key.full, value);
        }
        let number = |key| {
            values
                .get(key)
                .and_then(Value::as_integer)
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or_default()
        };
        let text = |key| values.get(key).and_then(Value::as_str).filter(|s| !s.is_empty()).map(str::to_owned);
        let list = values.get("cells.tools").and_then(Value::as_array).cloned().unwrap_or_default();
        let limits = Limits {
            memory: number("cells.memory_mb") << 20,
            processes: u32::try_from(number("cells.processes")).unwrap_or(u32::MAX),
            cpu_percent: u32::try_from(number("cells.cpu_percent")).unwrap_or(u32::MAX),
            time: Duration::from_secs(number("cells.seconds")),
            disk: number("cells.disk_mb") << 20,
            ..Limits::default()
        };
        let tools = list.iter().filter_map(Value::as_str).map(|tool| at_home(tool, variable)).collect();
        let backend = match text("cells.backend").as_deref() {
            Some("jail") => BackendKind::Jail,
            Some("container") => BackendKind::Container,
            other => bail!("[cells] backend = {:?} should be jail or container", other.unwrap_or_default()),
        };
        let image = text("cells.image").map(|image| at_home(&image, variable));
        Ok(Self {
            auto_operations: number("git.auto_operations"),
            auto_seconds: number("git.auto_seconds"),
            remote: text("git.remote"),
            push: values.get("git.push").and_then(Value::as_bool).unwrap_or_default(),
            cells: CellSettings { backend, image, tools, limits, trash: number("cells.trash_mb") << 20 },
            settings,
        })
    }
}

/// A path, with `~/` replaced by the home folder.
fn at_home(path: &str, variable: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (path.strip_prefix("~/"), variable("HOME")) {
        (Some(below), Some(home)) => PathBuf::from(home).join(below),
        (Some(_) | None, _) => PathBuf::from(path),
    }
}

/// Refuses unknown keys, so that a misspelled one does not silently become the default.
fn check_known(table: &Table, path: &Path) -> Result<()> {
    for (section, value) in table {
        // The server reads its own sections of the same file.
        if ["server", "models", "mcp"].contains(&section.as_str()) {
            continue;
        }
        let Value::Table(entries) = value else {
            bail!("{}: '{section}' is outside of a section such as [git]", path.display());
        };
        let known: Vec<_> = keys().iter().filter(|key| key.section() == section).map(Key::name).collect();
        if known.is_empty() {
            bail!(
                "{}: [{section}] is not a section; there are [git], [cells], [server], [models] and [mcp]",
                path.display()
            );
        }
        if let Some(name) = entries.keys().find(|name| !known.contains(&name.as_str())) {
            bail!("{}: [{section}] {name} is not a setting; there are {}", path.display(), known.join(", "));
        }
    }
    Ok(())
}

fn value_of(
    key: &Key,
    table: &Table,
    path: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<(Value, SettingSource)> {
    let name = format!("CHOIR_{}_{}", key.section(), key.name()).to_uppercase();
    let (value, origin) = if let Some(text) = variable(&name) {
        let parsed = match &key.default {
            Value::Integer(_) => text.parse().ok().map(Value::Integer),
            Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
            // A list is separated by colons, like PATH.
            Value::Array(_) => {
                let parts = text.split(':').filter(|part| !part.is_empty());
                Some(Value::Array(parts.map(|part| Value::String(part.to_owned())).collect()))
            }
            Value::String(_) | Value::Float(_) | Value::Datetime(_) | Value::Table(_) => {
                Some(Value::String(text.clone()))
            }
        };
        (parsed.unwrap_or(Value::String(text)), SettingSource::Variable(name))
    } else if let Some(value) = table.get(key.section()).and_then(|section| section.get(key.name())) {
        (value.clone(), SettingSource::File(path.to_owned()))
    } else {
        (key.default.clone(), SettingSource::Default)
    };
    // The limits of a command must be greater than zero; elsewhere zero means never.
    let least = if key.section() == "cells" && key.name() != "trash_mb" { 1 } else { 0 };
    let fits = value.same_type(&key.default)
        && value.as_integer().is_none_or(|n| (least..1 << 32).contains(&n))
        && value.as_array().is_none_or(|list| list.iter().all(Value::is_str));
    if !fits {
        let wanted = match &key.default {
            Value::Integer(_) if least > 0 => "a whole number, 1 or more",
            Value::Integer(_) => "a whole number, 0 or more",
            Value::Array(_) => "a list of folders",
            Value::Boolean(_) => "true or false",
            Value::String(_) | Value::Float(_) | Value::Datetime(_) | Value::Table(_) => "a text",
        };
        bail!("{origin}: [{}] {} = {value} should be {wanted}", key.section(), key.name());
    }
    Ok((value, origin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(text: &str, variables: &[(&str, &str)]) -> Result<Config> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        Config::resolve(&text.parse().unwrap(), Path::new("choir.toml"), &find)
    }

    #[test]
    fn a_variable_wins_over_the_file_and_the_file_over_the_default() {
        let config =
            resolve("[git]\nauto_operations = 7\nauto_seconds = 8", &[("CHOIR_GIT_AUTO_SECONDS", "9")])
                .unwrap();
        assert_eq!((config.auto_operations, config.auto_seconds, config.push), (7, 9, false));
        let origins: Vec<_> = config.settings.iter().map(|s| s.origin.to_string()).collect();
        assert_eq!(origins[..4], ["choir.toml", "$CHOIR_GIT_AUTO_SECONDS", "default", "default"]);
    }

    #[test]
    fn what_cells_may_use_is_set_in_plain_units() {
        let config = resolve(
            "[cells]\nmemory_mb = 64\ntools = [\"~/.cargo\", \"/opt/x\"]",
            &[("HOME", "/people/ada"), ("CHOIR_CELLS_SECONDS", "9")],
        )
        .unwrap();
        assert_eq!((config.cells.limits.memory, config.cells.limits.time.as_secs()), (64 << 20, 9));
        assert_eq!(config.cells.tools, [Path::new("/people/ada/.cargo"), Path::new("/opt/x")]);
        let config = resolve("", &[("CHOIR_CELLS_TOOLS", "/a:/b")]).unwrap();
        assert_eq!(config.cells.tools, [Path::new("/a"), Path::new("/b")]);
    }

    #[test]
    fn misspelled_keys_and_wrong_types_are_named() {
        for (text, expected) in [
            ("[git]\nauto_ops = 1", "auto_ops"),
            ("[gti]\npush = true", "[gti]"),
            ("push = true", "push"),
            ("[git]\npush = 3", "[git] push"),
            ("[git]\nauto_seconds = -1", "auto_seconds"),
            ("[cells]\nmemory_mb = 0", "1 or more"),
            ("[cells]\ntools = [1]", "a list of folders"),
            ("[cells]\nbackend = \"paper\"", "jail or container"),
        ] {
            let error = resolve(text, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
