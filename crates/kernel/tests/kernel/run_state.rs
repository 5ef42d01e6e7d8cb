//! The state of runs in the view: grants, the clock, spending, taint labels, and their limits.

use kernel::run::{Ask, Spent};
use kernel::{Action, Rejection, RunAction};
use shared_types::payload::llm::{LlmFail, Tokens};
use shared_types::payload::run::{ApprovalScope, AskKind, PauseReason, Reply, RunAsk};
use shared_types::payload::task::{MessageKind, TaskEnd, TaskOutcome};
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{OpId, Seq, Taint, Timestamp};

use crate::agents::*;
use crate::laws::reopened;
use crate::shell::Shell;
use crate::steps::*;

const DAY: i64 = 24 * 60 * 60 * 1000;

fn some_call() -> OpId {
    OpId::from_bytes([9; 16])
}

#[test]
fn a_grant_holds_as_far_as_the_person_said() {
    for (scope, run) in [
        (ApprovalScope::Once, None),
        (ApprovalScope::Run, Some(Some(run_id(1)))),
        (ApprovalScope::Always, Some(None)),
    ] {
        let (mut shell, _) = Shell::after(working());
        shell.done(ask(1, 1, approval(some_call())));
        shell.done(answer(1, Reply::Allow(scope)));
        let Some(run) = run else {
            assert!(shell.view.grants.is_empty());
            continue;
        };
        let grant = shell.view.grants.get(&grant_id(1)).unwrap().clone();
        assert_eq!((&*grant.tool, &*grant.pattern, grant.run), ("exec", "curl *", run));
        assert_eq!(reopened(&mut shell.view).grants.get(&grant_id(1)), Some(&grant), "a snapshot keeps it");

        let revoke = Action::Revoke { grant: grant_id(1) };
        let events = shell.run(revoke.clone()).unwrap();
        assert_eq!(shell.events(&events), ["revoke"]);
        assert!(shell.view.grants.is_empty());
        assert_eq!(shell.run(revoke), Err(Rejection::NoGrant { grant: grant_id(1) }));
    }
}

#[test]
fn the_clock_stops_while_a_run_waits_for_the_person() {
    let mut shell = Shell::new();
    let cases = [
        (begin("Bees"), 1_000, 0),
        (task(1, None, "conductor"), 1_500, 500),
        (reply(1), 2_000, 1_000),
        (pause(), 3_000, 2_000),
        (reply(1), 8_000, 2_000),
        (resume(None), 9_000, 2_000),
        (ask(1, 1, question(some_call())), 9_500, 2_500),
        (ask(2, 1, question(some_call())), 20_000, 2_500),
        (answer(1, Reply::Words("x".into())), 30_000, 2_500),
        (reply(1), 35_000, 2_500),
        (answer(2, Reply::Words("x".into())), 40_000, 2_500),
        (reply(1), 41_000, 3_500),
        // A clock that was set back adds nothing and removes nothing.
        (reply(1), 40_500, 3_500),
        (done(1, TaskOutcome::Done), 40_700, 3_700),
        // No working agent is left.
        (complete(), 40_800, 3_700),
    ];
    for (step, at, worked) in cases {
        shell.done(step.at(at));
        let run = shell.view.runs.get(&run_id(1)).unwrap();
        assert_eq!((run.worked, run.worked_until(Timestamp::from_millis(at))), (worked, worked), "at {at}");
    }
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    let later = Timestamp::from_millis(99_000);
    assert_eq!((run.clock_since, run.worked_until(later)), (None, 3_700));
    assert_eq!(shell.view.spent_on_day(later).worked, 3_700);
    assert_eq!(shell.view.spent_on_day(Timestamp::from_millis(DAY)).worked, 0);
    let (going, _) = Shell::after([begin("Bees").at(1_000)]);
    let now = Timestamp::from_millis(1_700);
    assert_eq!(going.view.runs.get(&run_id(1)).unwrap().worked_until(now), 700);
    assert_eq!(going.view.spent_on_day(now).worked, 700);
}

#[test]
fn the_clock_runs_while_one_agent_works_and_another_waits_for_the_person() {
    let mut shell = Shell::new();
    let then = |shell: &mut Shell, step: Step, at: i64, worked: u64| {
        let op = shell.done(step.at(at));
        assert_eq!(shell.view.runs.get(&run_id(1)).unwrap().worked, worked, "at {at}");
        op
    };
    then(&mut shell, begin("Bees"), 0, 0);
    then(&mut shell, task(1, None, "conductor"), 0, 0);
    then(&mut shell, task(2, Some(1), "terminal"), 1_000, 1_000);
    then(&mut shell, task(3, Some(1), "writer"), 1_000, 1_000);
    then(&mut shell, ask(1, 2, question(some_call())), 2_000, 2_000);
    // The third agent works.
    then(&mut shell, ask(2, 3, question(some_call())), 3_000, 3_000);
    // No agent works: the first one waits for the other two.
    let call = then(&mut shell, call_by(2), 10_000, 3_000);
    // A call runs, also while the run is paused.
    then(&mut shell, pause(), 11_000, 4_000);
    shell.run_in(call, exit(&[]).at(13_000)).unwrap();
    then(&mut shell, resume(None), 20_000, 6_000);
    then(&mut shell, answer(2, Reply::Words("x".into())), 30_000, 6_000);
    then(&mut shell, done(3, TaskOutcome::Done), 31_000, 7_000);
    then(&mut shell, done(2, TaskOutcome::Cancelled), 40_000, 7_000);
    then(&mut shell, reply(1), 41_000, 8_000);
}

#[test]
fn calls_of_an_agent_that_ran_at_once_are_counted_once() {
    let mut shell = Shell::new();
    shell.done(begin("Bees").at(0));
    shell.done(task(1, None, "terminal").at(0));
    let calls = [0, 0, 1_000].map(|at| shell.done(call_by(1).at(at)));
    for (call, millis, at, worked) in
        [(calls[0], 4_000, 4_000, 4_000), (calls[1], 5_000, 5_000, 5_000), (calls[2], 1_000, 9_000, 6_000)]
    {
        let report = ToolReport { millis, ..ToolReport::default() };
        let status = ToolStatus::Exited { code: 0 };
        let ended = Step::from(Action::FinishCall { status, report, edits: Vec::new() }).at(at);
        shell.run_in(call, ended).unwrap();
        assert_eq!(shell.view.runs.get(&run_id(1)).unwrap().tasks[0].worked, worked, "at {at}");
    }
}

#[test]
fn what_models_took_is_counted_by_run_agent_and_day() {
    let (mut shell, _) = Shell::after(delegating());
    let tokens = Tokens { input: 1, cache_read: 20, cache_write: 300, output: 4_000 };
    shell.done(reply_of(1, tokens, Some(7)).at(5 * DAY));
    shell.done(reply_of(2, tokens, None).at(6 * DAY - 1));
    shell.done(reply_of(2, tokens, Some(1)).at(6 * DAY));
    shell.done(no_reply(2, "nothing was taken").at(6 * DAY));
    let spent = |steps, micros, unpriced| Spent { steps, tokens: steps * 4_321, micros, unpriced };
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    assert_eq!(run.spent, spent(3, 8, 1));
    assert_eq!(run.task(task_id(1)).unwrap().spent, spent(1, 7, 0));
    assert_eq!(run.task(task_id(2)).unwrap().spent, spent(2, 1, 1));
    assert_eq!(shell.view.spending.get(&5).map(|day| day.spent), Some(spent(2, 7, 1)));
    assert_eq!(shell.view.spending.get(&6).map(|day| day.spent), Some(spent(1, 1, 0)));

    let days = |shell: &Shell| {
        let mut days: Vec<i64> = shell.view.spending.iter().map(|(day, _)| *day).collect();
        days.sort_unstable();
        days
    };
    shell.done(reply_of(1, tokens, None).at(67 * DAY));
    assert_eq!(days(&shell)[..3], [5, 6, 67], "two months are kept");
    shell.done(reply_of(1, tokens, None).at(68 * DAY));
    assert_eq!(days(&shell)[..3], [6, 67, 68]);
    let mut opened = reopened(&mut shell.view);
    assert_eq!(opened.root(), shell.root());
}

#[test]
fn only_the_newest_runs_that_are_over_are_kept_with_their_grants() {
    let (mut shell, _) = Shell::after([in_run(200, begin("Still going"))]);
    for n in 1..=52 {
        let first = crate::agents::task(n, None, "conductor");
        for step in [
            begin("Bees"),
            first,
            ask(n, n, approval(some_call())),
            answer(n, Reply::Allow(if n == 2 { ApprovalScope::Always } else { ApprovalScope::Run })),
            cancel(),
            crate::agents::done(n, TaskOutcome::Cancelled),
        ] {
            shell.done(in_run(n, step));
        }
    }
    let kept = |n| shell.view.runs.contains(&run_id(n));
    assert_eq!(shell.view.runs.len(), 51);
    assert!(kept(200) && kept(3) && kept(52) && !kept(1) && !kept(2));
    let held = |n| shell.view.grants.contains(&grant_id(n));
    assert!(!held(1), "it was for that run");
    assert!(held(2), "it was for all runs");
    assert!(held(3) && held(52));
    assert_eq!(shell.view.grants.len(), 51);
    let mut opened = reopened(&mut shell.view);
    assert_eq!(opened.root(), shell.root());
    assert_eq!(opened.runs.get(&run_id(52)), shell.view.runs.get(&run_id(52)));
}

fn labels(shell: &Shell, n: u8) -> Vec<&str> {
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    run.task(task_id(n)).unwrap().taint.iter().map(Taint::as_str).collect()
}

#[test]
fn labels_travel_with_what_an_agent_is_told() {
    let web = Taint::parse("web").unwrap();
    let (mut shell, op) = calling(delegating());
    shell.run_in(op, exit(&[]).tainted(&web)).unwrap();
    assert_eq!((labels(&shell, 1), labels(&shell, 2)), (vec!["web"], vec![]));
    let again = shell.done(call_by(1));
    shell.run_in(again, exit(&[]).tainted(&web)).unwrap();
    assert_eq!(labels(&shell, 1), ["web"], "once is enough");

    // Its labels reach the receivers of its messages and the agents that it starts.
    shell.done(tell(1, 2, MessageKind::Answer).tainted(&web));
    assert_eq!(labels(&shell, 2), ["web"]);
    shell.done(task(3, Some(1), "researcher").tainted(&web));
    assert_eq!(labels(&shell, 3), ["web"]);
    shell.run(make(3, &[], None).tainted(&Taint::IMPORT)).unwrap();
    assert_eq!(labels(&shell, 3), ["web", Taint::IMPORT.as_str()]);

    // A message taints only its receiver; the person clears one agent at a time.
    shell.done(task(4, Some(1), "researcher"));
    shell.done(tell(4, 3, MessageKind::Progress).tainted(&web));
    assert_eq!(labels(&shell, 4), [""; 0]);
    let events = shell.run(trust(1)).unwrap();
    assert_eq!(shell.events(&events), ["trust"]);
    assert_eq!((labels(&shell, 1), labels(&shell, 2)), (vec![], vec!["web"]));
    assert!(shell.run(trust(1)).unwrap().is_empty());
}

#[test]
fn labels_of_a_result_reach_its_agent_for_every_author() {
    let web = Taint::parse("web").unwrap();
    let (mut shell, op) = calling(working());
    let status = ToolStatus::Interrupted { reason: "the server ended".into() };
    let settled = Action::FinishCall { status, report: ToolReport::default(), edits: Vec::new() };
    shell.run_in(op, Step::from(settled).tainted(&web)).unwrap();
    assert_eq!(labels(&shell, 1), ["web"]);
}

#[test]
fn an_agent_does_not_end_before_it_has_heard_the_person() {
    let (mut shell, _) = Shell::after(working());
    let seen = Some(shell.view.seq());
    let end = |seen| {
        let end = TaskEnd { task: task_id(1), outcome: TaskOutcome::Done };
        act(RunAction::EndTask { end, report: None, seen, known: Seq(u64::MAX) })
    };
    shell.done(steer(None));
    assert_eq!(shell.run(end(seen)).unwrap_err(), Rejection::NotHeard { task: task_id(1) });
    let seen = Some(shell.view.seq());
    shell.done(end(seen));
    // Then no agent would read it.
    let late = shell.run(steer(None)).unwrap_err();
    assert_eq!(late, Rejection::TaskIsOver { task: task_id(1) });
}

#[test]
fn a_call_in_the_outbox_is_sent_without_an_answer_and_blocks_no_agent() {
    let (mut shell, _) = Shell::after(working());
    let about = outgoing(OpId::from_bytes([9; 16]));
    shell.done(ask(1, 1, about.clone()));
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    assert!(!run.waits_for_person() && run.asks.len() == 1);
    assert!(run.clock_since.is_some(), "the clock of the run goes on");
    for odd in
        [Reply::Words("yes".into()), Reply::Allow(ApprovalScope::Run), Reply::Allow(ApprovalScope::Always)]
    {
        let reason = "it does not fit what was asked".into();
        assert_eq!(shell.run(answer(1, odd)), Err(Rejection::Invalid { what: "an answer", reason }));
    }
    for (n, reply) in
        [(1, Reply::Silence), (2, Reply::Deny("no".into())), (3, Reply::Allow(ApprovalScope::Once))]
    {
        shell.done(ask(n, 1, about.clone()));
        shell.done(answer(n, reply));
        assert!(shell.view.runs.get(&run_id(1)).unwrap().asks.is_empty());
    }
    assert!(shell.view.grants.is_empty());
    shell.done(ask(4, 1, question(OpId::from_bytes([8; 16]))));
    let reason = "it does not fit what was asked".into();
    let silent = shell.run(answer(4, Reply::Silence));
    assert_eq!(silent, Err(Rejection::Invalid { what: "an answer", reason }), "a question needs an answer");
}

#[test]
fn a_paused_run_sends_nothing_from_its_outbox_and_a_hold_can_be_extended() {
    let (mut shell, _) = Shell::after(working());
    let held = |millis| {
        let mut about = outgoing(OpId::from_bytes([9; 16]));
        let AskKind::Outgoing { until, .. } = &mut about else { panic!("{about:?}") };
        *until = Timestamp::from_millis(millis);
        ask(1, 1, about)
    };
    shell.done(held(5));
    shell.done(pause());
    assert_eq!(shell.run(answer(1, Reply::Silence)), Err(Rejection::RunIsPaused { run: run_id(1) }));
    assert!(shell.run(held(5)).unwrap().is_empty(), "the same is not asked twice");
    shell.done(held(9));
    let asks = &shell.view.runs.get(&run_id(1)).unwrap().asks;
    let [Ask { about: AskKind::Outgoing { until, .. }, .. }] = &asks[..] else { panic!("{asks:?}") };
    assert_eq!(until.millis(), 9);
}

#[test]
fn what_the_person_called_off_is_not_held_again() {
    let (mut shell, _) = Shell::after(working());
    let about = outgoing(OpId::from_bytes([9; 16]));
    let again = RunAsk { ask: ask_id(1), task: task_id(1), about: about.clone() };
    shell.done(ask(1, 1, about));
    shell.done(answer(1, Reply::Deny("not this one".into())));
    let held = shell.run(act(RunAction::AskAgain(again)));
    assert_eq!(held, Err(Rejection::NoAsk { ask: ask_id(1) }));
}

#[test]
fn the_time_without_a_server_is_not_worked() {
    let (mut shell, _) = Shell::after([begin("Bees").at(1_000), task(1, None, "conductor").at(3_000)]);
    let wake = || act(RunAction::Wake);
    shell.done(wake().at(90_000));
    let worked = |shell: &Shell, now| {
        shell.view.runs.get(&run_id(1)).unwrap().worked_until(Timestamp::from_millis(now))
    };
    assert_eq!(worked(&shell, 91_000), 3_000);
    // While it waits nothing is recorded.
    shell.done(pause().at(92_000));
    assert!(shell.run(wake().at(99_000)).unwrap().is_empty());
    assert_eq!(worked(&shell, 99_000), 4_000);
}

#[test]
fn what_a_turn_took_that_came_to_nothing_is_counted_but_is_no_step() {
    let (mut shell, _) = Shell::after(working());
    let tokens = Tokens { input: 7, output: 3, ..Default::default() };
    let fail = |tokens, micros| {
        let (task, model, reason) = (task_id(1), "small".into(), "no sense".into());
        act(RunAction::RecordFailure {
            fail: LlmFail { task, model, reason, permanent: false, tokens, micros },
            known: Seq(u64::MAX),
        })
    };
    shell.done(fail(tokens, Some(5)));
    shell.done(fail(Tokens::default(), None));
    let run = shell.view.runs.get(&run_id(1)).unwrap();
    let spent = Spent { steps: 0, tokens: 10, micros: 5, unpriced: 0 };
    assert_eq!((run.spent, run.tasks[0].spent), (spent, spent));
    assert_eq!(shell.view.spending.iter().map(|(_, day)| day.spent.tokens).sum::<u64>(), 10);
}

#[test]
fn the_cost_of_an_abandoned_turn_is_counted_in_every_phase() {
    for phase in [RunAction::Pause(PauseReason::Person), RunAction::Cancel] {
        let (mut shell, _) = Shell::after(working());
        shell.done(act(phase));
        let (task, model, reason) = (task_id(1), "small".into(), "the turn was abandoned".into());
        let tokens = Tokens { input: 7, output: 3, ..Default::default() };
        let lost = LlmFail { task, model, reason, permanent: false, tokens, micros: Some(5) };
        shell.done(act(RunAction::RecordLoss(lost)));
        let spent = Spent { steps: 0, tokens: 10, micros: 5, unpriced: 0 };
        assert_eq!(shell.view.runs.get(&run_id(1)).unwrap().spent, spent);
        assert_eq!(shell.view.spending.iter().map(|(_, day)| day.spent.micros).sum::<u64>(), 5);
    }
}

#[test]
fn going_on_at_a_bound_gives_every_agent_as_much_again() {
    let (mut shell, _) = Shell::after(working());
    shell.done(reply(1));
    let taken = |shell: &Shell| shell.view.runs.get(&run_id(1)).unwrap().tasks[0].spent_of_limits().0.steps;
    shell.done(pause());
    shell.done(resume(None));
    assert_eq!(taken(&shell), 1, "the person only wanted a pause");
    shell.done(act(RunAction::Pause(PauseReason::Budget("enough".into()))));
    shell.done(resume(None));
    assert_eq!(taken(&shell), 0);
}
