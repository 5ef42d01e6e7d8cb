//! `choir approve`: lists and answers the questions of agents, and lists and revokes grants.

use std::process::ExitCode;

use anyhow::Result;
use computer::protocol::{Request, RunRequest, RunResponse};
use sandbox::computer_host::ComputerHost;
use shared_types::payload::run::{ApprovalScope, AskKind, Reply};
use shared_types::wire::{RunLine, RunQuestion};

use super::Context;
use super::follow_run::{FollowMode, follow_run};
use super::runs::{line_of, print_change, short, unexpected_answer};
use crate::cli::Approve;
use crate::render::{ProgressReport, Style, done, json, line, safe};

pub(crate) fn run(context: &Context, args: &Approve) -> Result<ExitCode> {
    if args.grants {
        return grants(context).map(|()| ExitCode::SUCCESS);
    }
    if let Some(grant) = args.revoke.clone() {
        let revoked =
            context.change(Request::AgentRuns(RunRequest::Revoke { grant }), &mut std::io::empty())?;
        done(context.style, "revoked", &revoked);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(reply) = reply(args) else { return list(context).map(|()| ExitCode::SUCCESS) };
    let request = RunRequest::Answer { ask: args.ask.clone(), reply };
    if !args.watch {
        let answered = line_of(context.about_runs(request)?)?;
        print_change(context, "answered", &answered)?;
        return Ok(ExitCode::SUCCESS);
    }
    watched(context, |context| line_of(context.about_runs(request)?))
}

/// Changes a run and follows it from there, hosting it in this process if no other process holds the computer.
pub(crate) fn watched(context: &Context, act: impl FnOnce(&Context) -> Result<RunLine>) -> Result<ExitCode> {
    let bar = ProgressReport::new(context.style);
    let tell = |phase: &str, done, total| bar.update(phase, done, total);
    let host = ComputerHost::open_unless_held(&context.paths()?, &context.agent_services()?, &tell)?;
    drop(bar);
    let ended = act(context).and_then(|run| follow_run(context, &run, FollowMode::AllSteps, host.is_some()));
    if let Some(host) = host {
        host.close();
    }
    ended
}

/// The answer in the arguments, if any.
fn reply(args: &Approve) -> Option<Reply> {
    match args {
        Approve { deny: Some(why), .. } => Some(Reply::Deny(why.as_str().into())),
        Approve { answer: Some(words), .. } => Some(Reply::Words(words.as_str().into())),
        Approve { run: true, .. } => Some(Reply::Allow(ApprovalScope::Run)),
        Approve { always: true, .. } => Some(Reply::Allow(ApprovalScope::Always)),
        Approve { once: true, .. } | Approve { ask: Some(_), .. } => Some(Reply::Allow(ApprovalScope::Once)),
        Approve { .. } => None,
    }
}

fn list(context: &Context) -> Result<()> {
    let RunResponse::Questions(open) = context.about_runs(RunRequest::Questions)? else {
        return Err(unexpected_answer());
    };
    if context.style.is_json() {
        open.questions.iter().for_each(json);
        return Ok(());
    }
    if open.questions.is_empty() {
        line("no pending questions");
    }
    open.questions.iter().for_each(|question| show(context.style, question));
    Ok(())
}

/// Prints a question with everything needed to answer it.
pub(crate) fn show(style: Style, question: &RunQuestion) {
    let id = short(question.id);
    let who = format!("{} in run {}", safe(&question.role), short(question.run));
    match &question.about {
        AskKind::Approval { tool, title, why, is_final, pattern, .. } => {
            line(&format!(
                "{} {who} wants to {}: {}",
                style.bold(&id),
                safe(tool),
                style.bold(&exact(title))
            ));
            line(&format!("  reason: {}", safe(why)));
            if *is_final {
                line(&format!("  {}", style.paint("31", "this cannot be undone")));
            }
            show_input(style, question);
            line(&style.dim(&format!(
                "  choir approve {id} (once), --run or --always (for {}), --deny WHY",
                safe(pattern)
            )));
        }
        AskKind::Question { text, choices, .. } => {
            line(&format!("{} {who} asks: {}", style.bold(&id), safe(text)));
            for (number, choice) in choices.iter().enumerate() {
                line(&format!("    {}. {}", number + 1, safe(choice)));
            }
            line(&style.dim(&format!("  choir approve {id} --answer WORDS, or --deny WHY")));
        }
        AskKind::Interrupted { tool, title, .. } => {
            let what = format!("{}: {}", safe(tool), exact(title));
            line(&format!(
                "{} {who} was interrupted during this call, which may already have had an effect outside:",
                style.bold(&id)
            ));
            line(&format!("    {what}"));
            show_input(style, question);
            line(&style.dim(&format!("  choir approve {id} lets the agent repeat it, --deny WHY does not")));
        }
        AskKind::Outgoing { tool, title, .. } => {
            let when = match question.leaves_in {
                Some(left) => format!("in {} s", left.div_ceil(1000)),
                None => "after the run resumes".to_owned(),
            };
            line(&format!(
                "{} {who} is about to {}: {}",
                style.bold(&id),
                safe(tool),
                style.bold(&exact(title))
            ));
            line(&format!(
                "  {}",
                style.paint("31", &format!("it is sent {when} and cannot be undone after that"))
            ));
            show_input(style, question);
            line(&style.dim(&format!("  choir approve {id} sends it now, --deny WHY cancels it")));
        }
    }
    if !question.taint.is_empty() {
        let from: Vec<_> = question.taint.iter().map(|label| safe(label.as_str())).collect();
        line(&format!("  it has read untrusted content from: {}", from.join(", ")));
    }
}

/// Prints the diff of a call, or else its input.
fn show_input(style: Style, question: &RunQuestion) {
    match (&question.diff, &question.input) {
        (Some(diff), _) => diff.lines().for_each(|text| line(&format!("    {}", coloured(style, text)))),
        (None, Some(input)) => input.lines().for_each(|text| line(&format!("    {}", safe(text)))),
        (None, None) => {}
    }
}

fn coloured(style: Style, text: &str) -> String {
    let safe = safe(&text.replace('\t', "    "));
    match text.as_bytes().first() {
        Some(b'+') => style.paint("32", &safe),
        Some(b'-') => style.paint("31", &safe),
        Some(b'@') => style.paint("36", &safe),
        Some(_) | None => safe,
    }
}

fn grants(context: &Context) -> Result<()> {
    let RunResponse::Grants(list) = context.about_runs(RunRequest::Grants)? else {
        return Err(unexpected_answer());
    };
    if context.style.is_json() {
        list.grants.iter().for_each(json);
        return Ok(());
    }
    if list.grants.is_empty() {
        line("agents may do nothing without asking, beyond the rules");
    }
    for grant in &list.grants {
        let place =
            grant.run.map_or_else(|| "in every run".to_owned(), |run| format!("in run {}", short(run)));
        let what = format!("{}: {}", safe(&grant.tool), safe(&grant.pattern));
        line(&format!("{} {what} {}", context.style.bold(&short(grant.grant)), context.style.dim(&place)));
    }
    Ok(())
}

/// Every line of what is to be run; nothing in it reaches the terminal but its text.
fn exact(text: &str) -> String {
    text.lines().map(safe).collect::<Vec<_>>().join("\n    ")
}
