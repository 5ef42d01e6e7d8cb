//! `choir write`, `choir rm`, `choir mv`.

use std::fs::File;
use std::io::{IsTerminal, Read, stdin};
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context as _, Result};
use kernel::Base;
use shared_types::wire::MoveBody;

use super::Context;
use crate::cli::{Mv, Rm, Write};
use crate::render::done;
use computer::error::{ComputerError, ErrorCode, from_anyhow};
use computer::protocol::Request;

pub(crate) fn write(context: &Context, args: &Write) -> Result<()> {
    let path = context.paths()?.path(&args.path)?;
    let base = match (&args.base, args.new) {
        (Some(hash), _) => Base::Content(*hash),
        (None, true) => Base::Absent,
        (None, false) => Base::Any,
    };
    let mut mode = args.mode;
    let mut body: Box<dyn Read> = match &args.from {
        Some(from) => {
            let file = File::open(from).with_context(|| format!("{} cannot be read", from.display()))?;
            let meta = file.metadata().with_context(|| format!("{} cannot be read", from.display()))?;
            anyhow::ensure!(meta.is_file(), "{} is not a regular file", from.display());
            // An executable file keeps its mode.
            mode = mode.or((meta.permissions().mode() & 0o111 != 0).then_some(0o755));
            Box::new(file)
        }
        None => {
            if stdin().is_terminal() && !context.style.is_json() {
                eprintln!("reading from the terminal; end with Ctrl-D");
            }
            Box::new(stdin().lock())
        }
    };
    let shown = path.clone();
    let answer = context.change(Request::Write { path, mode, base }, &mut body).map_err(|error| {
        let stale = from_anyhow(&error).code == ErrorCode::Conflict && base == Base::Absent;
        let taken = || ComputerError::new(ErrorCode::Conflict, format!("{shown} already exists"));
        if stale { taken().into() } else { error }
    })?;
    done(context.style, "wrote", &answer);
    Ok(())
}

pub(crate) fn remove(context: &Context, args: &Rm) -> Result<()> {
    let here = context.paths()?;
    let paths = args.paths.iter().map(|path| here.path(path)).collect::<Result<_, _>>()?;
    let answer = context.change(Request::Remove { paths }, &mut std::io::empty())?;
    done(context.style, "removed", &answer);
    Ok(())
}

pub(crate) fn rename(context: &Context, args: &Mv) -> Result<()> {
    let paths = context.paths()?;
    let (from, to) = (paths.path(&args.from)?, paths.path(&args.to)?);
    let moves = vec![MoveBody { from, to }];
    let answer = context.change(Request::Move { moves }, &mut std::io::empty())?;
    done(context.style, "moved", &answer);
    Ok(())
}
