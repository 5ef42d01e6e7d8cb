//! `cargo xtask tidy`: the rules of this repository that no compiler checks.
//!
//! Each rule is a pure function from data to findings, in a module of its own, with a test that shows it fail.
//! This module reads the data: cargo's metadata, the files that git would commit, the generated documents.

mod crate_map;
mod crate_sizes;
mod events_doc;
mod finding;
mod graph;
mod layers;
mod machine_paths;
mod manifests;
mod module_cycles;
mod module_docs;
mod module_names;
mod module_uses;
mod screen_words;
mod sizes;
mod sources;
mod tokens;
mod vague_words;

use anyhow::{Result, bail};
use finding::{Finding, Severity};

use crate::workspace::Workspace;

/// The repository's own rules: direction of dependencies, sizes, docs, names
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Findings are printed as `path:line: what is wrong, what to do`. CONTRIBUTING.md gives the reasons.

Examples:
  cargo xtask tidy
  cargo xtask tidy --fix        also writes what is generated: docs/events.md, the crates in
                                ARCHITECTURE.md, crates/xtask/word-budget.txt")]
pub(crate) struct Args {
    /// Write the generated files first: docs/events.md, the crates in ARCHITECTURE.md, the word budget
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.fix {
        crate_map::rewrite(workspace)?;
        vague_words::lower(workspace)?;
    }
    let events_doc = if args.fix { events_doc::rewrite(workspace)? } else { events_doc::compare(workspace)? };
    let mut findings = static_findings(workspace)?;
    findings.extend(events_doc);
    report(findings)
}

/// All rules that need no program to run.
fn static_findings(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = layers::check(&workspace.packages);
    findings.extend(layers::check_table(&workspace.packages));
    for package in &workspace.packages {
        findings.extend(manifests::check(&package.manifest));
    }
    let files = sources::committable(&workspace.root)?;
    for file in &files {
        findings.extend(sizes::check(file));
        findings.extend(module_docs::check(file));
        findings.extend(module_names::check(file));
        findings.extend(machine_paths::check(file));
        findings.extend(screen_words::check(file));
        findings.extend(crate_map::check(file));
    }
    findings.extend(crate_sizes::check(&files));
    findings.extend(module_cycles::check(&files));
    findings.extend(vague_words::check(&files));
    Ok(findings)
}

/// Whether a source file, by its path below `src/`, holds only tests.
fn is_test_source(inside: &str) -> bool {
    inside.split('/').any(|part| matches!(part, "tests" | "tests.rs"))
}

fn report(mut findings: Vec<Finding>) -> Result<()> {
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.iter().filter(|finding| finding.severity == Severity::Error).count() {
        0 => Ok(()),
        1 => bail!("tidy found 1 error"),
        n => bail!("tidy found {n} errors"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_alone_does_not_fail() {
        report(vec![Finding::warning("a.rs", 1, "it is long")]).unwrap();
    }

    #[test]
    fn an_error_fails_and_is_counted_once() {
        let finding = Finding::error("a.rs", 1, "it is too long");
        let error = report(vec![finding.clone(), finding]).unwrap_err();
        assert_eq!(error.to_string(), "tidy found 1 error");
    }
}
