//! Rule: dependencies between the crates point one way, as the table in this file says.
//!
//! The table is the architecture: a crate that is not in it does not belong to the system yet. Tests may use any
//! crate, since no product code depends on them; only those of the pure crates at the bottom may not.

use std::collections::BTreeSet;

use super::{
    finding::Finding,
    graph::{self, Edges},
    manifests,
};
use crate::workspace::{Dependency, DependencyKind, Package};

const TABLE: &str = "the table in crates/xtask/src/tidy/layers.rs";

/// Each crate with the crates that it builds on; it may also use the crates that those build on.
pub(super) const LAYERS: &[(&str, &[&str])] = &[
    ("shared-types", &[]),
    ("kernel", &["shared-types"]),
    ("event-log", &["kernel"]),
    ("projector", &["kernel", "event-log"]),
    ("isolation", &[]),
    ("archive", &["event-log"]),
    ("checkpoints", &["event-log"]),
    ("computer", &["projector", "archive", "checkpoints", "isolation"]),
    ("web-access", &["isolation"]),
    ("models", &[]),
    ("mcp", &[]),
    ("local-model", &[]),
    ("agents", &["kernel", "models"]),
    ("hypervisor", &["shared-types"]),
    ("agent-host", &["computer", "agents", "mcp", "web-access"]),
    ("sandbox", &["agent-host", "hypervisor"]),
    ("dioxus-desktop", &["shared-types", "kernel"]),
    ("bench", &["sandbox"]),
    ("command-line", &["bench", "local-model"]),
    ("choir", &["command-line"]),
    ("scripted-model", &[]),
    ("xtask", &[]),
];

/// Crates that also run in the browser and in replay: they use no disk, no clock and no randomness.
const PURE: [&str; 2] = ["shared-types", "kernel"];
const IMPURE: [&str; 5] = ["tokio", "rusqlite", "rustix", "notify", "getrandom"];

pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        packages.iter().flat_map(|package| check_package(package, packages)).collect();
    findings.extend(cycle(packages));
    findings
}

/// A crate that another builds on according to the table must be one of its dependencies: the table says what is so.
pub(super) fn check_table(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, below) in LAYERS {
        let Some(package) = packages.iter().find(|package| package.name == *name) else { continue };
        let is_used = |wanted: &str| {
            let product = |dependency: &&Dependency| dependency.kind != DependencyKind::Dev;
            package.dependencies.iter().filter(product).any(|dependency| dependency.package == wanted)
        };
        for unused in below.iter().filter(|below| !is_used(below)) {
            let message = format!("`{name}` does not depend on `{unused}`; take it out of {TABLE}");
            findings.push(Finding::error(&package.manifest.path, 1, message));
        }
    }
    findings
}

fn check_package(package: &Package, packages: &[Package]) -> Vec<Finding> {
    let Some(allowed) = reach(&package.name) else {
        let message = format!("`{}` has no place in the architecture; give it one in {TABLE}", package.name);
        return vec![Finding::error(&package.manifest.path, 1, message)];
    };
    let finding = |dependency: &Dependency| {
        let message = if is_internal(dependency, packages) {
            direction(package, dependency, &allowed)
        } else {
            purity(package, dependency)
        };
        let line = || manifests::line_of(&package.manifest, &dependency.key, dependency.kind);
        message.map(|message| Finding::error(&package.manifest.path, line(), message))
    };
    package.dependencies.iter().filter_map(finding).collect()
}

fn is_internal(dependency: &Dependency, packages: &[Package]) -> bool {
    packages.iter().any(|package| package.name == dependency.package)
}

fn direction(package: &Package, dependency: &Dependency, allowed: &BTreeSet<&str>) -> Option<String> {
    let (from, to) = (package.name.as_str(), dependency.package.as_str());
    let is_pure = |name| PURE.contains(&name);
    match dependency.kind {
        DependencyKind::Dev if is_pure(from) && !is_pure(to) => Some(format!(
            "the tests of `{from}` may not use `{to}`, which lies above it; move the test to `{to}`"
        )),
        DependencyKind::Normal | DependencyKind::Build if !allowed.contains(to) => Some(format!(
            "`{from}` may not depend on `{to}`; move the code to where the arrows allow it, or change {TABLE} \
             and say why in docs/adr"
        )),
        DependencyKind::Dev | DependencyKind::Normal | DependencyKind::Build => None,
    }
}

fn purity(package: &Package, dependency: &Dependency) -> Option<String> {
    let impure = PURE.contains(&package.name.as_str())
        && IMPURE.contains(&dependency.package.as_str())
        && dependency.kind != DependencyKind::Dev;
    impure.then(|| {
        let (from, to) = (&package.name, &dependency.package);
        format!("`{from}` may not depend on `{to}`: no I/O, no clock; let the caller do that and pass the result in")
    })
}

/// All crates that a crate may depend on, or `None` if the table does not know it.
fn reach(name: &str) -> Option<BTreeSet<&'static str>> {
    let below = |name: &str| LAYERS.iter().find(|(known, _)| *known == name).map(|(_, below)| *below);
    let mut reached = BTreeSet::new();
    let mut open = below(name)?.to_vec();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(below(next)?);
        }
    }
    Some(reached)
}

/// The first cycle that product code makes. The table allows none, but a crate may not be in it yet.
fn cycle(packages: &[Package]) -> Option<Finding> {
    let edges: Edges<'_> = packages.iter().map(|p| (p.name.as_str(), product_edges(p))).collect();
    let cycle = graph::cycles(&edges).into_iter().next()?;
    let start = packages.iter().find(|package| Some(&package.name.as_str()) == cycle.first())?;
    let message = format!(
        "the crates depend on each other in a cycle ({}); move what they share below them",
        cycle.join(" -> ")
    );
    Some(Finding::error(&start.manifest.path, 1, message))
}

fn product_edges(package: &Package) -> BTreeSet<&str> {
    let product = package.dependencies.iter().filter(|dependency| dependency.kind != DependencyKind::Dev);
    product.map(|dependency| dependency.package.as_str()).collect()
}

#[cfg(test)]
mod tests;
