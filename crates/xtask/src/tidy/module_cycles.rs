//! Rule: the modules of a crate do not depend on each other in a cycle.
//!
//! A node is a top-level module with everything below it: `src/x.rs` and `src/x/`. An edge is a path such as
//! `crate::y::…`, `super::y::…` or an item of `y` that the crate's root re-exports. The root itself is no node: it
//! declares all modules and may use them. Code for tests alone is left out, since no product code follows it.

use std::collections::BTreeMap;

use super::{
    finding::Finding,
    graph::{self, Edges},
    module_uses::{self, ModuleUse},
};
use crate::workspace::TextFile;

const LIST: &str = "`CRATES_WITH_CYCLES` in crates/xtask/src/tidy/module_cycles.rs";

/// Crates whose modules still form a cycle, each with the reason. The list may only become shorter: to work on a crate,
/// remove its line and run tidy, which then reports its cycles.
const CRATES_WITH_CYCLES: &[(&str, &str)] = &[];

pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    check_with(files, CRATES_WITH_CYCLES)
}

fn check_with(files: &[TextFile], tolerated: &[(&str, &str)]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, Vec<(&str, &TextFile)>> = BTreeMap::new();
    for file in files {
        if let Some((name, inside)) = source_of(&file.path) {
            crates.entry(name).or_default().push((inside, file));
        }
    }
    crates.into_iter().flat_map(|(name, sources)| check_crate(name, &sources, tolerated)).collect()
}

/// The crate that a source file belongs to, and its path below `src/`.
fn source_of(path: &str) -> Option<(&str, &str)> {
    let (name, inside) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let is_product = inside.ends_with(".rs") && !inside.starts_with("bin/") && !super::is_test_source(inside);
    is_product.then_some((name, inside))
}

fn check_crate(name: &str, sources: &[(&str, &TextFile)], tolerated: &[(&str, &str)]) -> Vec<Finding> {
    let uses = module_uses::of_crate(sources);
    let mut edges = Edges::new();
    for used in &uses {
        edges.entry(&used.from).or_default().insert(&used.to);
    }
    let cycles = graph::cycles(&edges);
    if tolerated.iter().any(|(tolerated, _)| *tolerated == name) {
        let message = format!("the modules of this crate form no cycle any more; remove it from {LIST}");
        let manifest = format!("crates/{name}/Cargo.toml");
        return cycles.is_empty().then(|| Finding::error(&manifest, 1, message)).into_iter().collect();
    }
    cycles.into_iter().filter_map(|cycle| report(&cycle, &uses)).collect()
}

/// Names a use for each step of the cycle, at the place of the first.
fn report(cycle: &[&str], uses: &[ModuleUse]) -> Option<Finding> {
    let step = |pair: &[&str]| match pair {
        [from, to] => uses.iter().find(|used| used.from == *from && used.to == *to),
        _ => None,
    };
    let steps: Vec<&ModuleUse> = cycle.windows(2).filter_map(step).collect();
    let places: Vec<String> = steps
        .iter()
        .map(|used| format!("{} -> {} at {}:{}", used.from, used.to, used.path, used.line))
        .collect();
    let message = format!(
        "modules depend on each other in a cycle ({}); move what they share into a module below them",
        places.join(", ")
    );
    steps.first().map(|first| Finding::error(&first.path, first.line, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> Vec<TextFile> {
        let file =
            |(path, text): &(&str, &str)| TextFile { path: format!("crates/a/{path}"), text: (*text).into() };
        texts.iter().map(file).collect()
    }

    fn found(texts: &[(&str, &str)]) -> Vec<String> {
        check_with(&files(texts), &[]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_cycle_is_reported_with_every_place() {
        let found = found(&[
            ("src/lib.rs", "mod x;\nmod y;\n"),
            ("src/x.rs", "//! x\nuse crate::y::Y;\n"),
            ("src/y/inner.rs", "fn f() {\n    crate::x::g();\n}\n"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        let expected = "crates/a/src/x.rs:2: modules depend on each other in a cycle \
                        (x -> y at crates/a/src/x.rs:2, y -> x at crates/a/src/y/inner.rs:2)";
        assert!(found[0].starts_with(expected), "{found:?}");
    }

    #[test]
    fn one_direction_and_a_module_with_its_own_parts_pass() {
        let texts = [
            ("src/x.rs", "mod part;\nuse crate::y::Y;\nuse crate::x::part::P;\n"),
            ("src/x/part.rs", "use super::Z;\nuse crate::x::Z;\n"),
            ("src/y.rs", "pub struct Y;\n"),
        ];
        assert_eq!(found(&texts), [""; 0]);
    }

    #[test]
    fn tests_and_the_root_make_no_edge() {
        let texts = [
            ("src/lib.rs", "mod x;\nmod y;\npub fn f() { x::g(); y::h(); }\n"),
            ("src/x.rs", "use crate::y::Y;\n"),
            (
                "src/y.rs",
                "#[cfg(test)]\nmod tests {\n    use crate::x::X;\n}\n#[cfg(test)]\nuse crate::x::X;\n",
            ),
            ("src/y/tests.rs", "use crate::x::X;\n"),
            ("src/bin/tool.rs", "use crate::x::X;\n"),
            ("tests/y.rs", "use crate::x::X;\n"),
        ];
        assert_eq!(found(&texts), [""; 0]);
    }

    #[test]
    fn a_crate_leaves_the_list_when_its_last_cycle_is_gone() {
        let cyclic = [("src/x.rs", "use crate::y::Y;\n"), ("src/y.rs", "use crate::x::X;\n")];
        assert_eq!(check_with(&files(&cyclic), &[("a", "reason")]), []);
        let found = check_with(&files(&cyclic[..1]), &[("a", "reason")]);
        assert!(found[0].to_string().contains("no cycle any more"), "{found:?}");
    }
}
