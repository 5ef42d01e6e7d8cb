//! Runs: from the objective to the end, and everything that is refused.

use kernel::run::{RunPhase, TaskState};
use kernel::{Action, Rejection, RunAction, evolve};
use shared_types::payload::run::{ApprovalScope, Budget, PauseReason, Reply, RunAsk};
use shared_types::payload::task::{MessageKind, TaskEnd, TaskOutcome};
use shared_types::{Event, OpId, Payload, RunId};

use crate::agents::*;
use crate::shell::Shell;
use crate::show::{makes, refuses};
use crate::steps::*;

fn after(mut steps: Vec<Step>, more: impl IntoIterator<Item = Step>) -> Vec<Step> {
    steps.extend(more);
    steps
}

fn invalid(what: &'static str, reason: &str) -> Rejection {
    Rejection::Invalid { what, reason: reason.into() }
}

/// An event that no decision made.
fn foreign(shell: &mut Shell, op: OpId, payload: Payload) {
    let (last, seq) = (shell.log.last().unwrap().clone(), shell.view.seq().next());
    evolve(&mut shell.view, &Event { seq, op, payload, ..last });
}

fn phase(shell: &Shell) -> &RunPhase {
    &shell.view.runs.get(&run_id(1)).unwrap().phase
}

#[test]
fn a_run_goes_from_an_objective_to_its_end() {
    let budget = Budget { steps: Some(9), ..Budget::default() };
    let mut shell = Shell::new();
    let mut at_first = shell.clone();
    let events = shell.run(begin_with("Bees", budget)).unwrap();
    assert_eq!(shell.events(&events), ["start run Bees"]);
    assert_eq!(events[0].run_id, Some(run_id(1)));
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    assert_eq!(
        (&*run.title, run.seq, run.started, run.budget),
        ("Bees", events[0].seq, events[0].ts, budget)
    );
    assert_eq!((run.phase.clone(), run.tasks.len(), run.asks.len()), (RunPhase::Working, 0, 0));

    let cases = [
        (task(1, None, "conductor"), "start conductor work"),
        (reply(1), "small answered"),
        (task(2, Some(1), "writer"), "start writer work"),
        (no_reply(2, "it is overloaded"), "small failed: it is overloaded"),
        (pause(), "pause Person"),
        (resume(None), "resume"),
        (tell(2, 1, MessageKind::Finding), "tell Finding"),
        (steer(None), "steer"),
        (steer(Some(2)), "steer"),
        (ask(1, 2, question(OpId::from_bytes([9; 16]))), "ask"),
        (answer(1, Reply::Words("blue".into())), "answer Words(\"blue\")"),
        (done(2, TaskOutcome::Failed("no ink".into())), "end Failed(\"no ink\")"),
        (done(1, TaskOutcome::Done), "end Done"),
        (complete(), "complete"),
    ];
    for (step, shown) in cases {
        let events = shell.run(step).unwrap();
        assert_eq!(shell.events(&events), [shown]);
    }
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    assert_eq!(run.phase, RunPhase::Completed);
    let states: Vec<_> =
        run.tasks.iter().map(|task| (task.id, task.parent, &*task.role, task.state)).collect();
    let first = (task_id(1), None, "conductor", TaskState::Done);
    assert_eq!(states, [first, (task_id(2), Some(task_id(1)), "writer", TaskState::Failed)]);
    assert_eq!(shell.at(shell.view.seq()).root(), shell.root(), "replay equals live");
    assert_ne!(at_first.root(), shell.root());
}

#[test]
fn what_is_so_already_makes_no_event() {
    let some_call = OpId::from_bytes([9; 16]);
    makes(after(working(), [pause()]), pause(), &[]);
    makes(after(working(), [pause()]), act(RunAction::Pause(PauseReason::TakenOver)), &[]);
    makes(working(), resume(None), &[]);
    makes(working(), resume(Some(Budget::default())), &[]);
    makes(working(), trust(1), &[]);
    makes(after(working(), [ask(1, 1, question(some_call))]), ask(1, 1, question(some_call)), &[]);
}

#[test]
fn a_budget_is_changed_while_a_run_works_or_is_paused() {
    let more = Budget { tokens: Some(7), ..Budget::default() };
    for given in [working(), after(working(), [pause()])] {
        let (mut shell, _) = Shell::after(given);
        let events = shell.run(resume(Some(more))).unwrap();
        assert_eq!(shell.events(&events), ["resume"]);
        let run = shell.view.runs.get(&run_id(1)).unwrap();
        assert_eq!((run.budget, run.phase.clone()), (more, RunPhase::Working));
    }
}

#[test]
fn a_run_and_its_agents_have_ids_of_their_own() {
    refuses(working(), begin("Again"), Rejection::RunTaken { run: run_id(1) });
    let over = after(working(), [cancel()]);
    refuses(over, begin("Again"), Rejection::RunTaken { run: run_id(1) });
    refuses(delegating(), task(2, Some(1), "writer"), Rejection::TaskTaken { task: task_id(2) });
    let nameless = || Step { run: None, ..begin("Bees") };
    refuses([], nameless(), invalid("a run", "the command names none"));
    let first = "only the first agent of a run has no requester, and it has the run's id";
    refuses([begin("Bees")], task(2, None, "conductor"), invalid("a task", first));
    refuses(working(), task(2, None, "conductor"), invalid("a task", first));
}

#[test]
fn nothing_is_known_of_what_does_not_exist() {
    let no_run = Rejection::NoRun { run: run_id(1) };
    for step in [task(1, None, "conductor"), pause(), cancel(), complete(), reply(1), steer(None), call_by(1)]
    {
        refuses([], step, no_run.clone());
    }
    let no_task = Rejection::NoTask { task: task_id(7) };
    let some_call = OpId::from_bytes([9; 16]);
    for step in [
        task(2, Some(7), "writer"),
        steer(Some(7)),
        tell(7, 1, MessageKind::Answer),
        tell(1, 7, MessageKind::Answer),
        done(7, TaskOutcome::Done),
        act(reports(1, 7)),
        trust(7),
        reply(7),
        no_reply(7, "x"),
        ask(1, 7, question(some_call)),
        call_by(7),
        make(7, &[], None),
    ] {
        refuses(working(), step, no_task.clone());
    }
    refuses(working(), answer(1, Reply::Words("x".into())), Rejection::NoAsk { ask: ask_id(1) });
    refuses(working(), Action::Revoke { grant: grant_id(1) }, Rejection::NoGrant { grant: grant_id(1) });
}

#[test]
fn nothing_happens_in_a_run_that_is_over() {
    let ends: [fn() -> Vec<Step>; 3] = [
        || after(working(), [cancel()]),
        || after(working(), [done(1, TaskOutcome::Done), complete()]),
        || after(working(), [done(1, TaskOutcome::Failed("x".into())), fail("x")]),
    ];
    for end in ends {
        for step in [
            steer(None),
            pause(),
            resume(None),
            cancel(),
            fail("x"),
            complete(),
            ask(1, 1, question(OpId::from_bytes([9; 16]))),
            answer(1, Reply::Words("x".into())),
            task(2, Some(1), "writer"),
            tell(1, 1, MessageKind::Progress),
            trust(1),
            reply(1),
            no_reply(1, "x"),
            done(1, TaskOutcome::Done),
            act(reports(1, 1)),
            call_by(1),
            make(1, &[], None),
        ] {
            refuses(end(), step, Rejection::RunIsOver { run: run_id(1) });
        }
    }
}

#[test]
fn nothing_new_starts_in_a_paused_run() {
    let paused = Rejection::RunIsPaused { run: run_id(1) };
    for step in [call_by(1), make(1, &[], None), task(2, Some(1), "writer")] {
        refuses(after(working(), [pause()]), step, paused.clone());
    }
    refuses([begin("Bees"), pause()], task(1, None, "conductor"), paused);
    // Open calls can still end.
    let (mut shell, op) = calling(after(delegating(), [reply(1)]));
    shell.done(pause());
    for step in [reply(2), tell(2, 1, MessageKind::Progress), done(2, TaskOutcome::Done)] {
        shell.done(step);
    }
    shell.run_in(op, with(exit(&[("a", None, Some(file("1")))]), &["1"])).unwrap();
    assert_eq!(*phase(&shell), RunPhase::Paused(PauseReason::Person));
    assert_eq!(shell.tree(), "a: 1");
}

#[test]
fn a_run_ends_only_when_nothing_is_pending() {
    let busy = |what| Err(Rejection::RunIsBusy { run: run_id(1), what });
    for end in [complete(), fail("x")] {
        let (mut shell, _) = Shell::after(working());
        assert_eq!(shell.run(end.clone()), busy("an agent is still working"));
        let (mut shell, _) = Shell::after(delegating());
        assert_eq!(shell.run(end.clone()), busy("an agent is still working"));

        // Only a log of other software has these without a working agent.
        let (mut shell, op) = calling(working());
        let ended = TaskEnd { task: task_id(1), outcome: TaskOutcome::Done };
        foreign(&mut shell, op, ended.into());
        assert_eq!(shell.run(end.clone()), busy("a call has no result yet"));
        shell.run_in(op, exit(&[])).unwrap();
        foreign(&mut shell, op, RunAsk { ask: ask_id(1), task: task_id(1), about: question(op) }.into());
        assert_eq!(shell.run(end.clone()), busy("a question to the person is open"));

        let (mut shell, _) = Shell::after(after(working(), [done(1, TaskOutcome::Done)]));
        shell.done(end);
        assert!(phase(&shell).is_over());
    }
}

#[test]
fn an_agent_ends_only_when_no_helper_works_for_it() {
    let busy = Rejection::TaskIsBusy { task: task_id(1) };
    for outcome in [TaskOutcome::Done, TaskOutcome::Failed("x".into()), TaskOutcome::Cancelled] {
        refuses(delegating(), done(1, outcome.clone()), busy.clone());
        let (mut shell, op) = calling(working());
        assert_eq!(shell.run(done(1, outcome.clone())), Err(busy.clone()));
        shell.run_in(op, exit(&[])).unwrap();
        shell.done(done(1, outcome.clone()));
        assert_eq!(shell.run(done(1, outcome)), Err(Rejection::TaskIsOver { task: task_id(1) }));
    }
    let ended = || after(delegating(), [done(2, TaskOutcome::Done)]);
    let over = Rejection::TaskIsOver { task: task_id(2) };
    let some_call = OpId::from_bytes([9; 16]);
    for step in [
        task(3, Some(2), "researcher"),
        steer(Some(2)),
        reply(2),
        no_reply(2, "x"),
        ask(1, 2, question(some_call)),
        call_by(2),
        make(2, &[], None),
    ] {
        refuses(ended(), step, over.clone());
    }
    makes(ended(), tell(1, 2, MessageKind::Answer), &["tell Answer"]);
    makes(delegating(), act(reports(2, 1)), &["tell Completion", "end Done"]);
}

#[test]
fn what_was_under_way_when_the_person_ended_a_run_is_put_away() {
    let (mut shell, op) = calling(delegating());
    shell.done(ask(1, 2, question(op)));
    let events = shell.run(cancel()).unwrap();
    assert_eq!(shell.events(&events), ["cancel"]);
    assert!(shell.view.runs.get(&run_id(1)).unwrap().asks.is_empty(), "open questions end with their agent");
    assert_eq!(shell.run(reply(2)), Err(Rejection::RunIsOver { run: run_id(1) }));

    let stopped = |n| done(n, TaskOutcome::Cancelled);
    assert_eq!(shell.run(stopped(1)), Err(Rejection::TaskIsBusy { task: task_id(1) }));
    shell.run(stopped(2)).unwrap();
    assert_eq!(shell.run(stopped(1)), Err(Rejection::TaskIsBusy { task: task_id(1) }), "its call is open");
    let result = shell.run_in(op, with(exit(&[("a", None, Some(file("1")))]), &["1"])).unwrap();
    assert_eq!(shell.events(&result), ["write a: 1", "exited 0"]);
    assert!(result.iter().all(|event| event.run_id == Some(run_id(1))), "all of a call is of its run");
    shell.run(stopped(1)).unwrap();
    assert_eq!(shell.run(done(1, TaskOutcome::Done)), Err(Rejection::RunIsOver { run: run_id(1) }));
    assert_eq!(*phase(&shell), RunPhase::Cancelled);
    assert_eq!(shell.at(shell.view.seq()).root(), shell.root(), "replay equals live");
}

#[test]
fn an_answer_fits_what_was_asked() {
    let op = OpId::from_bytes([9; 16]);
    let allow = Reply::Allow;
    let (no, words) = (Reply::Deny("no".into()), Reply::Words("blue".into()));
    let cases = [
        (approval(op), allow(ApprovalScope::Once), Some(vec!["answer Allow(Once)"])),
        (approval(op), allow(ApprovalScope::Run), Some(vec!["answer Allow(Run)", "grant exec curl *"])),
        (approval(op), allow(ApprovalScope::Always), Some(vec!["answer Allow(Always)", "grant exec curl *"])),
        (approval(op), no.clone(), Some(vec!["answer Deny(\"no\")"])),
        (approval(op), words.clone(), None),
        (question(op), words.clone(), Some(vec!["answer Words(\"blue\")"])),
        (question(op), no.clone(), Some(vec!["answer Deny(\"no\")"])),
        (question(op), allow(ApprovalScope::Once), None),
        (question(op), allow(ApprovalScope::Always), None),
        (interrupted(op), allow(ApprovalScope::Once), Some(vec!["answer Allow(Once)"])),
        (interrupted(op), no, Some(vec!["answer Deny(\"no\")"])),
        (interrupted(op), allow(ApprovalScope::Run), None),
        (interrupted(op), allow(ApprovalScope::Always), None),
        (interrupted(op), words, None),
    ];
    for (about, given, shown) in cases {
        let asked = after(working(), [ask(1, 1, about)]);
        match shown {
            Some(shown) => {
                makes(asked.clone(), answer(1, given.clone()), &shown);
                let answered = after(asked, [answer(1, given.clone())]);
                refuses(answered, answer(1, given), Rejection::NoAsk { ask: ask_id(1) });
            }
            None => {
                let misfit = invalid("an answer", "it does not fit what was asked");
                refuses(asked, answer(1, given), misfit);
            }
        }
    }
}

#[test]
fn a_question_goes_with_the_agent_who_asked() {
    let op = OpId::from_bytes([9; 16]);
    let asked = after(delegating(), [ask(1, 2, question(op)), ask(2, 1, question(op))]);
    let (mut shell, _) = Shell::after(asked);
    shell.done(done(2, TaskOutcome::Failed("gave up".into())));
    let left: Vec<_> = shell.view.runs.get(&run_id(1)).unwrap().asks.iter().map(|ask| ask.id).collect();
    assert_eq!(left, [ask_id(2)]);
    assert_eq!(shell.run(answer(1, Reply::Words("x".into()))), Err(Rejection::NoAsk { ask: ask_id(1) }));
}

#[test]
fn a_call_is_made_by_an_agent_in_its_run() {
    let mixed = invalid("a call", "a run's calls are made by its agents, and an agent's in its run");
    let start = |n| Step::from(Action::StartCall(tool_call(n)));
    refuses(working(), start(None).within(run_id(1)), mixed.clone());
    refuses(working(), start(Some(1)), mixed);
    let (mut shell, op) = calling(working());
    let open = shell.view.calls.get(&op).unwrap().clone();
    assert_eq!((open.run, open.task), (Some(run_id(1)), Some(task_id(1))));
    // The command that ends a call need not know its run, and cannot move it to another.
    let held = shell.run_in(op, hold(1)).unwrap();
    let asked = shell.run_in(op, request(op, "x").within(run_id(9))).unwrap();
    let over = shell.run_in(op, exit(&[])).unwrap();
    assert!([held, asked, over].concat().iter().all(|event| event.run_id == Some(run_id(1))));
    let mine = shell.done(call("make"));
    let over = shell.run_in(mine, exit(&[]).within(run_id(1))).unwrap();
    assert_eq!(over[0].run_id, None::<RunId>);
}

#[test]
fn a_call_that_is_answered_at_once_is_one_append() {
    let (mut shell, _) = Shell::after(after(delegating(), [write("a", "1")]));
    let op = shell.op();
    let also = reports(2, 1);
    let edits = [("a", Some(file("1")), Some(file("2"))), ("b", None, Some(file("3")))];
    let events = shell.run_in(op, with(make(1, &edits, Some(also)), &["2", "3"])).unwrap();
    let shown = ["call exec: make", "tell Completion", "end Done", "replace a: 2", "write b: 3", "exited 0"];
    assert_eq!(shell.events(&events), shown);
    assert!(events.iter().all(|event| event.op == op && event.run_id == Some(run_id(1))));
    assert!(shell.view.calls.is_empty());
    assert_eq!(shell.view.runs.get(&run_id(1)).unwrap().task(task_id(2)).unwrap().state, TaskState::Done);
    assert_eq!(shell.run_in(op, make(1, &[], None)), Err(Rejection::CallTaken { call: op }));
    shell.undo(op).unwrap();
    assert_eq!(shell.tree(), "a: 1", "it is undone like any operation");
    shell.redo(op).unwrap();
    assert_eq!(shell.tree(), "a: 2; b: 3");

    let (mut shell, _) = Shell::after(working());
    let before = (shell.root(), shell.view.seq());
    let also = ends(7, TaskOutcome::Done);
    let edits = [("a", None, Some(file("1")))];
    let refused = shell.run(with(make(1, &edits, Some(also)), &["1"]));
    assert_eq!(refused, Err(Rejection::NoTask { task: task_id(7) }));
    assert_eq!((shell.root(), shell.view.seq()), before, "all of it or nothing");
    let (mut shell, _) = Shell::after(working());
    let person = Step { run: None, ..make(1, &[], None) };
    assert!(shell.run(person).is_err());
}

#[test]
fn what_people_read_of_a_run_has_limits() {
    refuses([], begin(" "), invalid("a run's title", "it is empty"));
    refuses([], begin("a\nb"), invalid("a run's title", "it has more than one line"));
    refuses(
        [],
        begin(&"x".repeat(501)),
        Rejection::TooLarge { what: "a run's title", size: 501, limit: 500 },
    );
    refuses([begin("x")], task(1, None, ""), invalid("a role", "it is empty"));
    let ended = after(working(), [done(1, TaskOutcome::Done)]);
    refuses(ended, fail(""), invalid("a reason", "it is empty"));
    refuses(working(), no_reply(1, ""), invalid("a reason", "it is empty"));
    let many = (2..=200).map(|n| task(n, Some(1), "researcher"));
    let size = Rejection::TooLarge { what: "the number of agents in a run", size: 201, limit: 200 };
    refuses(after(working(), many), task(201, Some(1), "researcher"), size);
}
