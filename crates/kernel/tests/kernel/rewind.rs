//! Rewinding a run to before a model turn, and everything that is refused.

use kernel::run::{RunPhase, TaskState};
use kernel::{Action, Rejection, Resolutions, RunAction};
use shared_types::payload::llm::RequestedCall;
use shared_types::payload::task::TaskOutcome;
use shared_types::{Event, OpId, Seq};

use crate::agents::*;
use crate::laws::reopened;
use crate::shell::Shell;
use crate::steps::*;

fn retry(shell: &mut Shell, to: Seq) -> Result<Vec<Event>, Rejection> {
    let (run, events) = (run_id(1), shell.events_in(run_id(1)));
    shell.run(in_run(1, Action::RetryRun { run, to, events, resolutions: Resolutions::default() }.into()))
}

/// A model turn of an agent, and its seq.
fn turn(shell: &mut Shell, n: u8, wanted: &[OpId]) -> Seq {
    let seen = shell.view.seq();
    let mut said = reply(n);
    let Act::Do(Action::Run(RunAction::RecordReply(recorded))) = &mut said.act else { panic!() };
    recorded.seen = seen;
    recorded.calls = wanted.iter().map(|call| RequestedCall { call: *call, tool: "exec".into() }).collect();
    shell.done(said);
    shell.view.seq()
}

fn agent_writes(shell: &mut Shell, at: &str, lines: &str) -> OpId {
    let known = shell.view.files.get(&path(at)).cloned();
    shell.done(with(make(1, &[(at, known, Some(file(lines)))], None), &[lines]))
}

fn begun() -> Shell {
    let (mut shell, _) = Shell::after([write("a", "1|2|3|4|5")]);
    for step in working() {
        shell.done(step);
    }
    shell
}

#[test]
fn a_run_that_is_over_goes_on_from_before_a_turn_with_files_as_they_were() {
    let mut shell = begun();
    turn(&mut shell, 1, &[]);
    let kept = agent_writes(&mut shell, "a", "one|2|3|4|5");
    let to = turn(&mut shell, 1, &[]);
    let gone = [agent_writes(&mut shell, "a", "one|2|3|4|five"), agent_writes(&mut shell, "b", "new")];
    shell.done(write("a", "one|2|mine|4|five"));
    shell.done(done(1, TaskOutcome::Done));
    shell.done(complete());
    let before = shell.state();

    let events = retry(&mut shell, to).unwrap();
    assert_eq!(shell.tree(), "a: one|2|mine|4|5", "what the person did stays");
    let expected =
        [format!("rewind to {to}"), "undo".into(), "delete b".into(), "replace a: one|2|mine|4|5".into()];
    assert_eq!(shell.events(&events), expected);
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    assert_eq!((run.phase.clone(), run.tasks[0].state), (RunPhase::Working, TaskState::Working));
    assert_eq!(run.spent.steps, 2, "what was taken was taken");
    assert!(gone.iter().all(|op| shell.view.undone.contains(op)) && !shell.view.undone.contains(&kept));
    assert_eq!(shell.at(shell.view.seq()).root(), shell.root(), "replay equals live");
    assert_eq!(reopened(&mut shell.view).root(), shell.root());

    // The person can still restore the files.
    shell.undo(events[0].op).unwrap();
    assert_eq!(shell.tree(), "a: one|2|mine|4|five; b: new");
    assert_eq!(shell.state(), before);
}

#[test]
fn a_call_belongs_to_the_turn_that_wanted_it_however_late_it_was_made() {
    let mut shell = begun();
    shell.done(task(2, Some(1), "writer"));
    let late = OpId::from_bytes([9; 16]);
    turn(&mut shell, 2, &[late]);
    let to = turn(&mut shell, 1, &[]);
    shell.run_in(late, with(make(2, &[("b", None, Some(file("new")))], None), &["new"])).unwrap();
    let events = retry(&mut shell, to).unwrap();
    assert_eq!(shell.events(&events), [format!("rewind to {to}")], "nothing of it is taken back");
    assert_eq!(shell.tree(), "a: 1|2|3|4|5; b: new");
    let all = shell.events_in(run_id(1));
    let is_gone = kernel::run::is_rewound(run_id(1), &all);
    assert!(all.iter().filter(|event| event.op == late).all(|event| !is_gone(event)));
}

#[test]
fn helpers_that_began_since_are_forgotten_and_questions_are_closed() {
    let mut shell = begun();
    let to = turn(&mut shell, 1, &[]);
    shell.done(task(2, Some(1), "writer"));
    shell.done(ask(1, 2, question(OpId::from_bytes([9; 16]))));
    shell.done(pause());
    retry(&mut shell, to).unwrap();
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    assert_eq!(run.tasks.iter().map(|task| task.id).collect::<Vec<_>>(), [task_id(1)]);
    assert!(run.asks.is_empty());
    assert_eq!(shell.view.unfinished_in(run_id(1)), Some("an agent is still working"));
}

#[test]
fn what_was_thought_before_it_went_back_is_not_done_after() {
    let mut shell = begun();
    let wanted = OpId::from_bytes([9; 16]);
    let to = turn(&mut shell, 1, &[wanted]);
    let mut late = reply(1);
    let Act::Do(Action::Run(RunAction::RecordReply(recorded))) = &mut late.act else { panic!() };
    recorded.seen = shell.view.seq();
    let mut ending = done(1, TaskOutcome::Done);
    let Act::Do(Action::Run(RunAction::EndTask { known, .. })) = &mut ending.act else { panic!() };
    *known = shell.view.seq();
    let mut failing = no_reply(1, "cut off");
    let Act::Do(Action::Run(RunAction::RecordFailure { known, .. })) = &mut failing.act else { panic!() };
    *known = shell.view.seq();
    shell.done(pause());
    retry(&mut shell, to).unwrap();
    let what = "it was rewound to an earlier step";
    for late in [late, ending, failing] {
        assert_eq!(shell.run(late), Err(Rejection::RunIsBusy { run: run_id(1), what }));
    }
    assert_eq!(shell.run_in(wanted, call_by(1)), Err(Rejection::CallTaken { call: wanted }));
    assert_eq!(shell.run(ask(1, 1, question(wanted))), Err(Rejection::CallTaken { call: wanted }));
    turn(&mut shell, 1, &[]);
}

#[test]
fn it_goes_back_only_to_a_turn_that_counts_and_only_while_nothing_is_under_way() {
    let mut shell = begun();
    let (first, second) = (turn(&mut shell, 1, &[]), turn(&mut shell, 1, &[]));
    let call = shell.done(call_by(1));
    assert_eq!(retry(&mut shell, first), Err(Rejection::CallIsOpen { call }));
    shell.run_in(call, exit(&[])).unwrap();
    retry(&mut shell, first).unwrap();
    for to in [first, second, Seq(1), Seq(10_000)] {
        let reason = format!("event {to} is not a current model turn of this run");
        assert_eq!(retry(&mut shell, to), Err(Rejection::Invalid { what: "a step", reason }));
    }
    shell.done(cancel());
    shell.done(act(ends(1, TaskOutcome::Cancelled)));
}
