//! `choir search`: files by name and content.

use anyhow::Result;
use projector::Views;

use super::Context;
use crate::cli::Search;
use crate::render::{json, line, safe, size};
use computer::error::ComputerError;
use computer::protocol::Request;

pub(crate) fn run(context: &Context, args: &Search) -> Result<()> {
    // The index must contain the latest outside edits.
    context.ask(Request::Status, &mut std::io::empty())?;
    let views = Views::open_read_only(&context.paths()?.state).map_err(ComputerError::from)?;
    let hits = views.search(&args.words.join(" "), args.limit).map_err(ComputerError::from)?;
    if context.style.is_json() {
        for hit in &hits {
            json(&serde_json::json!({ "path": hit.path, "size": hit.size }));
        }
        return Ok(());
    }
    if hits.is_empty() {
        line("no file matches all of these words");
    }
    for hit in &hits {
        line(&format!("{}  {}", safe(&hit.path), context.style.dim(&size(hit.size))));
    }
    Ok(())
}
