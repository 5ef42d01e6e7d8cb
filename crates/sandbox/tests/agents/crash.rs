//! The crash matrix: the log of a finished scenario is cut after every single event, as a power cut would, and the run
//! goes on from there to the same end.

use event_log::EventLog;
use rusqlite::Connection;
use scripted_model::Wire;
use shared_types::{Event, EventName, Seq};

use crate::after::{Same, Stopped, same};
use crate::end::End;
use crate::scenario::Scenario;
use crate::stage::Stage;

/// A scenario that was played to its end, and where it can be stopped.
pub(crate) struct Played<'a> {
    stage: Stage<'a>,
    end: Same,
    stops: Vec<(Seq, EventName)>,
}

/// Plays a scenario to its end.
pub(crate) fn whole(scenario: &Scenario) -> Result<Played<'_>, String> {
    let stage = Stage::new(scenario, Wire::Anthropic);
    let computer = stage.prepare();
    let first = computer.log().head().seq;
    let end = same(&stage.carry_on(computer)?);
    let computer = computer::client::open_exclusive(&stage.paths()).map_err(|e| e.to_string())?;
    let mut events: Vec<Event> = stage.runs.iter().flat_map(|run| stage.events(&computer, *run)).collect();
    events.sort_by_key(|event| event.seq);
    drop(computer);
    let ends = appends(&stage);
    let stops = events.iter().filter(|event| event.seq >= first && ends.contains(&event.seq.0));
    let stops = stops.map(|event| (event.seq, event.payload.name())).collect();
    Ok(Played { stage, end, stops })
}

impl Played<'_> {
    pub(crate) fn stops(&self) -> impl Iterator<Item = (&Self, &(Seq, EventName))> {
        self.stops.iter().map(move |stop| (self, stop))
    }

    /// Stops it after one of its events, and lets it go on from there.
    pub(crate) fn stop_after(&self, (seq, name): &(Seq, EventName)) -> Result<(), String> {
        let scenario = self.stage.scenario;
        let wrong = |what: String| format!("{}, stopped after {name} ({seq}): {what}", scenario.name);
        let stage = Stage::new(scenario, Wire::Anthropic);
        copy(&self.stage, &stage);
        cut(&stage, seq.0);
        let mut stopped = Stopped::default();
        stopped.read(&stage).map_err(wrong)?;
        let take = || computer::client::open_exclusive(&stage.paths()).map_err(|e| wrong(e.to_string()));
        let end = stage.carry_on(take()?).map_err(wrong)?;
        stage.judge_stopped(&take()?, &end, &self.end, &stopped).map_err(wrong)
    }
}

/// What a run comes to that was cut off while a call was under way.
pub(crate) fn cut_off_in_a_call(scenario: &Scenario) -> Result<End, String> {
    let played = whole(scenario)?;
    let call = played.stops.iter().find(|(_, name)| name.to_string() == "tool.call");
    let (seq, _) = call.ok_or("no call was recorded by itself")?;
    let stage = Stage::new(scenario, Wire::Anthropic);
    copy(&played.stage, &stage);
    cut(&stage, seq.0);
    stage.carry_on(computer::client::open_exclusive(&stage.paths()).map_err(|e| e.to_string())?)
}

/// Where appends end. Nothing is ever stopped inside one.
pub(crate) fn appends(stage: &Stage<'_>) -> Vec<u64> {
    let database = Connection::open(stage.paths().state.join("state.sqlite")).unwrap();
    let mut ends = database.prepare("SELECT last FROM commands").unwrap();
    ends.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(|end| end.unwrap().unsigned_abs()).collect()
}

fn copy(from: &Stage<'_>, to: &Stage<'_>) {
    let (from, to) = (from.paths().state, to.paths().state);
    std::fs::create_dir_all(&to).unwrap();
    for name in ["state.sqlite", "blobs"] {
        let source = from.join(name);
        if source.is_dir() {
            let status = std::process::Command::new("cp").arg("-r").arg(&source).arg(to.join(name)).status();
            assert!(status.unwrap().success());
        } else if source.exists() {
            std::fs::copy(&source, to.join(name)).unwrap();
        }
    }
}

/// Takes away everything after an event. Lists and files are made again from what is left.
fn cut(stage: &Stage<'_>, seq: u64) {
    let database = Connection::open(stage.paths().state.join("state.sqlite")).unwrap();
    let seq = i64::try_from(seq).unwrap();
    for table in ["events", "snapshots"] {
        database.execute(&format!("DELETE FROM {table} WHERE seq > ?1"), [seq]).unwrap();
    }
    database.execute("DELETE FROM commands WHERE last > ?1", [seq]).unwrap();
}
