//! `choir status`: records outside edits and prints the state of the computer.

use anyhow::Result;

use super::Context;
use crate::render::{count, json, line, safe, short, size};
use computer::protocol::{Answer, Request};

pub(crate) fn run(context: &Context) -> Result<()> {
    let answer = context.ask(Request::Status, &mut std::io::empty())?;
    show(context, &answer)
}

pub(crate) fn show(context: &Context, answer: &Answer) -> Result<()> {
    let Answer::Status(status) = answer else { return Ok(()) };
    if context.style.is_json() {
        json(status);
        return Ok(());
    }
    let owner = status.owner.as_deref().unwrap_or("(no owner)");
    line(&format!(
        "{} ({}) at {}",
        context.style.bold(&safe(owner)),
        status.user,
        safe(&status.workspace.display().to_string())
    ));
    line(&format!("  files        {}, {}", count(status.files, "file"), size(status.bytes)));
    line(&format!("  log          {}, root {}", count(status.head.0, "event"), status.root.short()));
    match &status.checkpoint {
        Some((commit, seq)) => line(&format!(
            "  checkpoint   {} at event {seq}, {} since",
            &commit[..12.min(commit.len())],
            count(status.unsaved_operations, "operation")
        )),
        None => {
            line(&format!("  checkpoint   none yet, {} since", count(status.unsaved_operations, "operation")))
        }
    }
    if status.undone_operations > 0 {
        line(&format!(
            "  undone       {} (choir redo restores the last one)",
            count(status.undone_operations, "operation")
        ));
    }
    if let Some(op) = &status.captured_op {
        line(&format!(
            "  recorded     {} made outside, as operation {}",
            count(status.captured, "edit"),
            short(op)
        ));
    }
    if status.pending_effects > 0 {
        line(&format!("  pending      {}", count(status.pending_effects, "effect")));
    }
    if status.lag > 0 {
        line(&format!("  behind       {} not yet written to files", count(status.lag, "event")));
    }
    for (path, reason) in &status.skipped {
        line(&format!("  not recorded {}: {reason}", safe(path)));
    }
    for path in &status.unavailable {
        line(&format!("  missing      {}: its bytes were purged or are damaged", safe(path.as_str())));
    }
    for what in &status.blocked {
        line(&format!("  blocked      {}", safe(what)));
    }
    Ok(())
}
