//! `choir bench`: figures with their references, one JSON object a line and case.

use anyhow::{Context as _, Result};

use super::Context;
use crate::bench::{Scale, Subject, Which, probe_memory};
use crate::cli::{Bench, BenchKind};
use crate::render::{json, line};

pub(crate) fn run(context: &Context, args: &Bench) -> Result<()> {
    if let Some(folder) = &args.probe_memory {
        let subject = args.probe_subject.as_deref().and_then(Subject::parse).context("whose memory?")?;
        return probe_memory(folder, subject);
    }
    let which = match args.kind.context("what is to be measured?")? {
        BenchKind::Append => Which::Append,
        BenchKind::Replay => Which::Replay,
        BenchKind::Undo => Which::Undo,
        BenchKind::Fanout => Which::Fanout,
        BenchKind::Cell => Which::Cell,
    };
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let parent = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("choir-bench-")
        .tempdir_in(&parent)
        .with_context(|| format!("no folder can be made in {}", parent.display()))?;
    crate::bench::run(which, scale, folder.path(), &mut |figure| {
        if context.style.is_json() {
            return json(figure);
        }
        let p99 = figure.p99_ratio.map(|ratio| format!(", p99 ratio {ratio}")).unwrap_or_default();
        line(&format!(
            "{} {:<14} {} {} (reference {}), ratio {}{p99}",
            figure.bench, figure.case, figure.ours, figure.unit, figure.reference, figure.ratio
        ));
    })
}
