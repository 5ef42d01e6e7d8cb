//! `choir export` and `choir import`.

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::path::Path;

use anyhow::{Context as _, Result};
use event_log::EventLog;

use super::{Context, moment, status};
use crate::cli::{Export, Import};
use crate::render::{ProgressReport, count, done, json, line, safe, size};
use archive::{self, Archive, Limits, Manifest};
use computer::error::{ComputerError, ErrorCode, from_anyhow};
use computer::ids;
use computer::protocol::Request;
use computer::socket;

pub(crate) fn export(context: &Context, args: &Export) -> Result<()> {
    // Outside edits belong to the current state.
    if args.at.is_none() {
        match context.ask(Request::Status, &mut std::io::empty()).map_err(|e| from_anyhow(&e)) {
            Ok(_) => {}
            // A read-only disk has no new edits, and its log can still be exported.
            Err(failure) if failure.code == ErrorCode::ReadOnly => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    let log = context.reading()?;
    let at = moment(&log, args.at)?;
    let bar = ProgressReport::new(context.style);
    let progress = |done, total| bar.update("exporting", done, total);
    let manifest = if args.file == Path::new("-") {
        archive::export(&log, at, ids::now(), stdout().lock(), &progress).map_err(refused)?
    } else {
        to_file(&args.file, |out| archive::export(&log, at, ids::now(), out, &progress).map_err(refused))?
    };
    drop(bar);
    if args.file != Path::new("-") {
        report(context, &args.file, &manifest);
    }
    Ok(())
}

/// The file appears under its name only when it is complete.
fn to_file(file: &Path, write: impl FnOnce(&mut BufWriter<&File>) -> Result<Manifest>) -> Result<Manifest> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        Some(_) | None => Path::new("."),
    };
    let draft = tempfile::Builder::new()
        .prefix(".choir-export-")
        .tempfile_in(folder)
        .with_context(|| format!("cannot write in {}", folder.display()))?;
    let mut out = BufWriter::new(draft.as_file());
    let manifest = write(&mut out)?;
    out.flush()?;
    drop(out);
    draft.as_file().sync_all()?;
    draft.persist(file).with_context(|| format!("{} cannot be written", file.display()))?;
    Ok(manifest)
}

fn report(context: &Context, file: &Path, manifest: &Manifest) {
    if context.style.is_json() {
        return json(manifest);
    }
    let bytes = std::fs::metadata(file).map(|m| m.len()).unwrap_or_default();
    line(&format!(
        "exported {} and {} to {} ({})",
        count(manifest.seq.0, "event"),
        count(manifest.contents.count, "content"),
        safe(&file.display().to_string()),
        size(bytes)
    ));
    line(&format!("  head {}, root {}", manifest.hash.short(), manifest.root.short()));
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> anyhow::Error {
    let failure = from_anyhow(&anyhow::Error::new(error));
    let code = if failure.code == ErrorCode::Failed { ErrorCode::Refused } else { failure.code };
    ComputerError { code, ..failure }.into()
}

pub(crate) fn import(context: &Context, args: &Import) -> Result<()> {
    let paths = context.paths()?;
    let file = args.file.canonicalize().with_context(|| format!("{} cannot be read", args.file.display()))?;
    let into = args.into.as_ref().map(|folder| paths.path(folder)).transpose()?;
    let log = context.reading()?;
    let is_empty = log.head().seq.0 <= 1;
    if !is_empty || into.is_some() {
        let answer = context.change(Request::Import { file, into }, &mut std::io::empty())?;
        done(context.style, "imported", &answer);
        return Ok(());
    }
    let user = log.user().clone();
    drop(log);
    if socket::connect(&paths)?.is_some() {
        let message =
            "importing replaces the log of an empty computer, which must be closed first; end choir watch";
        return Err(ComputerError::new(ErrorCode::Busy, message).into());
    }
    // Files that are not in the log yet would count as edits of the imported ones.
    let answer = context.ask(Request::Status, &mut std::io::empty())?;
    if let computer::protocol::Answer::Status(status) = &answer
        && status.head.0 > 1
    {
        let message = "the folder contains files; import into an empty one, or use --into FOLDER";
        return Err(ComputerError::new(ErrorCode::Refused, message).into());
    }
    let bar = ProgressReport::new(context.style);
    let source = File::open(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    let verified =
        Archive::verify(source, Limits::default(), &|d, t| bar.update("verifying", d, t)).map_err(refused)?;
    archive::adopt(&verified, &paths.state, user, &|d, t| bar.update("adopting", d, t)).map_err(refused)?;
    drop(bar);
    let answer = context.ask(Request::Status, &mut std::io::empty())?;
    if !context.style.is_json() {
        line(&format!("adopted the log of {}", verified.manifest().user));
    }
    status::show(context, &answer)
}
