//! The key of a provider reaches no event, no content and no file of the computer.

use std::ops::ControlFlow;
use std::path::Path;

use computer::Computer;
use computer::paths::ComputerPaths;
use computer::protocol::{Envelope, Request};
use event_log::{EventLog, read_content};
use shared_types::wire::DesktopAction;
use shared_types::{CommandId, Seq, UserId};

use crate::scenario_host::{ScenarioHost, fixed_id, write};

impl ScenarioHost<'_> {
    /// What the log holds is read as the computer reads it, since a page of the database may part it; everything else
    /// is raw bytes: read models, blobs, layers and files.
    pub(crate) fn keeps_no_key(&self, computer: &Computer) -> Result<(), String> {
        let (_, key) = self.address();
        let found = places_of(&key, &**computer.log(), self.path());
        if found.is_empty() { Ok(()) } else { Err(format!("the key of the model is kept in {found:?}")) }
    }
}

fn places_of(key: &str, log: &dyn EventLog, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    log.scan(Seq(1), &mut |stored| {
        let texts = [&stored.payload, &stored.actor, &stored.taint];
        if texts.iter().any(|text| text.contains(key)) {
            found.push(format!("the event {} ({})", stored.name, stored.seq));
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut contents = Vec::new();
    log.each_content(&mut |hash, _| contents.push(hash)).unwrap();
    for hash in contents {
        if holds(&read_content(log, &hash).unwrap(), key) {
            found.push(format!("the content {hash}"));
        }
    }
    in_files(key, folder, &mut found);
    found
}

fn in_files(key: &str, folder: &Path, found: &mut Vec<String>) {
    let Some(entries) = still_there(std::fs::read_dir(folder)) else { return };
    for entry in entries.map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            in_files(key, &path, found);
        } else if kind.is_file() && still_there(std::fs::read(&path)).is_some_and(|bytes| holds(&bytes, key))
        {
            found.push(path.display().to_string());
        }
    }
}

/// `None` if the file was removed meanwhile.
fn still_there<T>(read: std::io::Result<T>) -> Option<T> {
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        read => Some(read.unwrap()),
    }
}

fn holds(bytes: &[u8], key: &str) -> bool {
    bytes.windows(key.len()).any(|part| part == key.as_bytes())
}

#[test]
fn a_key_that_is_kept_is_found_in_events_contents_and_files() {
    let (folder, key) = (tempfile::tempdir().unwrap(), "sk-scripted-00112233");
    let paths = ComputerPaths::at(folder.path());
    let (computer, _) =
        Computer::create(&paths, UserId::parse("ada").unwrap(), "Ada", &|_, _, _| ()).unwrap();
    let found = || places_of(key, &**computer.log(), folder.path());
    let has = |what: &str| found().iter().any(|paths| paths.contains(what));
    assert_eq!(found(), [""; 0]);
    let command = |number| CommandId::from_bytes(fixed_id(8, number));
    write(&computer, command(0), "small.txt", key);
    assert!(has("the content ") && has("small.txt") && !has("the event "), "{:?}", found());
    write(&computer, command(1), "large.txt", &("x".repeat(1 << 20) + key));
    assert!(has("large.txt") && has("blobs"), "{:?}", found());
    let set = DesktopAction::SetSetting { key: "note".into(), value: key.into() };
    let envelope = Envelope::new(Request::Gesture(set));
    computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ()).into_done().unwrap();
    assert!(has("the event setting"), "{:?}", found());
}
