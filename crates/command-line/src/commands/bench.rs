//! `choir bench`: prints each case with its reference.

use anyhow::{Context as _, Result};

use super::Context;
use crate::cli::{Bench, BenchKind};
use crate::render::{json, line};
use bench::{Benchmark, Scale, Subject, probe_computers, probe_memory};

pub(crate) fn run(context: &Context, args: &Bench) -> Result<()> {
    if let Some(folder) = &args.probe_memory {
        let subject =
            args.probe_subject.as_deref().and_then(Subject::parse).context("unknown --probe-subject")?;
        return probe_memory(folder, subject);
    }
    if let Some(folder) = &args.probe_computers {
        let users = args.probe_subject.as_deref().and_then(|users| users.parse().ok());
        return probe_computers(folder, users.context("--probe-subject is not a number of users")?);
    }
    let benchmark = match args.kind.context("no benchmark given")? {
        BenchKind::Append => Benchmark::Append,
        BenchKind::Replay => Benchmark::Replay,
        BenchKind::Undo => Benchmark::Undo,
        BenchKind::Fanout => Benchmark::Fanout,
        BenchKind::Cell => Benchmark::Cell,
        BenchKind::Computers => Benchmark::Computers,
        BenchKind::Put => Benchmark::Put,
    };
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let parent = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::Builder::new()
        .prefix("choir-bench-")
        .tempdir_in(&parent)
        .with_context(|| format!("cannot create a folder in {}", parent.display()))?;
    bench::run(benchmark, scale, folder.path(), &mut |figure| {
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
