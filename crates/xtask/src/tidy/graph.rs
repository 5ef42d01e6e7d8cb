//! Cycles in small directed graphs, for the rules on crates and on modules.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// From each node to the nodes that it uses.
pub(super) type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The shortest way along the edges from a node back to itself; it begins and ends with that node.
pub(super) fn shortest_cycle<'a>(start: &'a str, edges: &Edges<'a>) -> Option<Vec<&'a str>> {
    let mut seen = BTreeSet::new();
    let mut open = VecDeque::from([vec![start]]);
    while let Some(path) = open.pop_front() {
        for &next in path.last().and_then(|last| edges.get(last)).into_iter().flatten() {
            let longer = [path.as_slice(), &[next]].concat();
            if next == start {
                return Some(longer);
            }
            if seen.insert(next) {
                open.push_back(longer);
            }
        }
    }
    None
}

/// One shortest cycle for each group of nodes that reach each other.
pub(super) fn cycles<'a>(edges: &Edges<'a>) -> Vec<Vec<&'a str>> {
    let mut found: Vec<Vec<&str>> = Vec::new();
    let mut reported = BTreeSet::new();
    for &node in edges.keys() {
        if !reported.contains(node)
            && let Some(cycle) = shortest_cycle(node, edges)
        {
            let back = |other: &&str| reach(other, edges).contains(node);
            reported.extend(reach(node, edges).into_iter().filter(back));
            found.push(cycle);
        }
    }
    found
}

fn reach<'a>(start: &str, edges: &Edges<'a>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = edges.get(start).into_iter().flatten().copied().collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(edges.get(next).into_iter().flatten().copied());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(&'static str, &'static str)]) -> Edges<'static> {
        let mut edges = Edges::new();
        for (from, to) in pairs {
            edges.entry(from).or_default().insert(to);
        }
        edges
    }

    #[test]
    fn the_shortest_cycle_is_found() {
        let graph = edges(&[("a", "b"), ("b", "c"), ("c", "a"), ("b", "a")]);
        assert_eq!(shortest_cycle("a", &graph), Some(vec!["a", "b", "a"]));
        assert_eq!(shortest_cycle("d", &graph), None);
    }

    #[test]
    fn each_group_is_reported_once() {
        let graph =
            edges(&[("a", "b"), ("b", "a"), ("b", "c"), ("c", "b"), ("x", "y"), ("y", "x"), ("y", "a")]);
        assert_eq!(cycles(&graph), [vec!["a", "b", "a"], vec!["x", "y", "x"]]);
        assert!(cycles(&edges(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    }
}
