//! `choir replay`: recomputes the state from the first event.

use std::time::Instant;

use anyhow::Result;
use event_log::replay::view_from_nothing;

use super::{Context, moment};
use crate::cli::Replay;
use crate::render::{count, json, line};
use computer::error::ComputerError;

pub(crate) fn run(context: &Context, args: &Replay) -> Result<()> {
    let log = context.reading()?;
    let to = moment(&log, args.to)?;
    let started = Instant::now();
    let mut view = view_from_nothing(&log, to).map_err(ComputerError::from)?;
    let root = view.root();
    let seconds = started.elapsed().as_secs_f64();
    let rate = to.0 as f64 / seconds.max(1e-9);
    if context.style.is_json() {
        let roots: serde_json::Map<String, serde_json::Value> =
            view.roots().into_iter().map(|(name, root)| (name.to_owned(), root.to_string().into())).collect();
        json(&serde_json::json!({
            "events": to, "root": root, "slices": roots, "files": view.files.len(), "seconds": seconds,
        }));
        return Ok(());
    }
    line(&format!("{} in {seconds:.3} s ({rate:.0}/s)", count(to.0, "event")));
    line(&format!("root  {root}"));
    for (name, root) in view.roots() {
        line(&context.style.dim(&format!("  {name:<14} {}", root.short())));
    }
    Ok(())
}
