//! A command that ran on a copy while the person continued to work: the command can always end, and nothing of either
//! is lost.

use kernel::command::OutsideEdit;
use kernel::{Action, View};
use proptest::prelude::*;
use shared_types::payload::file::FileNode;
use shared_types::payload::tool::{ToolReport, ToolStatus};
use shared_types::{FilePath, Payload};

use crate::commands::{Doing, doings};
use crate::laws::{check_tree, config};
use crate::shell::Shell;
use crate::steps::{Step, call};

fn some(count: usize) -> impl Strategy<Value = Vec<Doing>> {
    prop::collection::vec(doings(), 0..count)
}

/// The edits that lead from one tree to another, as they are found after a command.
fn edits(before: &View, after: &View) -> Vec<OutsideEdit> {
    let mut paths: Vec<&FilePath> =
        before.files.iter().chain(after.files.iter()).map(|(path, _)| path).collect();
    paths.sort_unstable();
    paths.dedup();
    let edit = |path: &FilePath| OutsideEdit {
        path: path.clone(),
        base: before.files.get(path).cloned(),
        now: after.files.get(path).cloned(),
    };
    paths.into_iter().map(edit).filter(|edit| edit.base != edit.now).collect()
}

fn holds(view: &View, node: &FileNode) -> bool {
    view.files.iter().any(|(_, found)| found == node)
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn a_command_can_always_end_and_nothing_is_lost(first in some(12), person in some(8), command in some(8)) {
        let mut shell = Shell::new();
        first.iter().for_each(|doing| drop(shell.attempt(doing)));
        let before = shell.view.clone();
        let op = shell.op();
        shell.run_in(op, call("make")).expect("a call can be made");

        let mut copy = shell.clone();
        command.iter().for_each(|doing| drop(copy.attempt(doing)));
        // The person does anything except changing the call itself.
        let apart = |doing: &&Doing| !matches!(doing, Doing::Call(..) | Doing::Continue(..));
        person.iter().filter(apart).for_each(|doing| drop(shell.attempt(doing)));

        let edits = edits(&before, &copy.view);
        let contents = edits.iter().filter_map(|edit| edit.now.as_ref()?.content());
        let contents = contents.map(|content| copy.content(&content.hash).unwrap_or_default().to_vec()).collect();
        let (today, state) = (shell.view.clone(), shell.state());
        let (status, report) = (ToolStatus::Exited { code: 0 }, ToolReport::default());
        let step = Step { contents, ..Action::FinishCall { status, report, edits: edits.clone() }.into() };
        let Ok(events) = shell.run_in(op, step) else {
            // Random captures name bytes that do not exist; with those nothing can be merged.
            let known = |view: &View, shell: &Shell| view.files.iter().all(|(_, node)| {
                node.content().is_none_or(|content| shell.content(&content.hash).is_some())
            });
            prop_assert!(!known(&today, &shell) || !known(&before, &shell) || !known(&copy.view, &copy));
            return Ok(());
        };
        check_tree(&shell.view)?;

        for (path, node) in today.files.iter() {
            let edit = edits.iter().find(|edit| edit.path == *path);
            let untouched = edit.is_none_or(|edit| edit.base.as_ref() != Some(node));
            let now = shell.view.files.get(path);
            let merged = matches!(
                (edit.and_then(|edit| edit.now.as_ref()), node, now),
                (Some(FileNode::File { .. }), FileNode::File { .. }, Some(FileNode::File { .. }))
            );
            prop_assert!(!untouched || now == Some(node) || merged, "{} of the person's is gone", path);
        }
        for edit in edits.iter().filter(|edit| edit.path.repository().is_none()) {
            let Some(node) = edit.now.as_ref().filter(|node| **node != FileNode::Folder) else { continue };
            let merged = today.files.get(&edit.path).is_some_and(|today| Some(today) != edit.base.as_ref());
            let merged = merged && shell.view.files.get(&edit.path) != today.files.get(&edit.path);
            prop_assert!(holds(&shell.view, node) || merged, "{} of the command's is gone", edit.path);
        }
        prop_assert_eq!(shell.at(shell.view.seq()).root(), shell.root());
        if events.iter().any(|event| matches!(event.payload, Payload::File(_))) {
            shell.undo(op).expect("nothing happened since");
            prop_assert_eq!(shell.state(), state);
        }
    }
}
