//! The tour of the first minutes.

pub(crate) const TOUR: &str = "A short tour";
pub(crate) const SKIP: &str = "Skip";
pub(crate) const NEXT: &str = "Next";
pub(crate) const BEGIN: &str = "Begin";

pub(crate) fn step(number: usize) -> String {
    format!("Step {number} of 5")
}

// The steps.
pub(crate) const PROMPT: &str = "One bar for everything";
pub(crate) const PROMPT_MORE: &str = "Press Ctrl K anywhere and say what the choir should do. The name of an app, a file or a setting opens it; > begins a command.";
pub(crate) const WINDOWS: &str = "Windows with manners";
pub(crate) const WINDOWS_MORE: &str = "Drag a title to an edge to fill half the screen, to a corner for a quarter. Alt-drag moves a window from anywhere. Everything stays where you left it.";
pub(crate) const FILES: &str = "Your files, live";
pub(crate) const FILES_MORE: &str =
    "Files shows the workspace as it is, and keeps every version. Drop files on it to upload them.";
pub(crate) const TIMELINE: &str = "Everything is in the timeline";
pub(crate) const TIMELINE_MORE: &str = "Each row is something that happened. Open it to see what changed, drag the bar on top to look at the desktop as it was.";
pub(crate) const UNDO: &str = "Undo, always";
pub(crate) const UNDO_MORE: &str = "Nothing asks “are you sure?”, because everything can be taken back: Ctrl Z, the toast, or any row of the timeline.";
