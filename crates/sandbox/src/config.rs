//! `choir.toml`, overridden by `CHOIR_*` variables; every value knows where it came from.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use toml::{Table, Value};

use crate::failure::{Code, Failure};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Default,
    File(PathBuf),
    Variable(String),
}

impl std::fmt::Display for Origin {
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
pub struct Shown {
    pub key: &'static str,
    pub value: String,
    pub origin: Origin,
    pub help: &'static str,
}

/// The configuration of one computer.
#[derive(Debug, Clone)]
pub struct Config {
    /// A checkpoint is made after this many operations on files; 0 turns it off.
    pub auto_operations: u64,
    /// A checkpoint is made when an operation has waited this long for one; 0 turns it off.
    pub auto_seconds: u64,
    /// Where checkpoints are pushed; `{user}` stands for the user's id.
    pub remote: Option<String>,
    pub push: bool,
    pub shown: Vec<Shown>,
}

struct Key {
    section: &'static str,
    name: &'static str,
    default: Value,
    help: &'static str,
}

fn keys() -> [Key; 4] {
    let key = |name, default, help| Key { section: "git", name, default, help };
    [
        key(
            "auto_operations",
            Value::Integer(50),
            "checkpoint after this many operations on files (0: never)",
        ),
        key("auto_seconds", Value::Integer(900), "checkpoint when one has waited this long (0: never)"),
        key("remote", Value::String(String::new()), "where checkpoints are pushed; {user} is the user's id"),
        key("push", Value::Boolean(false), "push every checkpoint to the remote"),
    ]
}

impl Config {
    /// Reads the file of a computer, if it has one, and the environment.
    pub fn load(state: &Path) -> Result<Self> {
        Self::read(state).map_err(|e| Failure::new(Code::BadRequest, format!("{e:#}")).into())
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
        let mut values = Vec::new();
        let mut shown = Vec::new();
        for key in keys() {
            let (value, origin) = value_of(&key, table, path, variable)?;
            let full = match key.name {
                "auto_operations" => "git.auto_operations",
                "auto_seconds" => "git.auto_seconds",
                "remote" => "git.remote",
                _ => "git.push",
            };
            shown.push(Shown { key: full, value: value.to_string(), origin, help: key.help });
            values.push(value);
        }
        let number =
            |at: usize| values[at].as_integer().and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
        Ok(Self {
            auto_operations: number(0),
            auto_seconds: number(1),
            remote: values[2].as_str().filter(|s| !s.is_empty()).map(str::to_owned),
            push: values[3].as_bool().unwrap_or_default(),
            shown,
        })
    }
}

/// A misspelled key is an error, not a default in disguise.
fn check_known(table: &Table, path: &Path) -> Result<()> {
    for (section, value) in table {
        let Value::Table(entries) = value else {
            bail!("{}: '{section}' stands outside of a section such as [git]", path.display());
        };
        let known: Vec<_> = keys().iter().filter(|key| key.section == section).map(|key| key.name).collect();
        if known.is_empty() {
            bail!("{}: [{section}] is not a section; there is [git]", path.display());
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
) -> Result<(Value, Origin)> {
    let name = format!("CHOIR_{}_{}", key.section, key.name).to_uppercase();
    let (value, origin) = if let Some(text) = variable(&name) {
        let parsed = match &key.default {
            Value::Integer(_) => text.parse().ok().map(Value::Integer),
            Value::Boolean(_) => text.parse().ok().map(Value::Boolean),
            Value::String(_) | Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
                Some(Value::String(text.clone()))
            }
        };
        (parsed.unwrap_or(Value::String(text)), Origin::Variable(name))
    } else if let Some(value) = table.get(key.section).and_then(|section| section.get(key.name)) {
        (value.clone(), Origin::File(path.to_owned()))
    } else {
        (key.default.clone(), Origin::Default)
    };
    let fits = value.same_type(&key.default) && value.as_integer().is_none_or(|n| n >= 0);
    if !fits {
        let wanted = match &key.default {
            Value::Integer(_) => "a whole number, 0 or more",
            Value::Boolean(_) => "true or false",
            Value::String(_) | Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => {
                "a text"
            }
        };
        bail!("{origin}: [{}] {} = {value} should be {wanted}", key.section, key.name);
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
        let origins: Vec<_> = config.shown.iter().map(|s| s.origin.to_string()).collect();
        assert_eq!(origins, ["choir.toml", "$CHOIR_GIT_AUTO_SECONDS", "default", "default"]);
    }

    #[test]
    fn misspelled_keys_and_wrong_types_are_named() {
        for (text, expected) in [
            ("[git]\nauto_ops = 1", "auto_ops"),
            ("[gti]\npush = true", "[gti]"),
            ("push = true", "push"),
            ("[git]\npush = 3", "[git] push"),
            ("[git]\nauto_seconds = -1", "auto_seconds"),
        ] {
            let error = resolve(text, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
