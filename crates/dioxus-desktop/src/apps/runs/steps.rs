//! The steps of a run, the newest first, grouped by agent. Only visible rows are rendered; the input and output of a step
//! are fetched when it is opened.

use dioxus::prelude::*;
use shared_types::wire::{RunDetails, Step, StepDetail, StepKind};
use shared_types::{RunId, Seq, TaskId};

use crate::api::{self, ApiResult};
use crate::app_list;
use crate::clock;
use crate::dom;
use crate::format::{cost, role_icon, role_name};
use crate::icons::Icon;
use crate::state::{AppState, app_state};
use crate::undo;
use crate::undo_plan::{RevertKind, RevertPlan, RevertTarget};
use crate::widgets::{IconButton, LoadError, Loading, button, choose_text};
use crate::words;

const ROW_HEIGHT: usize = 36;
const OVERSCAN_ROWS: usize = 10;

/// One scroll area with the head of the run and its steps.
#[component]
pub(super) fn Steps(
    run: RunId,
    details: RunDetails,
    only: Signal<Option<TaskId>>,
    chosen: Signal<Option<Seq>>,
    above: Element,
) -> Element {
    let mut chosen = chosen;
    let mut top = use_signal(|| 0usize);
    let mut tall = use_signal(|| 900usize);
    let mut refresh = use_signal(|| 0u32);
    let mut kept = use_hook(|| CopyValue::new(Vec::<Step>::new()));
    drop(refresh.read());
    let (steps, hidden) = merge(&mut kept.write(), &details, *only.read());
    let total = steps.len();
    let first = (top() / ROW_HEIGHT).saturating_sub(OVERSCAN_ROWS).min(total);
    let last = ((top() + tall()) / ROW_HEIGHT + OVERSCAN_ROWS).min(total);
    let place = format!("steps-{run}");
    let space = place.clone();
    let numbers: Vec<Seq> = steps.iter().map(|step| step.seq).collect();
    let keydown = move |event: KeyboardEvent| {
        let at = numbers.iter().position(|seq| Some(*seq) == *chosen.peek());
        let next = match dom::key(&event).as_str() {
            "ArrowDown" => at.map_or(0, |i| i + 1),
            "ArrowUp" => at.map_or(0, |i| i.saturating_sub(1)),
            "Escape" if at.is_some() => {
                event.stop_propagation();
                return chosen.set(None);
            }
            _ => return,
        };
        event.prevent_default();
        if let Some(seq) = numbers.get(next) {
            chosen.set(Some(*seq));
            dom::reveal(&format!("step-{seq}"));
        }
    };
    let oldest = kept.read().first().map(|step| step.seq);
    let more = move || {
        spawn(async move {
            let before = oldest.unwrap_or_default();
            let answer: ApiResult<Vec<Step>> = api::get(&format!("/runs/{run}/steps?before={before}")).await;
            match answer {
                Ok(mut older) => {
                    let mut kept = kept.write();
                    older.append(&mut kept);
                    *kept = older;
                    *refresh.write() += 1;
                }
                Err(failure) => app_state().report_failure(&failure),
            }
        });
    };
    rsx! {
        div {
            class: "run-scroll scroll",
            onscroll: move |event| {
                let above = dom::by_id(&place).map(|space| space.offset_top()).unwrap_or_default();
                let now = (event.data().scroll_top() as i32 - above).max(0) as usize;
                if top.peek().abs_diff(now) >= ROW_HEIGHT {
                    top.set(now);
                    tall.set(event.data().client_height().max(0) as usize);
                }
            },
            {above}
            if total > 0 {
                h3 { {choose_text(only.read().is_some(), words::runs::STEPS_OF_ONE, words::runs::STEPS)} }
            }
            div { class: "space steps", id: "{space}", role: "listbox", tabindex: "0", "aria-label": words::runs::STEPS_LIST, height: "{total * ROW_HEIGHT}px", onkeydown: keydown,
                div { class: "slab", top: "{first * ROW_HEIGHT}px",
                    for index in first..last {
                        {row(&details, &steps[index], index.checked_sub(1).and_then(|above| steps.get(above)), chosen)}
                    }
                }
            }
            if hidden > 0 {
                {button("btn ghost wide", "", words::runs::show_earlier(hidden), more)}
            }
        }
    }
}

/// Merges the newest steps into those that were fetched before. Returns the steps to show, the newest first, and the
/// number of steps that were not fetched.
fn merge(kept: &mut Vec<Step>, details: &RunDetails, only: Option<TaskId>) -> (Vec<Step>, u64) {
    if let Some(first) = details.steps.first() {
        kept.retain(|step| step.seq < first.seq);
    }
    let before = kept.len() as u64;
    let hidden = details.earlier.saturating_sub(before);
    kept.extend(details.steps.iter().cloned());
    let fits = |step: &&Step| only.is_none() || step.task == only;
    (kept.iter().rev().filter(fits).cloned().collect(), hidden)
}

fn row(details: &RunDetails, step: &Step, above: Option<&Step>, mut chosen: Signal<Option<Seq>>) -> Element {
    let seq = step.seq;
    let on = *chosen.read() == Some(seq);
    let agent = details.agents.iter().find(|agent| Some(agent.id) == step.task);
    let role = agent.map(|agent| agent.role.as_str()).unwrap_or_default();
    let begins = above.is_none_or(|above| above.task != step.task);
    let class = format!(
        "step{}{}{}{}",
        if on { " on" } else { "" },
        if begins { " first" } else { "" },
        if step.undone { " undone" } else { "" },
        if step.failed { " failed" } else { "" },
    );
    let icon = match step.kind {
        StepKind::Reply => "sparkles",
        StepKind::Call => "square-terminal",
        StepKind::Message => "corner-down-right",
        StepKind::Ask => "circle-help",
        StepKind::Lifecycle => "chevron-right",
    };
    rsx! {
        div {
            key: "{seq}",
            id: "step-{seq}",
            class,
            role: "option",
            "aria-selected": on.to_string(),
            onclick: move |_| chosen.set((!on).then_some(seq)),
            span { class: "who", if begins { Icon { name: role_icon(role) } {if role.is_empty() { words::runs::RUN.to_owned() } else { role_name(role) }} } }
            Icon { name: icon }
            span { class: "w", "{step.label}" }
            if step.failed { span { class: "chip bad", {words::FAILED} } }
            if step.undone { span { class: "chip", {words::UNDONE} } }
            if step.files > 0 { span { class: "chip", {words::files(step.files)} } }
            small { {cost(&step.cost)} }
            time { {clock::time(step.ts)} }
        }
    }
}

/// The input and the output of a step.
#[component]
pub(super) fn Parts(run: RunId, seq: Seq, revision: u64, chosen: Signal<Option<Seq>>) -> Element {
    let app_state = app_state();
    let mut chosen = chosen;
    let now = use_memo(use_reactive!(|(revision,)| revision));
    let parts = api::use_fetched::<StepDetail>(move || {
        drop(now.read());
        format!("/runs/{run}/steps/{seq}")
    });
    let body = match &*parts.read() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
        Some(Ok(parts)) => {
            let step = &parts.step;
            rsx! {
                h3 { "{step.label}" }
                p { class: "quiet", {clock::full(step.ts)} {words::runs::at_event(seq)} }
                {acts(app_state, run, step)}
                for note in &parts.notes {
                    p { class: "note-line", Icon { name: "info" } "{note}" }
                }
                {part(words::runs::INPUT, parts.input.as_deref())}
                {part(words::runs::OUTPUT, parts.output.as_deref())}
            }
        }
    };
    rsx! {
        aside { class: "detail scroll", "aria-label": words::runs::STEP,
            IconButton { icon: "x", label: words::runs::CLOSE_STEP, class: "corner", onclick: move |_| chosen.set(None) }
            {body}
        }
    }
}

fn part(title: &str, words: Option<&str>) -> Element {
    let Some(words) = words.filter(|words| !words.is_empty()) else { return rsx! {} };
    rsx! {
        h4 { "{title}" }
        pre { class: "output scroll", tabindex: "0", "aria-label": "{title}", "{words}" }
    }
}

/// The buttons of a step: a reply or a call can be retried, and a call can be undone, since it is an operation.
fn acts(app_state: AppState, run: RunId, step: &Step) -> Element {
    let label = step.label.clone();
    let seq = step.seq;
    let again = (matches!(step.kind, StepKind::Reply | StepKind::Call) && !step.undone).then(|| {
        let label = label.clone();
        let retry = move || {
            let (kind, target) = (RevertKind::Retry, RevertTarget::Step(run, seq));
            undo::open_dialog(app_state, RevertPlan::Revert { kind, target, label: label.clone() });
        };
        button("btn", "rotate-ccw", RevertKind::Retry.verb(), retry)
    });
    let Some(op) = step.op else {
        return rsx! {
            div { class: "acts", {again} }
        };
    };
    let kind = if step.undone { RevertKind::Redo } else { RevertKind::Undo };
    let revert = move || {
        undo::open_dialog(
            app_state,
            RevertPlan::Revert { kind, target: RevertTarget::Op(op), label: label.clone() },
        )
    };
    let look = move || {
        if let Some(app) = app_list::find("timeline") {
            app_state.open(app, Some(&op.to_string()));
        }
    };
    rsx! {
        div { class: "acts",
            if step.files > 0 {
                {button("btn", if kind == RevertKind::Undo { "undo-2" } else { "redo-2" }, kind.verb(), revert)}
            }
            {again}
            {button("btn ghost", "history", words::runs::IN_TIMELINE, look)}
        }
    }
}

#[cfg(test)]
mod tests {
    use shared_types::Timestamp;
    use shared_types::payload::run::Budget;
    use shared_types::wire::{RunCost, RunLine, RunState};

    use super::*;

    fn task(seq: u64) -> TaskId {
        TaskId::from_bytes([(seq % 2) as u8; 16])
    }

    fn step(seq: u64) -> Step {
        Step {
            seq: Seq(seq),
            ts: Timestamp::from_millis(0),
            task: Some(task(seq)),
            kind: StepKind::Call,
            label: String::new(),
            op: None,
            undone: false,
            failed: false,
            files: 0,
            cost: RunCost::default(),
        }
    }

    fn details(steps: std::ops::Range<u64>, earlier: u64) -> RunDetails {
        let line = RunLine {
            run: RunId::from_bytes([1; 16]),
            title: String::new(),
            state: RunState::Running,
            reason: None,
            seq: Seq(1),
            started: Timestamp::from_millis(0),
            ended: None,
            cost: RunCost::default(),
            open_questions: 0,
            undone: false,
        };
        RunDetails {
            line,
            objective: String::new(),
            model: None,
            budget: Budget::default(),
            agents: Vec::new(),
            questions: Vec::new(),
            steps: steps.map(step).collect(),
            earlier,
            summary: None,
            results: Vec::new(),
        }
    }

    #[test]
    fn the_newest_steps_join_those_that_were_read_before() {
        let mut kept = Vec::new();
        let numbers = |shown: &[Step]| shown.iter().map(|step| step.seq.0).collect::<Vec<_>>();
        let (shown, hidden) = merge(&mut kept, &details(3..6, 2), None);
        assert_eq!((numbers(&shown), hidden), (vec![5, 4, 3], 2));
        let (shown, hidden) = merge(&mut kept, &details(5..8, 4), None);
        assert_eq!(numbers(&shown), [7, 6, 5, 4, 3]);
        assert_eq!(hidden, 2, "two of the four were read before");
        let (shown, _) = merge(&mut kept, &details(5..8, 4), Some(task(0)));
        assert_eq!(numbers(&shown), [6, 4]);
        let (shown, _) = merge(&mut kept, &details(0..0, 0), None);
        assert_eq!(shown.len(), 5, "nothing is lost while it is fetched again");
    }
}
