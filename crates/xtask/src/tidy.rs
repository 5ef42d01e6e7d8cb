//! `cargo xtask tidy`: the rules of this repository that no compiler knows.
//!
//! Each rule is a pure function from data to findings, in a module of its own, with a test that shows it fail.
//! This module does the reading: cargo's metadata, the files that git would commit, the generated document.

mod events_doc;
mod finding;
mod layers;
mod machine_paths;
mod manifests;
mod module_docs;
mod module_names;
mod sizes;
mod sources;

use anyhow::{Result, bail};
use finding::{Finding, Severity};

use crate::workspace::Workspace;

/// The repository's own rules: direction of dependencies, sizes, docs, names
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Findings are printed as `path:line: what is wrong, what to do`. CONTRIBUTING.md gives the reasons.

Examples:
  cargo xtask tidy
  cargo xtask tidy --fix        also writes docs/events.md anew from the types")]
pub(crate) struct Args {
    /// Mend what can be mended by itself: docs/events.md
    #[arg(long)]
    fix: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let events_doc = if args.fix { events_doc::rewrite(workspace)? } else { events_doc::compare(workspace)? };
    let mut findings = static_findings(workspace)?;
    findings.extend(events_doc);
    report(findings)
}

/// All rules that need no program to run.
fn static_findings(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = layers::check(&workspace.packages);
    for package in &workspace.packages {
        findings.extend(manifests::check(&package.manifest));
    }
    for file in sources::committable(&workspace.root)? {
        findings.extend(sizes::check(&file));
        findings.extend(module_docs::check(&file));
        findings.extend(module_names::check(&file));
        findings.extend(machine_paths::check(&file));
    }
    Ok(findings)
}

fn report(mut findings: Vec<Finding>) -> Result<()> {
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    match findings.iter().filter(|finding| finding.severity == Severity::Error).count() {
        0 => Ok(()),
        1 => bail!("tidy found 1 thing to mend"),
        n => bail!("tidy found {n} things to mend"),
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
        assert_eq!(error.to_string(), "tidy found 1 thing to mend");
    }
}
