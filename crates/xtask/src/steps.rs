//! Steps run one after the other, each under a heading and with the time it took, until one fails.
//!
//! `check`, `test` and `deep` are lists of steps. They share the order, the clock, and a last line that names the step
//! that failed and the command that runs it alone.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::workspace::Workspace;

pub(crate) trait Step {
    /// One or two words, for the heading and the summary.
    fn name(&self) -> &'static str;
    /// The command that runs only this step.
    fn alone(&self) -> &'static str;
    fn run(&self, workspace: &Workspace) -> Result<()>;
}

/// Runs all steps in order and returns a summary line, or stops at the first that fails.
pub(crate) fn run_in_order<S: Step>(title: &str, steps: &[S], workspace: &Workspace) -> Result<String> {
    let start = Instant::now();
    let mut times = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        println!("\n[{}/{}] {}: {}", index + 1, steps.len(), step.name(), step.alone());
        let took = timed(step, workspace).with_context(|| {
            let name = step.name();
            format!("{title} stopped at {name}; run only that with: {}\n  because", step.alone())
        })?;
        println!("[{}/{}] {}: ok, {}", index + 1, steps.len(), step.name(), seconds(took));
        times.push(format!("{} {}", step.name(), seconds(took)));
    }
    let count = match steps.len() {
        1 => "1 step".to_owned(),
        n => format!("{n} steps"),
    };
    Ok(format!("{title}: {count} passed in {} ({})", seconds(start.elapsed()), times.join(", ")))
}

fn timed<S: Step>(step: &S, workspace: &Workspace) -> Result<Duration> {
    let start = Instant::now();
    step.run(workspace)?;
    Ok(start.elapsed())
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Probe<'a> {
        name: &'static str,
        passes: bool,
        runs: &'a Cell<usize>,
    }

    impl Step for Probe<'_> {
        fn name(&self) -> &'static str {
            self.name
        }
        fn alone(&self) -> &'static str {
            "cargo probe"
        }
        fn run(&self, _: &Workspace) -> Result<()> {
            self.runs.set(self.runs.get() + 1);
            anyhow::ensure!(self.passes, "the probe failed");
            Ok(())
        }
    }

    fn empty_workspace() -> Workspace {
        Workspace { root: "".into(), target: "".into(), packages: Vec::new() }
    }

    #[test]
    fn the_summary_names_every_step() {
        let runs = Cell::new(0);
        let probe = |name| Probe { name, passes: true, runs: &runs };
        let summary = run_in_order("test", &[probe("one"), probe("two")], &empty_workspace()).unwrap();
        assert!(summary.starts_with("test: 2 steps passed in "), "{summary}");
        assert!(summary.contains("one ") && summary.contains("two "), "{summary}");
    }

    #[test]
    fn the_first_failure_ends_the_run_and_says_how_to_repeat_it() {
        let runs = Cell::new(0);
        let probe = |name, passes| Probe { name, passes, runs: &runs };
        let steps = [probe("one", true), probe("two", false), probe("three", true)];
        let error = format!("{:#}", run_in_order("test", &steps, &empty_workspace()).unwrap_err());
        assert_eq!(runs.get(), 2);
        assert!(error.contains("test stopped at two; run only that with: cargo probe"), "{error}");
        assert!(error.contains("the probe failed"), "{error}");
    }
}
