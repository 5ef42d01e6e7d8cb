//! Runs are read by the names of their fields where they are shown. Types that read all of them would be another
//! fifteen kilobytes of a bundle that people wait for; the tests below hold every name against the contract.

use serde_json::{Map, Value};
use shared_types::Timestamp;

use crate::clock;

/// A text, empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A number, zero if there is none.
pub(crate) fn number(value: &Value, key: &str) -> u64 {
    value.get(key).and_then(Value::as_u64).unwrap_or_default()
}

pub(crate) fn is(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// A list, empty if there is none.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A moment.
pub(crate) fn moment(value: &Value, key: &str) -> Timestamp {
    Timestamp::from_millis(number(value, key) as i64)
}

/// An object of these fields; what is null is left out.
pub(crate) fn object(fields: &[(&str, Value)]) -> Value {
    let mut map = Map::new();
    for (key, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        map.insert((*key).to_owned(), value.clone());
    }
    Value::Object(map)
}

/// `$0.31`, from millionths.
pub(crate) fn money(micros: u64) -> String {
    match micros {
        0 => "$0".into(),
        1..10_000 => "under 1¢".into(),
        _ => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

/// `12.3k`
pub(crate) fn short(n: u64) -> String {
    match n {
        0..1000 => n.to_string(),
        1000..1_000_000 => format!("{}.{}k", n / 1000, n % 1000 / 100),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

/// What something took, in a line.
pub(crate) fn cost(of: &Value) -> String {
    let (micros, tokens) = (number(of, "micros"), number(of, "tokens"));
    let mut out = if tokens == 0 { String::new() } else { format!("{} tokens", short(tokens)) };
    if micros > 0 {
        if !out.is_empty() {
            out.push_str(" · ");
        }
        out.push_str(&money(micros));
    }
    out
}

/// `4 s`, `6:12`, `1:02:00`
pub(crate) fn lasted(millis: u64) -> String {
    let seconds = millis / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

/// How a run or an agent stands, in a word, and how that looks.
pub(crate) fn state(of: &str) -> (&'static str, &'static str) {
    match of {
        "running" => ("working", "chip run"),
        "working" => ("working", "chip run"),
        "waiting" => ("waits for you", "chip warn"),
        "paused" => ("paused", "chip warn"),
        "cancelled" => ("stopped", "chip"),
        "failed" => ("failed", "chip bad"),
        _ => ("done", "chip ok"),
    }
}

/// Whether nothing more comes of a run.
pub(crate) fn is_over(line: &Value) -> bool {
    matches!(text(line, "state"), "completed" | "failed" | "cancelled")
}

/// The sign of a role.
pub(crate) fn sign(role: &str) -> &'static str {
    match role {
        "conductor" => "activity",
        "writer" => "feather",
        "researcher" => "search",
        "terminal" => "square-terminal",
        _ => "sparkles",
    }
}

/// A role as a name.
pub(crate) fn name(role: &str) -> String {
    let mut name = role.to_owned();
    if let Some(first) = name.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    name
}

/// Where untrusted words came from, in words; empty if from nowhere.
pub(crate) fn origins(of: &Value) -> String {
    let words = items(of, "taint").iter().filter_map(Value::as_str).map(|label| match label {
        "web" => "a web page",
        "import" => "an import",
        "command" => "a command with the network",
        "mcp" => "a tool of somebody else",
        other => other,
    });
    words.collect::<Vec<_>>().join(", ")
}

/// Whether a question is about a call that lies in the outbox, and needs no answer.
pub(crate) fn is_outgoing(question: &Value) -> bool {
    question["about"].get("outgoing").is_some()
}

/// What a model costs, for a million tokens read and written.
pub(crate) fn price(model: &Value) -> String {
    match (
        model.get("input_price").and_then(Value::as_u64),
        model.get("output_price").and_then(Value::as_u64),
    ) {
        (Some(0), Some(0)) => "free".into(),
        (Some(read), Some(written)) => format!("{} in, {} out per million", money(read), money(written)),
        _ => "price unknown".into(),
    }
}

/// What a budget allows, in a line.
pub(crate) fn allows(budget: &Value) -> String {
    let mut parts = Vec::new();
    let mut part = |key: &str, word: &dyn Fn(u64) -> String| {
        if let Some(n) = budget.get(key).and_then(Value::as_u64) {
            parts.push(word(n));
        }
    };
    part("micros", &money);
    part("seconds", &|n| lasted(n * 1000));
    part("tokens", &|n| format!("{} tokens", short(n)));
    part("steps", &|n| clock::plural(n, "step"));
    if parts.is_empty() { "no limit".into() } else { parts.join(" · ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared_types::payload::run::{AskKind, Budget, Reply, Scope};
    use shared_types::wire::{
        Agent, AgentState, GestureOnRun, RunCost, RunDetails, RunGesture, RunLine, RunQuestion, RunState,
        StartRun, Step, StepKind,
    };
    use shared_types::{AskId, ContentRef, OpId, RunId, Seq, Taint, TaskId};

    use super::*;

    #[test]
    fn what_something_took_is_short() {
        assert_eq!(money(312_345), "$0.31");
        assert_eq!(money(12_000_000), "$12.00");
        assert_eq!(money(900), "under 1¢");
        assert_eq!(short(12_345), "12.3k");
        assert_eq!(lasted(372_000), "6:12");
        assert_eq!(cost(&json!({ "tokens": 1500, "micros": 20_000 })), "1.5k tokens · $0.02");
        assert_eq!(cost(&json!({})), "");
        assert_eq!(allows(&json!({})), "no limit");
        assert_eq!(allows(&json!({ "micros": 1_000_000, "seconds": 90 })), "$1.00 · 1:30");
    }

    #[test]
    fn names_are_those_of_the_contract() {
        let cost = RunCost { steps: 1, tokens: 2, micros: 3, unpriced: 4 };
        let line = RunLine {
            run: RunId::from_bytes([1; 16]),
            title: "t".into(),
            state: RunState::Completed,
            reason: Some("r".into()),
            seq: Seq(9),
            started: Timestamp::from_millis(5),
            ended: Some(Timestamp::from_millis(6)),
            cost,
            asks: 1,
            undone: true,
        };
        let agent = Agent {
            task: TaskId::from_bytes([2; 16]),
            parent: Some(TaskId::from_bytes([3; 16])),
            role: "writer".into(),
            title: "t".into(),
            state: AgentState::Working,
            doing: "d".into(),
            cost,
            taint: vec![Taint::WEB],
        };
        let step = Step {
            seq: Seq(7),
            ts: Timestamp::from_millis(8),
            task: Some(agent.task),
            kind: StepKind::Call,
            label: "l".into(),
            op: Some(OpId::from_bytes([4; 16])),
            undone: true,
            failed: true,
            files: 2,
            cost,
        };
        let about = AskKind::Question {
            call: OpId::from_bytes([4; 16]),
            text: "?".into(),
            choices: vec!["a".into()],
        };
        let question = RunQuestion {
            ask: AskId::from_bytes([5; 16]),
            run: line.run,
            task: agent.task,
            role: "writer".into(),
            about,
            input: Some("i".into()),
            diff: Some("d".into()),
            taint: vec![Taint::IMPORT],
            leaves_in: Some(4000),
        };
        let details = RunDetails {
            line,
            objective: "o".into(),
            model: None,
            budget: Budget { micros: Some(1), ..Budget::default() },
            agents: vec![agent],
            questions: vec![question],
            steps: vec![step],
            earlier: 3,
            summary: Some("s".into()),
            results: Vec::new(),
        };
        let value = serde_json::to_value(details).unwrap();
        let line = &value["line"];
        assert!(is_over(line) && is(line, "undone"));
        assert_eq!((number(line, "seq"), moment(line, "started").millis(), number(line, "asks")), (9, 5, 1));
        assert_eq!((text(line, "reason"), text(line, "title"), number(line, "ended")), ("r", "t", 6));
        assert_eq!(number(&line["cost"], "tokens"), 2);
        let agent = &items(&value, "agents")[0];
        assert_eq!(
            (text(agent, "role"), text(agent, "doing"), text(agent, "state")),
            ("writer", "d", "working")
        );
        assert_eq!((text(agent, "parent").len(), origins(agent).as_str()), (36, "a web page"));
        let step = &items(&value, "steps")[0];
        assert_eq!((text(step, "kind"), text(step, "label"), number(step, "files")), ("call", "l", 2));
        assert!(is(step, "failed") && is(step, "undone") && text(step, "op").len() == 36);
        let question = &items(&value, "questions")[0];
        assert_eq!(
            (text(question, "input"), text(question, "diff"), text(question, "role")),
            ("i", "d", "writer")
        );
        assert_eq!(number(question, "leaves_in"), 4000);
        assert_eq!(text(&question["about"]["question"], "text"), "?");
        assert_eq!((number(&value, "earlier"), text(&value, "summary")), (3, "s"));
        assert_eq!(allows(&value["budget"]), "under 1¢");
    }

    #[test]
    fn approvals_are_read_by_the_names_of_the_contract() {
        let about = AskKind::Approval {
            call: OpId::from_bytes([4; 16]),
            tool: "exec".into(),
            title: "rm".into(),
            input: ContentRef::of(b"{}"),
            why: "w".into(),
            pattern: "p".into(),
            is_final: true,
        };
        let value = serde_json::to_value(about).unwrap();
        let it = &value["approval"];
        assert_eq!((text(it, "tool"), text(it, "title"), text(it, "why")), ("exec", "rm", "w"));
        assert!(text(it, "pattern") == "p" && is(it, "is_final"));
        let about = AskKind::Outgoing {
            call: OpId::from_bytes([4; 16]),
            tool: "exec".into(),
            title: "git push".into(),
            input: ContentRef::of(b"{}"),
            until: Timestamp::from_millis(7),
        };
        let value = serde_json::to_value(about).unwrap();
        let it = &value["outgoing"];
        assert_eq!(text(it, "title"), "git push");
    }

    #[test]
    fn what_is_sent_is_what_the_contract_reads() {
        let (command, task) = (crate_id(1), crate_id(2));
        let read = |gesture: Value| {
            let body = object(&[("command", command.clone()), ("gesture", gesture)]);
            serde_json::from_value::<GestureOnRun>(body).unwrap().gesture
        };
        assert_eq!(read("pause".into()), RunGesture::Pause);
        assert_eq!(read("take_over".into()), RunGesture::TakeOver);
        assert_eq!(read("stop".into()), RunGesture::Stop);
        let resume = object(&[("resume", object(&[("budget", object(&[("micros", 5.into())]))]))]);
        assert!(matches!(read(resume), RunGesture::Resume { budget: Some(b) } if b.micros == Some(5)));
        assert!(matches!(read(object(&[("resume", object(&[]))])), RunGesture::Resume { budget: None }));
        let steer = object(&[("steer", object(&[("task", Value::Null), ("words", "w".into())]))]);
        assert!(matches!(read(steer), RunGesture::Steer { task: None, .. }));
        assert!(matches!(
            read(object(&[("trust", object(&[("task", task.clone())]))])),
            RunGesture::Trust { .. }
        ));
        let reply = object(&[("allow", "run".into())]);
        let answer = object(&[("answer", object(&[("ask", task), ("reply", reply)]))]);
        assert!(matches!(read(answer), RunGesture::Answer { reply: Reply::Allow(Scope::Run), .. }));
        let start = object(&[
            ("command", command.clone()),
            ("run", crate_id(3)),
            ("objective", "o".into()),
            ("attached", vec![Value::from("a.md")].into()),
            ("model", Value::Null),
            ("budget", object(&[])),
        ]);
        let start: StartRun = serde_json::from_value(start).unwrap();
        assert_eq!((start.attached.len(), start.model, start.budget), (1, None, Budget::default()));
    }

    fn crate_id(byte: u8) -> Value {
        OpId::from_bytes([byte; 16]).to_string().into()
    }
}
