//! The parts of a scenario that are needed to play it with `choir`; the sandbox's tests explain them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use scripted_model::Script;

use crate::test_computer::TestComputer;

/// One scenario.
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) objective: String,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) script: Script,
    pub(crate) state: String,
    pub(crate) after: BTreeMap<String, String>,
    pub(crate) calls: Vec<String>,
}

/// Scenarios that need more than one process on a new machine, or may end differently after a kill. The sandbox's own
/// tests kill the processes of all scenarios.
const ELSEWHERE: [&str; 8] = ["person", "pages", "mcp", "settings", "budget", "beside", "attached", "crash"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/scenarios")
}

impl Scenario {
    /// All in which the person does nothing, so that the process alone decides how they go.
    pub(crate) fn all() -> Vec<Self> {
        let paths = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
        let mut paths: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
        paths.sort();
        let names = paths.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        let tables = names.map(|name| (table(&name), name)).filter(|(table, _)| is_alone(table));
        tables.map(|(table, name)| Self::from(&name, &table)).collect()
    }

    pub(crate) fn read(name: &str) -> Self {
        Self::from(name, &table(name))
    }

    fn from(name: &str, table: &toml::Table) -> Self {
        let expect = &table["expect"];
        let state = expect["state"].as_str().unwrap();
        let calls = expect["calls"].as_array().unwrap().iter();
        let files = texts(table.get("files"));
        let mut after = files.clone();
        after.extend(texts(expect.get("files")));
        for gone in expect.get("absent").and_then(toml::Value::as_array).into_iter().flatten() {
            after.remove(gone.as_str().unwrap());
        }
        let mut calls: Vec<String> = calls.map(|call| call.as_str().unwrap().to_owned()).collect();
        calls.sort();
        Self {
            name: name.to_owned(),
            objective: table["objective"].as_str().unwrap().to_owned(),
            files,
            script: Script::parse(&toml::to_string(&table["script"]).unwrap()).unwrap(),
            state: state.to_owned(),
            after,
            calls,
        }
    }

    /// A computer with its files.
    pub(crate) fn computer(&self) -> TestComputer {
        let files: Vec<(&str, &str)> = self.files.iter().map(|(path, text)| (&**path, &**text)).collect();
        TestComputer::over(&files)
    }
}

/// Whether a process alone brings it to its end.
fn is_alone(table: &toml::Table) -> bool {
    let expect = &table["expect"];
    // The models of such a machine are those of the catalog, and can read much.
    let reads_little = table["script"].get("context").is_some();
    !reads_little
        && !ELSEWHERE.iter().any(|key| table.contains_key(*key))
        && ["completed", "failed"].contains(&expect["state"].as_str().unwrap())
}

fn table(name: &str) -> toml::Table {
    let path = folder().join(name).with_extension("toml");
    std::fs::read_to_string(path).unwrap().parse().unwrap()
}

fn texts(value: Option<&toml::Value>) -> BTreeMap<String, String> {
    let table = value.and_then(toml::Value::as_table).into_iter().flatten();
    table.map(|(path, text)| (path.clone(), text.as_str().unwrap().to_owned())).collect()
}
