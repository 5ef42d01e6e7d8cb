//! The crash matrix: the log of a finished scenario is cut after every single event, as a power cut would, and the run
//! goes on from there to the same end.

use event_log::EventLog;
use rusqlite::Connection;
use scripted_model::Wire;
use shared_types::{Event, EventName, Seq};

use crate::expectations::End;
use crate::resumed::{ComparableEnd, StopPoint, same};
use crate::scenario::Scenario;
use crate::scenario_host::ScenarioHost;

/// A scenario that was played to its end, and where it can be stopped.
pub(crate) struct Played<'a> {
    host: ScenarioHost<'a>,
    end: ComparableEnd,
    stops: Vec<(Seq, EventName)>,
}

/// Plays a scenario to its end.
pub(crate) fn whole(scenario: &Scenario) -> Result<Played<'_>, String> {
    let host = ScenarioHost::new(scenario, Wire::Anthropic);
    let computer = host.prepare();
    let first = computer.log().head().seq;
    let end = same(&host.carry_on(computer)?);
    let computer = computer::client::open_exclusive(&host.paths()).map_err(|e| e.to_string())?;
    let mut events: Vec<Event> = host.runs.iter().flat_map(|run| host.events(&computer, *run)).collect();
    events.sort_by_key(|event| event.seq);
    drop(computer);
    let ends = appends(&host);
    let stops = events.iter().filter(|event| event.seq >= first && ends.contains(&event.seq.0));
    let stops = stops.map(|event| (event.seq, event.payload.name())).collect();
    Ok(Played { host, end, stops })
}

impl Played<'_> {
    pub(crate) fn stops(&self) -> impl Iterator<Item = (&Self, &(Seq, EventName))> {
        self.stops.iter().map(move |stop| (self, stop))
    }

    /// Stops it after one of its events, and lets it go on from there.
    pub(crate) fn stop_after(&self, (seq, name): &(Seq, EventName)) -> Result<(), String> {
        let scenario = self.host.scenario;
        let wrong = |what: String| format!("{}, stopped after {name} ({seq}): {what}", scenario.name);
        let host = ScenarioHost::new(scenario, Wire::Anthropic);
        copy(&self.host, &host);
        cut(&host, seq.0);
        let mut stopped = StopPoint::default();
        stopped.read(&host).map_err(wrong)?;
        let take = || computer::client::open_exclusive(&host.paths()).map_err(|e| wrong(e.to_string()));
        let end = host.carry_on(take()?).map_err(wrong)?;
        host.judge_stopped(&take()?, &end, &self.end, &stopped).map_err(wrong)
    }
}

/// What a run comes to that was cut off while a call was under way.
pub(crate) fn cut_off_in_a_call(scenario: &Scenario) -> Result<End, String> {
    let played = whole(scenario)?;
    let call = played.stops.iter().find(|(_, name)| name.to_string() == "tool.call");
    let (seq, _) = call.ok_or("no call was recorded by itself")?;
    let host = ScenarioHost::new(scenario, Wire::Anthropic);
    copy(&played.host, &host);
    cut(&host, seq.0);
    host.carry_on(computer::client::open_exclusive(&host.paths()).map_err(|e| e.to_string())?)
}

/// Where appends end. Nothing is ever stopped inside one.
pub(crate) fn appends(host: &ScenarioHost<'_>) -> Vec<u64> {
    let database = Connection::open(host.paths().state.join("state.sqlite")).unwrap();
    let mut ends = database.prepare("SELECT last FROM commands").unwrap();
    ends.query_map([], |row| row.get::<_, i64>(0)).unwrap().map(|end| end.unwrap().unsigned_abs()).collect()
}

fn copy(from: &ScenarioHost<'_>, to: &ScenarioHost<'_>) {
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
fn cut(host: &ScenarioHost<'_>, seq: u64) {
    let database = Connection::open(host.paths().state.join("state.sqlite")).unwrap();
    let seq = i64::try_from(seq).unwrap();
    for table in ["events", "snapshots"] {
        database.execute(&format!("DELETE FROM {table} WHERE seq > ?1"), [seq]).unwrap();
    }
    database.execute("DELETE FROM commands WHERE last > ?1", [seq]).unwrap();
}
