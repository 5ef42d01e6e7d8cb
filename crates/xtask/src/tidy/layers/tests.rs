//! Arrows that must be found when they turn around, and those that must pass.

use DependencyKind::{Build, Dev, Normal};

use super::*;
use crate::workspace::TextFile;

fn package(name: &str, dependencies: &[(&str, DependencyKind)]) -> Package {
    let dependency =
        |&(name, kind): &(&str, DependencyKind)| Dependency { package: name.into(), key: name.into(), kind };
    let manifest = TextFile { path: format!("crates/{name}/Cargo.toml"), text: String::new() };
    Package { name: name.into(), manifest, dependencies: dependencies.iter().map(dependency).collect() }
}

/// The findings for one crate amid all crates of the table.
fn findings(name: &str, dependencies: &[(&str, DependencyKind)]) -> Vec<String> {
    let others = LAYERS.iter().filter(|(other, _)| *other != name).map(|(other, _)| package(other, &[]));
    let packages: Vec<Package> = others.chain([package(name, dependencies)]).collect();
    check(&packages).iter().map(ToString::to_string).collect()
}

#[test]
fn an_arrow_that_points_up_is_found() {
    for (from, to) in
        [("kernel", "event-log"), ("models", "kernel"), ("projector", "sandbox"), ("choir", "xtask")]
    {
        for kind in [Normal, Build] {
            let found = findings(from, &[(to, kind)]);
            assert_eq!(found.len(), 1, "{from} -> {to}");
            assert!(found[0].contains(&format!("`{from}` may not depend on `{to}`")), "{found:?}");
        }
    }
}

#[test]
fn what_lies_below_may_be_used_directly_or_across_a_layer() {
    for (from, to) in [("kernel", "shared-types"), ("event-log", "shared-types"), ("sandbox", "models")] {
        assert_eq!(findings(from, &[(to, Normal)]), [""; 0], "{from} -> {to}");
    }
    let everything: Vec<_> = LAYERS.iter().map(|(name, _)| (*name, Normal)).collect();
    let all_of_the_product: Vec<_> = everything
        .into_iter()
        .filter(|(n, _)| !["choir", "xtask", "scripted-model", "dioxus-desktop"].contains(n))
        .collect();
    assert_eq!(findings("choir", &all_of_the_product), [""; 0]);
}

#[test]
fn tests_may_look_up_except_those_of_the_pure_crates() {
    assert_eq!(findings("event-log", &[("projector", Dev)]), [""; 0]);
    assert_eq!(findings("shared-types", &[("kernel", Dev)]), [""; 0]);
    for pure in PURE {
        let found = findings(pure, &[("event-log", Dev)]);
        assert!(found.len() == 1 && found[0].contains("move the test to `event-log`"), "{found:?}");
    }
}

#[test]
fn a_pure_crate_with_a_disk_or_a_clock_is_found() {
    for pure in PURE {
        for impure in IMPURE {
            assert!(
                findings(pure, &[(impure, Normal)])[0].contains("no I/O, no clock"),
                "{pure} -> {impure}"
            );
        }
        assert_eq!(findings(pure, &[("serde", Normal), ("tokio", Dev)]), [""; 0]);
    }
    assert_eq!(findings("event-log", &[("rusqlite", Normal)]), [""; 0]);
}

#[test]
fn a_crate_without_a_place_is_found() {
    let found = findings("newcomer", &[]);
    assert!(found[0].starts_with("crates/newcomer/Cargo.toml:1: `newcomer` has no place"), "{found:?}");
}

#[test]
fn a_cycle_is_found_and_one_through_tests_is_not() {
    let cyclic =
        |kind| [package("a", &[("b", Normal)]), package("b", &[("c", Build)]), package("c", &[("a", kind)])];
    let found = cycle(&cyclic(Normal)).map(|finding| finding.to_string()).unwrap_or_default();
    assert!(found.contains("a -> b -> c -> a"), "{found}");
    assert_eq!(cycle(&cyclic(Dev)), None);
}

#[test]
fn the_table_names_only_crates_that_are_in_it_and_has_no_cycle() {
    for (name, _) in LAYERS {
        let reached = reach(name).expect("every crate below is in the table");
        assert!(!reached.contains(name), "{name} lies below itself");
    }
}

#[test]
fn a_crate_that_the_table_names_in_vain_is_found() {
    let found = |dependencies: &[(&str, DependencyKind)]| -> Vec<String> {
        check_table(&[package("event-log", dependencies)]).iter().map(ToString::to_string).collect()
    };
    assert_eq!(found(&[("kernel", Normal)]), [""; 0]);
    for unused in [&[][..], &[("kernel", Dev)]] {
        let found = found(unused);
        assert!(
            found.len() == 1 && found[0].contains("`event-log` does not depend on `kernel`"),
            "{found:?}"
        );
    }
}
