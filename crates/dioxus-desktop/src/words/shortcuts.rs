//! The sheet of keyboard shortcuts: groups of keys and what each does.

pub(crate) const SHEET: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("Ctrl K", "Open, find, do, or ask the choir"),
            ("Ctrl Z", "Undo the latest change"),
            ("Ctrl Shift Z", "Redo"),
            ("F6", "Next region: windows, what waits for you, taskbar"),
            ("?", "This sheet"),
            ("Esc", "Close what is on top"),
        ],
    ),
    (
        "Windows",
        &[
            ("Ctrl `", "Next window"),
            ("Ctrl Alt ← →", "Left or right half"),
            ("Ctrl Alt ↑ ↓", "Maximise, restore or minimise"),
            ("Alt W", "Close the window"),
            ("Alt drag", "Move from anywhere"),
            ("Double-click title", "Maximise"),
        ],
    ),
    (
        "Files",
        &[
            ("↑ ↓", "Select"),
            ("Shift ↑ ↓", "Select a range"),
            ("Ctrl A", "Select all"),
            ("Letters", "Go to a name"),
            ("Enter", "Open"),
            ("F2", "Rename"),
            ("Delete", "Delete, with undo"),
            ("Ctrl C · X · V", "Copy, cut, paste"),
            ("Alt ← →", "Back, forward"),
            ("Backspace", "Folder above"),
        ],
    ),
    (
        "Editor and viewer",
        &[
            ("Ctrl S", "Save"),
            ("Ctrl F", "Find"),
            ("Ctrl G", "Go to a line"),
            ("+ − 0", "Picture: larger, smaller, fitted"),
            ("R", "Picture: rotate"),
        ],
    ),
];
