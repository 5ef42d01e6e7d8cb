//! What the harness of agents costs: the time of a step beyond its model, for one run and for a hundred at once, and
//! the time until a hundred runs go on whose process was killed.
//!
//! `cargo xtask bench agents`, or `cargo run --release -p sandbox --example harness`. One JSON object a case; it fails
//! where a bar is missed.

mod figures;
mod killed;
mod machine;
mod overhead;

use anyhow::{Context, Result};

use figures::Figures;
use killed::Worker;
use overhead::{Load, OverheadTarget};

const RUNS: usize = 100;

fn main() -> Result<()> {
    if let Some(worker) = Worker::told(std::env::args().skip(1))? {
        return worker.work();
    }
    let mut figures = Figures::default();
    let mut play = |load: Load, bar: OverheadTarget| {
        overhead::measure(load, bar, &mut figures).with_context(|| format!("{} runs", load.runs))
    };
    play(Load { runs: 1, steps: 40, millis: 0 }, OverheadTarget::Alone)?;
    play(Load { runs: RUNS, steps: 10, millis: 500 }, OverheadTarget::Crowd)?;
    play(Load { runs: RUNS, steps: 10, millis: 0 }, OverheadTarget::Crowd)?;
    killed::measure(RUNS, &mut figures).context("runs whose process is killed")?;
    figures.end()
}
