//! Attending to a run: its steps and words as they come, its questions asked at the terminal, its end as an exit code.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use indicatif::ProgressBar;
use sandbox::place::Place;
use sandbox::protocol::{Heard, Request, RunRequest};
use sandbox::session;
use shared_types::payload::run::{AskKind, Reply, Scope};
use shared_types::wire::{RunGesture, RunLine, RunQuestion, RunState, Step, StepKind};
use shared_types::{AskId, RunId, Seq, TaskId};

use super::Context;
use super::approve::show;
use super::runs::{cost, details, ending, gesture_on, role, short, tell_step, word};
use crate::render::{Style, json, line, safe};

const PAUSED: u8 = 11;
/// What a shell says of a program that Ctrl-C ended.
const LEFT: i32 = 130;

/// How much of a run the person wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    Everything,
    /// What came of it.
    TheEnd,
}

/// The exit code that says how a run stands.
fn code(state: RunState) -> ExitCode {
    match state {
        RunState::Completed | RunState::Running => ExitCode::SUCCESS,
        RunState::Failed => ExitCode::from(8),
        RunState::Cancelled => ExitCode::from(9),
        RunState::Waiting => ExitCode::from(10),
        RunState::Paused => ExitCode::from(PAUSED),
    }
}

/// Follows a run until it is over, is paused, or waits for somebody who is not here. `hosted` says that agents work in
/// this very process.
pub(crate) fn attend(
    context: &Context,
    run: &RunLine,
    attention: Attention,
    hosted: bool,
) -> Result<ExitCode> {
    let place = context.place()?;
    let asking = Arc::new(AtomicBool::new(false));
    at_interrupt(&place, run.run, hosted, &asking)?;
    let can_ask = attention == Attention::Everything
        && !context.style.is_json()
        && stdin().is_terminal()
        && stdout().is_terminal();
    let mut listener = Listener::new(context, run.run, attention);
    loop {
        let after = listener.seen;
        let now = session::follow(&place, run.run, after, &mut |heard| listener.hear(heard))?;
        listener.rest();
        if now.state != RunState::Waiting || !can_ask {
            tell_end(context, &now)?;
            return Ok(code(now.state));
        }
        asking.store(true, Ordering::Relaxed);
        let answered = ask(context, run.run)?;
        asking.store(false, Ordering::Relaxed);
        if !answered {
            tell_end(context, &now)?;
            return Ok(code(now.state));
        }
    }
}

/// Ctrl-C pauses a run that works here. One that works elsewhere goes on, and only the watching ends.
fn at_interrupt(place: &Place, run: RunId, hosted: bool, asking: &Arc<AtomicBool>) -> Result<()> {
    let (place, asking) = (place.clone(), Arc::clone(asking));
    session::at_first_signal(move || {
        if !hosted {
            eprintln!("\nit goes on: choir runs {} --watch", short(run));
            std::process::exit(LEFT);
        }
        let request = RunRequest::Gesture { run: run.to_string(), gesture: RunGesture::Pause };
        let paused = session::ask(&place, Request::Runs(request), &mut std::io::empty(), &|_, _, _| ());
        // Whoever follows sees it by itself; a question that waits for a key does not.
        if paused.is_err() || asking.load(Ordering::Relaxed) {
            eprintln!("\npaused: choir runs resume {} --watch", short(run));
            std::process::exit(i32::from(PAUSED));
        }
    })?;
    Ok(())
}

/// Whoever looks at a run.
struct Listener<'a> {
    context: &'a Context,
    run: RunId,
    attention: Attention,
    seen: Seq,
    roles: HashMap<TaskId, String>,
    /// Steps that were told once, and are told again only if something came of them.
    told: HashMap<Seq, Step>,
    /// Whose words stand on the line that is not ended yet.
    speaking: Option<TaskId>,
    /// Words of the reply that is on its way have been shown.
    spoken: Option<TaskId>,
    /// Calls in the outbox that were shown.
    shown: HashSet<AskId>,
    live: bool,
    spinner: Option<ProgressBar>,
}

impl<'a> Listener<'a> {
    fn new(context: &'a Context, run: RunId, attention: Attention) -> Self {
        let json = context.style.is_json();
        let quiet = attention == Attention::TheEnd && !json && std::io::stderr().is_terminal();
        let spinner = quiet.then(|| {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(std::time::Duration::from_millis(120));
            spinner
        });
        Self {
            context,
            run,
            attention,
            seen: Seq::ZERO,
            roles: HashMap::new(),
            told: HashMap::new(),
            speaking: None,
            spoken: None,
            shown: HashSet::new(),
            live: attention == Attention::Everything && (json || stdout().is_terminal()),
            spinner,
        }
    }

    fn hear(&mut self, heard: Heard) {
        match heard {
            Heard::Step(step) => self.step(*step),
            Heard::Said { task, text } if self.live => self.words(task, &text),
            Heard::Said { .. } => {}
        }
    }

    fn step(&mut self, step: Step) {
        self.seen = self.seen.max(step.seq);
        if self.told.get(&step.seq) == Some(&step) {
            return;
        }
        let again = self.told.insert(step.seq, step.clone()).is_some();
        if let Some(spinner) = &self.spinner {
            spinner.set_message(safe(&step.label));
        }
        if self.attention == Attention::TheEnd {
            return;
        }
        if self.context.style.is_json() {
            return json(&serde_json::json!({ "step": step }));
        }
        self.rest();
        // What was read as it came is not said twice.
        if step.kind == StepKind::Reply && self.spoken.take() == step.task && step.task.is_some() {
            return;
        }
        // A call that came to its end without a word about it.
        if again && !step.failed && step.files == 0 && !step.undone {
            return;
        }
        let role = step.task.map(|task| self.role(task)).unwrap_or_default();
        tell_step(self.context.style, &step, &role);
        if step.kind == StepKind::Ask {
            self.show_leaving();
        }
    }

    /// Calls in the outbox leave by themselves: how they are called off is said as soon as they lie there.
    fn show_leaving(&mut self) {
        let Ok(known) = details(self.context, &self.run.to_string()) else { return };
        for question in known.questions.iter().filter(|question| !question.about.needs_answer()) {
            if self.shown.insert(question.ask) {
                show(self.context.style, question);
            }
        }
    }

    fn words(&mut self, task: TaskId, text: &str) {
        if self.context.style.is_json() {
            return json(&serde_json::json!({ "said": { "task": task, "text": text } }));
        }
        if text.is_empty() {
            // Its model begins again, and so do we.
            self.rest();
            return;
        }
        if self.speaking != Some(task) {
            self.rest();
            let role = self.role(task);
            let _ = write!(stdout(), "       {} ", self.context.style.paint("36", &format!("{role:<10}")));
        }
        self.speaking = Some(task);
        self.spoken = Some(task);
        let safe: String = text.chars().map(|c| if c == '\n' { c } else { plain(c) }).collect();
        let _ = stdout().write_all(self.context.style.dim(&safe).as_bytes()).and_then(|()| stdout().flush());
    }

    /// Ends the line on which somebody speaks.
    fn rest(&mut self) {
        if self.speaking.take().is_some() {
            line("");
        }
    }

    fn role(&mut self, task: TaskId) -> String {
        if !self.roles.contains_key(&task)
            && let Ok(known) = details(self.context, &self.run.to_string())
        {
            let all = known
                .agents
                .iter()
                .map(|agent| (agent.task, role(&known.agents, Some(agent.task)).to_owned()));
            self.roles.extend(all);
        }
        self.roles.get(&task).cloned().unwrap_or_default()
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn plain(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

fn tell_end(context: &Context, run: &RunLine) -> Result<()> {
    let known = details(context, &run.run.to_string())?;
    if context.style.is_json() {
        json(&serde_json::json!({ "run": run, "summary": known.summary, "results": known.results }));
        return Ok(());
    }
    let style = context.style;
    ending(style, &known);
    let reason = run.reason.as_deref().map(|why| format!(": {}", safe(why))).unwrap_or_default();
    line(&format!(
        "{}{reason} {}",
        style.bold(word(run.state)),
        style.dim(&format!("({})", cost(&run.cost)))
    ));
    if matches!(run.state, RunState::Waiting | RunState::Paused) {
        known.questions.iter().for_each(|question| show(style, question));
    }
    let id = short(run.run);
    match run.state {
        RunState::Paused => line(&style.dim(&format!("  choir runs resume {id} --watch goes on"))),
        RunState::Completed | RunState::Failed | RunState::Cancelled if !known.results.is_empty() => {
            line(&style.dim(&format!("  choir runs undo {id} takes it back")));
        }
        RunState::Completed
        | RunState::Failed
        | RunState::Cancelled
        | RunState::Running
        | RunState::Waiting => {}
    }
    Ok(())
}

/// Asks the person at the terminal for everything that waits. False if they do not want to say anything now.
fn ask(context: &Context, run: RunId) -> Result<bool> {
    let open = details(context, &run.to_string())?.questions;
    for question in open.into_iter().filter(|question| question.about.needs_answer()) {
        show(context.style, &question);
        let Some(reply) = hear_reply(context.style, &question)? else { return Ok(false) };
        let answer = RunGesture::Answer { ask: question.ask, reply };
        gesture_on(context, &run.to_string(), answer)?;
    }
    Ok(true)
}

/// What the person types; nothing, if they leave it for later.
fn hear_reply(style: Style, question: &RunQuestion) -> Result<Option<Reply>> {
    let prompt = match &question.about {
        AskKind::Approval { .. } => "[o]nce, this [r]un, [a]lways, [d]eny, [l]ater? ",
        AskKind::Interrupted { .. } => "make it again: [o]nce, [d]eny, [l]ater? ",
        AskKind::Outgoing { .. } => "let it go now: [o]nce, [d]eny, [l]ater? ",
        AskKind::Question { .. } => "answer (nothing for later): ",
    };
    loop {
        let Some(typed) = read_line(style, prompt)? else { return Ok(None) };
        if let AskKind::Question { choices, .. } = &question.about {
            if typed.is_empty() {
                return Ok(None);
            }
            let chosen = typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
            return Ok(Some(Reply::Words(chosen.cloned().unwrap_or_else(|| typed.into()))));
        }
        let more = matches!(question.about, AskKind::Approval { .. });
        match typed.to_lowercase().as_str() {
            "o" | "once" | "y" | "yes" => return Ok(Some(Reply::Allow(Scope::Once))),
            "r" | "run" if more => return Ok(Some(Reply::Allow(Scope::Run))),
            "a" | "always" if more => return Ok(Some(Reply::Allow(Scope::Always))),
            "d" | "deny" | "n" | "no" => {
                let why = read_line(style, "why: ")?.filter(|why| !why.is_empty());
                return Ok(Some(Reply::Deny(why.unwrap_or_else(|| "the person said no".into()).into())));
            }
            "l" | "later" => return Ok(None),
            _ => {}
        }
    }
}

pub(super) fn read_line(style: Style, prompt: &str) -> Result<Option<String>> {
    write!(stdout(), "{}", style.bold(prompt))?;
    stdout().flush()?;
    let mut typed = String::new();
    let count = stdin().lock().read_line(&mut typed)?;
    Ok((count > 0).then(|| typed.trim().to_owned()))
}
