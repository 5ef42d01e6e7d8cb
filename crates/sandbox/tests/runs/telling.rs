//! How a run is shown: its agents, their activity, its cost and its results.

use computer::error::ErrorCode;
use computer::protocol::{Request, RunRequest, RunResponse};
use kernel::RunAction;
use shared_types::payload::task::TaskOutcome;
use shared_types::wire::{AgentState, DesktopAction, RunControl, RunCost, RunList, RunState, Step, StepKind};
use shared_types::{RunId, Seq, TaskId};

use crate::test_computer::{TestComputer, at, first, reply};

fn doing(computer: &TestComputer, run: RunId, task: TaskId) -> String {
    let details = computer.details(run);
    details.agents.into_iter().find(|agent| agent.id == task).unwrap().doing
}

fn list(computer: &TestComputer, before: Option<Seq>) -> RunList {
    match computer.request(RunRequest::List { before }).unwrap() {
        RunResponse::List(list) => list,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_is_told_from_its_start_to_its_end() {
    let computer = TestComputer::new();
    computer.write("old.md", "one\n");
    let run = computer.start("Write about bees\nin two files");
    let conductor = computer.agent(run, None, "conductor", "bees");
    let writer = computer.agent(run, Some(conductor), "writer", "the text");
    computer.reply(run, conductor, "I hand this to the writer.");
    let call = computer.call(run, writer, "bees.md", "Bees hum.\n");
    computer.call(run, writer, "old.md", "two\n");
    computer.reply(run, writer, "");
    computer.end(run, writer, TaskOutcome::Done);
    computer.end(run, conductor, TaskOutcome::Done);
    computer.complete(run, "It is written.");

    let told = computer.details(run);
    assert_eq!(told.line.state, RunState::Completed);
    assert_eq!(told.line.cost, RunCost { turns: 2, tokens: 30, micros: 500, unpriced: 0 });
    assert!(told.line.ended.is_some() && !told.line.undone);
    assert_eq!(told.objective, "Write about bees\nin two files");
    assert_eq!(told.summary.as_deref(), Some("It is written."));
    assert_eq!(told.results, [at("bees.md"), at("old.md")]);
    let agents: Vec<_> = told.agents.iter().map(|agent| (agent.role.as_str(), agent.state)).collect();
    assert_eq!(agents, [("conductor", AgentState::Done), ("writer", AgentState::Done)]);
    assert_eq!(told.agents[1].parent, Some(conductor));

    let step = |step: &&Step| step.op == Some(call);
    let written = told.steps.iter().find(step).unwrap();
    assert_eq!((written.kind, written.files, written.failed), (StepKind::Call, 1, false));
    assert_eq!((written.label.as_str(), written.task), ("write: bees.md", Some(writer)));
    let labels: Vec<&str> = told.steps.iter().map(|step| step.label.as_str()).collect();
    assert!(
        labels.contains(&"I hand this to the writer.") && labels.contains(&"scripted answered"),
        "{labels:?}"
    );
    assert_eq!(told.steps.first().unwrap().label, "Write about bees");
    assert!(told.steps.is_sorted_by_key(|step| step.seq));

    let RunResponse::StepDetail(parts) =
        computer.request(RunRequest::StepDetail { run: run.to_string(), seq: written.seq }).unwrap()
    else {
        panic!()
    };
    assert!(parts.input.unwrap().contains("\"path\": \"bees.md\""));
    assert_eq!(parts.output.as_deref(), Some("written"));
}

#[test]
fn what_an_agent_does_now_is_said_in_a_few_words() {
    let computer = TestComputer::new();
    let run = computer.start("work");
    let conductor = computer.agent(run, None, "conductor", "all of it");
    assert_eq!(doing(&computer, run, conductor), "waits for the model");
    let worker = computer.delegate(run, conductor, "terminal", "a part");
    assert_eq!(doing(&computer, run, conductor), "waits for terminal");
    assert_eq!(doing(&computer, run, worker), "waits for the model");
    computer.reply(run, conductor, "I wait.");
    assert_eq!(doing(&computer, run, conductor), "waits for terminal");
    computer.begin(run, worker, "make all");
    assert_eq!(doing(&computer, run, worker), "runs make all");
    computer.ask_for(run, conductor, "exec", "rm -rf /", &serde_json::json!({}));
    assert_eq!(doing(&computer, run, conductor), "waits for the person");
    assert_eq!(computer.details(run).line.state, RunState::Waiting);
}

#[test]
fn a_run_is_taken_back_and_brought_back_as_one() {
    let computer = TestComputer::new();
    computer.write("old.md", "one\n");
    let run = computer.start("work");
    let agent = computer.agent(run, None, "conductor", "work");
    computer.call(run, agent, "new.md", "new\n");
    computer.call(run, agent, "old.md", "two\n");
    assert_eq!(computer.undo(run).unwrap_err().code, ErrorCode::RunIsBusy);
    computer.end(run, agent, TaskOutcome::Done);
    computer.complete(run, "done");
    computer.undo(run).unwrap();
    assert_eq!((computer.read("new.md"), computer.read("old.md").as_deref()), (None, Some("one\n")));
    let told = computer.details(run);
    assert!(told.line.undone && told.results == [at("old.md")], "{told:?}");
    assert!(told.steps.iter().filter(|step| step.kind == StepKind::Call).all(|step| step.undone));
    assert!(list(&computer, None).runs[0].undone);
    assert_eq!(computer.undo(run).unwrap_err().code, ErrorCode::Refused);
    computer.redo(run).unwrap();
    assert_eq!(computer.read("new.md").as_deref(), Some("new\n"));
    assert!(!computer.details(run).line.undone);
    assert_eq!(computer.redo(run).unwrap_err().code, ErrorCode::Refused);
}

#[test]
fn runs_are_listed_by_pages_with_those_that_are_long_over() {
    let computer = TestComputer::new();
    let mut all: Vec<RunId> = Vec::new();
    for number in 0..120 {
        let run = computer.start(&format!("run {number}"));
        computer.control(run, RunControl::Stop);
        all.push(run);
    }
    computer.inner.project(&|_, _, _| ()).unwrap();
    let (mut found, mut before) = (Vec::new(), None);
    loop {
        let page = list(&computer, before);
        assert!(page.runs.iter().all(|line| line.ended.is_some() && line.state == RunState::Cancelled));
        found.extend(page.runs.iter().map(|line| line.run));
        before = page.before;
        if before.is_none() {
            break;
        }
    }
    all.reverse();
    assert_eq!(found, all);
    assert_eq!(computer.details(all[119]).line.title, "run 0", "also one that the present has forgotten");
    let digits = all[119].to_string();
    let RunResponse::Details(found) =
        computer.request(RunRequest::Show { run: digits[digits.len() - 12..].to_owned() }).unwrap()
    else {
        panic!()
    };
    assert_eq!(found.line.run, all[119]);
}

#[test]
fn steps_come_in_pages_from_the_newest() {
    let computer = TestComputer::new();
    let run = computer.start("work");
    for number in 0..250 {
        let steer = RunControl::Steer { task: None, words: format!("word {number}") };
        computer.control(run, steer);
    }
    let told = computer.details(run);
    assert_eq!((told.steps.len(), told.earlier), (200, 51));
    assert_eq!(told.steps.last().unwrap().label, "you: word 249");
    let before = Some(told.steps[0].seq);
    let RunResponse::Steps(older) =
        computer.request(RunRequest::Steps { run: run.to_string(), before }).unwrap()
    else {
        panic!()
    };
    assert_eq!((older.len(), older[0].label.as_str()), (51, "work"));
}

#[test]
fn a_reply_whose_bytes_were_purged_still_has_its_line() {
    let computer = TestComputer::new();
    let run = computer.start("work");
    let agent = computer.agent(run, None, "conductor", "work");
    let seq = computer.reply(run, agent, "secret");
    let told = computer.details(run);
    assert!(told.steps.iter().any(|step| step.label == "secret"));
    let hash = shared_types::ContentRef::of(reply("secret").as_bytes()).hash;
    let request =
        computer::protocol::Request::Purge { hashes: vec![hash], paths: Vec::new(), reason: "x".into() };
    computer.ask(request, b"").into_done().unwrap();
    let RunResponse::StepDetail(parts) =
        computer.request(RunRequest::StepDetail { run: run.to_string(), seq }).unwrap()
    else {
        panic!()
    };
    assert_eq!((parts.output, parts.step.label.as_str()), (None, "scripted answered"));
    assert!(!parts.notes.is_empty());
}

#[test]
fn a_failure_is_told_with_its_reason() {
    let computer = TestComputer::new();
    let run = computer.start("work");
    let agent = computer.agent(run, None, "conductor", "work");
    assert_eq!(agent, first(run));
    computer.end(run, agent, TaskOutcome::Failed("no luck".into()));
    computer.record(run, RunAction::Fail { reason: "nothing worked".into() }, Vec::new());
    let told = computer.details(run);
    assert_eq!((told.line.state, told.line.reason.as_deref()), (RunState::Failed, Some("nothing worked")));
    assert_eq!(told.agents[0].doing, "failed: no luck");
    assert!(told.steps.last().unwrap().failed);
}

#[test]
fn every_gesture_is_a_step_and_says_how_the_run_stands() {
    let computer = TestComputer::new();
    let run = computer.start("work");
    for (control, state, reason) in [
        (RunControl::Pause, RunState::Paused, Some("you paused it")),
        (RunControl::Resume { budget: None }, RunState::Running, None),
        (RunControl::TakeOver, RunState::Paused, Some("you took over")),
        (RunControl::TakeOver, RunState::Paused, Some("you took over")),
        (RunControl::Stop, RunState::Cancelled, None),
    ] {
        let line = computer.control(run, control.clone());
        assert_eq!((line.state, line.reason.as_deref()), (state, reason), "{control:?}");
    }
    let labels: Vec<String> = computer.details(run).steps.into_iter().map(|step| step.label).collect();
    assert_eq!(
        labels,
        ["work", "pause", "resume", "take over", "stop the run"],
        "what is so already is no step"
    );
}

#[test]
fn the_model_that_the_person_wants_for_objectives_is_told_before_one_is_given() {
    let computer = TestComputer::new();
    let wanted = || match computer.request(RunRequest::Model).unwrap() {
        RunResponse::Model(model) => model,
        other => panic!("{other:?}"),
    };
    assert_eq!(wanted(), None, "they leave it to the catalog");
    for (role, model) in [("writer", "glm"), ("conductor", "local")] {
        let key = format!("models.role.{role}");
        computer
            .ask(Request::Gesture(DesktopAction::SetSetting { key: key.into(), value: model.into() }), &[]);
    }
    assert_eq!(wanted().as_deref(), Some("local"));
}

#[test]
fn a_turn_is_told_with_what_its_model_was_told_before_it() {
    let computer = TestComputer::new();
    let run = computer.start("work");
    let agent = computer.agent(run, None, "conductor", "work");
    computer.reply(run, agent, "I wonder.");
    computer.control(run, RunControl::Steer { task: None, words: "in metres".into() });
    let seq = computer.reply(run, agent, "In metres, then.");
    computer.control(run, RunControl::Steer { task: None, words: "and in feet".into() });
    let mut parts = match computer.request(RunRequest::StepDetail { run: run.to_string(), seq }).unwrap() {
        RunResponse::StepDetail(parts) => parts,
        other => panic!("{other:?}"),
    };
    agent_host::prompts::add_prompt(&**computer.inner.log(), run, &mut parts).unwrap();
    let told = parts.input.unwrap();
    for words in ["You are the Conductor", "do it well", "I wonder.", "The person says: in metres"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(!told.contains("In metres, then") && !told.contains("in feet"), "{told}");
    assert_eq!(parts.output.as_deref(), Some("In metres, then."));
}

#[test]
fn agents_are_told_what_the_person_changed_after_taking_over() {
    let computer = TestComputer::new();
    computer.write("before.md", "old");
    let run = computer.start("work");
    let conductor = computer.agent(run, None, "conductor", "work");
    let writer = computer.agent(run, Some(conductor), "writer", "write");
    let done = computer.agent(run, Some(conductor), "terminal", "look");
    computer.end(run, done, TaskOutcome::Done);
    computer.call(run, writer, "theirs.md", "by an agent");
    computer.control(run, RunControl::TakeOver);
    computer.write("mine.md", "by hand");
    let line = computer.control(run, RunControl::Resume { budget: None });
    assert_eq!(line.state, RunState::Running);
    let told: Vec<_> =
        computer.details(run).steps.into_iter().filter(|step| step.label.starts_with("you: ")).collect();
    assert_eq!(told.iter().map(|step| step.task).collect::<Vec<_>>(), [Some(conductor), Some(writer)]);
    assert!(told[0].label.contains("these files: mine.md. Look"), "{}", told[0].label);

    // Without changes there is no message, and a pause is not a take-over.
    for control in [RunControl::TakeOver, RunControl::Resume { budget: None }, RunControl::Pause] {
        computer.control(run, control);
    }
    computer.write("more.md", "by hand");
    computer.control(run, RunControl::Resume { budget: None });
    let steps = computer.details(run).steps;
    assert_eq!(steps.iter().filter(|step| step.label.starts_with("you: ")).count(), 2);
}
