//! `window.*`: the windows of the desktop, recorded at the end of each mouse or keyboard action.

use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::WindowId;

/// The position and size of a window, in pixels.
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

/// The state of a window.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Window {
    pub app: Box<str>,
    pub title: Box<str>,
    pub rect: Rect,
    pub mode: WindowMode,
    /// Its position in the stack; the highest is in front.
    pub z: u32,
    /// What it shows, in terms of the app: the path of a file or a folder, a page of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shows: Option<Box<str>>,
}

/// Written by hand, because `shows` was added later: in JSON an absent value is left out, so that older events keep
/// their bytes, while a snapshot has no field names and needs every field.
impl Serialize for Window {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let left_out = self.shows.is_none() && serializer.is_human_readable();
        let mut fields = serializer.serialize_struct("Window", if left_out { 5 } else { 6 })?;
        fields.serialize_field("app", &self.app)?;
        fields.serialize_field("title", &self.title)?;
        fields.serialize_field("rect", &self.rect)?;
        fields.serialize_field("mode", &self.mode)?;
        fields.serialize_field("z", &self.z)?;
        if left_out {
            fields.skip_field("shows")?;
        } else {
            fields.serialize_field("shows", &self.shows)?;
        }
        fields.end()
    }
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
        /// A window opened, moved, or changed its size, its mode or its position in the stack.
        "window.set" v 1 Reversible => Set(WindowSet),
        /// A window closed.
        "window.close" v 1 Reversible => Close(WindowClose),
    }
}
