//! Follows a run: prints steps and text as they arrive, asks its questions at the terminal, and returns its exit code.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;
use computer::client;
use computer::paths::ComputerPaths;
use computer::protocol::{Request, RunRequest, RunUpdate};
use indicatif::ProgressBar;
use shared_types::payload::run::{ApprovalScope, AskKind, Reply};
use shared_types::wire::{RunControl, RunLine, RunQuestion, RunState, Step, StepKind};
use shared_types::{AskId, RunId, Seq, TaskId};

use super::Context;
use super::approve::show;
use super::runs::{control_run, cost, details, ending, print_step, role, short, word};
use crate::render::{Style, json, line, safe};

const PAUSED: u8 = 11;
/// The exit code by which shells report a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// How much of a run is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FollowMode {
    AllSteps,
    ResultOnly,
}

/// The exit code for the state of a run.
fn code(state: RunState) -> ExitCode {
    match state {
        RunState::Completed | RunState::Running => ExitCode::SUCCESS,
        RunState::Failed => ExitCode::from(8),
        RunState::Cancelled => ExitCode::from(9),
        RunState::Waiting => ExitCode::from(10),
        RunState::Paused => ExitCode::from(PAUSED),
    }
}

/// Follows a run until it ends, is paused, or waits for an answer that cannot be asked for here. `hosted` means that
/// the agents work in this process.
pub(crate) fn follow_run(
    context: &Context,
    run: &RunLine,
    mode: FollowMode,
    hosted: bool,
) -> Result<ExitCode> {
    let paths = context.paths()?;
    let asking = Arc::new(AtomicBool::new(false));
    at_interrupt(&paths, run.run, hosted, &asking)?;
    let can_ask = mode == FollowMode::AllSteps
        && !context.style.is_json()
        && stdin().is_terminal()
        && stdout().is_terminal();
    let mut view = RunView::new(context, run.run, mode);
    loop {
        let after = view.seen;
        let now = client::follow(&paths, run.run, after, &mut |heard| view.hear(heard))?;
        view.end_line();
        if now.state != RunState::Waiting || !can_ask {
            print_end(context, &now)?;
            return Ok(code(now.state));
        }
        asking.store(true, Ordering::Relaxed);
        let answered = ask(context, run.run)?;
        asking.store(false, Ordering::Relaxed);
        if !answered {
            print_end(context, &now)?;
            return Ok(code(now.state));
        }
    }
}

/// Ctrl-C pauses a run that is hosted here. A run in another process continues; only the watching ends.
fn at_interrupt(paths: &ComputerPaths, run: RunId, hosted: bool, asking: &Arc<AtomicBool>) -> Result<()> {
    let (paths, asking) = (paths.clone(), Arc::clone(asking));
    client::on_first_signal(move || {
        if !hosted {
            eprintln!("\nthe run continues: choir runs {} --watch", short(run));
            std::process::exit(INTERRUPTED);
        }
        let request = RunRequest::Control { run: run.to_string(), control: RunControl::Pause };
        let paused =
            client::request(&paths, Request::AgentRuns(request), &mut std::io::empty(), &|_, _, _| ());
        // Following the run notices the pause by itself, but not while it waits for a typed answer.
        if paused.is_err() || asking.load(Ordering::Relaxed) {
            eprintln!("\npaused: choir runs resume {} --watch", short(run));
            std::process::exit(i32::from(PAUSED));
        }
    })?;
    Ok(())
}

/// What was printed of a run so far.
struct RunView<'a> {
    context: &'a Context,
    run: RunId,
    mode: FollowMode,
    seen: Seq,
    roles: HashMap<TaskId, String>,
    /// Steps that were printed. They are printed again only if they changed.
    printed: HashMap<Seq, Step>,
    /// The agent whose streamed text is on the current, unfinished line.
    speaking: Option<TaskId>,
    /// The agent whose reply was already printed as it was streamed.
    streamed: Option<TaskId>,
    /// Outbox calls that were printed.
    printed_outgoing: HashSet<AskId>,
    live: bool,
    spinner: Option<ProgressBar>,
}

impl<'a> RunView<'a> {
    fn new(context: &'a Context, run: RunId, mode: FollowMode) -> Self {
        let json = context.style.is_json();
        let quiet = mode == FollowMode::ResultOnly && !json && std::io::stderr().is_terminal();
        let spinner = quiet.then(|| {
            let spinner = ProgressBar::new_spinner();
            spinner.enable_steady_tick(std::time::Duration::from_millis(120));
            spinner
        });
        Self {
            context,
            run,
            mode,
            seen: Seq::ZERO,
            roles: HashMap::new(),
            printed: HashMap::new(),
            speaking: None,
            streamed: None,
            printed_outgoing: HashSet::new(),
            live: mode == FollowMode::AllSteps && (json || stdout().is_terminal()),
            spinner,
        }
    }

    fn hear(&mut self, heard: RunUpdate) {
        match heard {
            RunUpdate::Step(step) => self.step(*step),
            RunUpdate::StreamedText { task, text } if self.live => self.words(task, &text),
            RunUpdate::StreamedText { .. } => {}
        }
    }

    fn step(&mut self, step: Step) {
        self.seen = self.seen.max(step.seq);
        if self.printed.get(&step.seq) == Some(&step) {
            return;
        }
        let again = self.printed.insert(step.seq, step.clone()).is_some();
        if let Some(spinner) = &self.spinner {
            spinner.set_message(safe(&step.label));
        }
        if self.mode == FollowMode::ResultOnly {
            return;
        }
        if self.context.style.is_json() {
            return json(&serde_json::json!({ "step": step }));
        }
        self.end_line();
        // A reply that was streamed is not printed twice.
        if step.kind == StepKind::Reply && self.streamed.take() == step.task && step.task.is_some() {
            return;
        }
        // A call that ended without any visible result.
        if again && !step.failed && step.files == 0 && !step.undone {
            return;
        }
        let role = step.task.map(|task| self.role(task)).unwrap_or_default();
        print_step(self.context.style, &step, &role);
        if step.kind == StepKind::Ask {
            self.show_outgoing();
        }
    }

    /// Prints calls in the outbox at once, with how to cancel them, because they leave without an answer.
    fn show_outgoing(&mut self) {
        let Ok(known) = details(self.context, &self.run.to_string()) else { return };
        for question in known.questions.iter().filter(|question| !question.about.needs_answer()) {
            if self.printed_outgoing.insert(question.id) {
                show(self.context.style, question);
            }
        }
    }

    fn words(&mut self, task: TaskId, text: &str) {
        if self.context.style.is_json() {
            return json(&serde_json::json!({ "said": { "task": task, "text": text } }));
        }
        if text.is_empty() {
            // The model starts its reply again.
            self.end_line();
            return;
        }
        if self.speaking != Some(task) {
            self.end_line();
            let role = self.role(task);
            let _ = write!(stdout(), "       {} ", self.context.style.paint("36", &format!("{role:<10}")));
        }
        self.speaking = Some(task);
        self.streamed = Some(task);
        let safe: String = text.chars().map(|c| if c == '\n' { c } else { plain(c) }).collect();
        let _ = stdout().write_all(self.context.style.dim(&safe).as_bytes()).and_then(|()| stdout().flush());
    }

    /// Ends an unfinished line of streamed text.
    fn end_line(&mut self) {
        if self.speaking.take().is_some() {
            line("");
        }
    }

    fn role(&mut self, task: TaskId) -> String {
        if !self.roles.contains_key(&task)
            && let Ok(known) = details(self.context, &self.run.to_string())
        {
            let all =
                known.agents.iter().map(|agent| (agent.id, role(&known.agents, Some(agent.id)).to_owned()));
            self.roles.extend(all);
        }
        self.roles.get(&task).cloned().unwrap_or_default()
    }
}

impl Drop for RunView<'_> {
    fn drop(&mut self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

fn plain(c: char) -> char {
    if c.is_control() { '\u{fffd}' } else { c }
}

fn print_end(context: &Context, run: &RunLine) -> Result<()> {
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
        RunState::Paused => line(&style.dim(&format!("  resume with: choir runs resume {id} --watch"))),
        RunState::Completed | RunState::Failed | RunState::Cancelled if !known.results.is_empty() => {
            line(&style.dim(&format!("  undo with: choir runs undo {id}")));
        }
        RunState::Completed
        | RunState::Failed
        | RunState::Cancelled
        | RunState::Running
        | RunState::Waiting => {}
    }
    Ok(())
}

/// Asks the pending questions at the terminal. Returns false if the person leaves one for later.
fn ask(context: &Context, run: RunId) -> Result<bool> {
    let open = details(context, &run.to_string())?.questions;
    for question in open.into_iter().filter(|question| question.about.needs_answer()) {
        show(context.style, &question);
        let Some(reply) = read_reply(context.style, &question)? else { return Ok(false) };
        let answer = RunControl::Answer { ask: question.id, reply };
        control_run(context, &run.to_string(), answer)?;
    }
    Ok(true)
}

/// Reads an answer. Returns `None` if the person leaves it for later.
fn read_reply(style: Style, question: &RunQuestion) -> Result<Option<Reply>> {
    let prompt = match &question.about {
        AskKind::Approval { .. } => "[o]nce, this [r]un, [a]lways, [d]eny, [l]ater? ",
        AskKind::Interrupted { .. } => "repeat the call: [o]nce, [d]eny, [l]ater? ",
        AskKind::Outgoing { .. } => "send it now: [o]nce, [d]eny, [l]ater? ",
        AskKind::Question { .. } => "answer (empty for later): ",
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
            "o" | "once" | "y" | "yes" => return Ok(Some(Reply::Allow(ApprovalScope::Once))),
            "r" | "run" if more => return Ok(Some(Reply::Allow(ApprovalScope::Run))),
            "a" | "always" if more => return Ok(Some(Reply::Allow(ApprovalScope::Always))),
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
