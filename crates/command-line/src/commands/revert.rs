//! `choir undo`, `choir redo`, `choir restore`.

use anyhow::Result;
use kernel::Choice;
use shared_types::Subject;

use super::Context;
use crate::cli::{Restore, Revert};
use crate::render::done;
use computer::error::{ComputerError, ErrorCode};
use computer::protocol::{Choices, Request};

pub(crate) fn undo(context: &Context, args: &Revert) -> Result<()> {
    let request =
        Request::Undo { target: args.op.clone(), choices: choices(context, args)?, preview: args.preview };
    let answer = context.change(request, &mut std::io::empty())?;
    done(context.style, if args.preview { "undo" } else { "undone" }, &answer);
    Ok(())
}

pub(crate) fn redo(context: &Context, args: &Revert) -> Result<()> {
    let request =
        Request::Redo { target: args.op.clone(), choices: choices(context, args)?, preview: args.preview };
    let answer = context.change(request, &mut std::io::empty())?;
    done(context.style, if args.preview { "redo" } else { "redone" }, &answer);
    Ok(())
}

pub(crate) fn restore(context: &Context, args: &Restore) -> Result<()> {
    let request = Request::Restore { seq: args.seq, preview: args.preview };
    let answer = context.change(request, &mut std::io::empty())?;
    done(context.style, if args.preview { "restore" } else { "restored" }, &answer);
    Ok(())
}

pub(crate) fn choices(context: &Context, args: &Revert) -> Result<Choices> {
    let mut each = Vec::new();
    for (names, choice) in [(&args.keep, Choice::Keep), (&args.take, Choice::Take)] {
        for name in names {
            each.push((subject(context, name)?, choice));
        }
    }
    let others = match (args.keep_all, args.take_all) {
        (true, _) => Some(Choice::Keep),
        (false, true) => Some(Choice::Take),
        (false, false) => None,
    };
    Ok(Choices { each, others })
}

fn subject(context: &Context, name: &str) -> Result<Subject> {
    let bad = |e: String| ComputerError::new(ErrorCode::BadRequest, format!("{name:?}: {e}"));
    Ok(if let Some(key) = name.strip_prefix("setting:") {
        Subject::Setting(key.into())
    } else if let Some(id) = name.strip_prefix("window:") {
        Subject::Window(id.parse().map_err(|e: shared_types::IdError| bad(e.to_string()))?)
    } else if let Some(id) = name.strip_prefix("note:") {
        Subject::Note(id.parse().map_err(|e: shared_types::IdError| bad(e.to_string()))?)
    } else {
        Subject::File(context.paths()?.path(name.as_ref())?)
    })
}
