//! `window.*`: the windows of the desktop, as they stand when a gesture has ended.

use serde::{Deserialize, Serialize};

use crate::WindowId;

/// Where a window is, in pixels of the desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rect {
    pub x: i32,
    pub y: i32,
    pub width: u32,
    pub height: u32,
}

/// How a window is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WindowMode {
    Normal,
    Minimized,
    Maximized,
}

/// All that the desktop remembers of a window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    pub app: Box<str>,
    pub title: Box<str>,
    pub rect: Rect,
    pub mode: WindowMode,
    /// Its place in the stack; the highest is in front.
    pub z: u32,
    /// What it shows, in the app's own terms: the path of a file or a folder, a page of the settings.
    #[serde(default)]
    pub shows: Option<Box<str>>,
}

/// A window opened or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowSet {
    pub window: WindowId,
    pub state: Window,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<Window>,
}

/// A window closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowClose {
    pub window: WindowId,
    pub prev: Window,
}

events! {
    /// Windows of the desktop.
    WindowEvent {
        /// A window opened, moved, changed its size, its mode or its place in the stack.
        "window.set" v 1 Reversible => Set(WindowSet),
        /// A window closed.
        "window.close" v 1 Reversible => Close(WindowClose),
    }
}
