//! Windows, settings and notes.

use serde_json::Value;
use shared_types::payload::note::{Note, NoteDelete, NoteWrite};
use shared_types::payload::setting::{SettingClear, SettingSet};
use shared_types::payload::window::{Window, WindowClose, WindowSet};
use shared_types::{NoteId, WindowId};

use super::{Draft, check_size, check_text};
use crate::{Rejection, View};

const TITLE_LIMIT: u64 = 1024;
const SETTING_LIMIT: u64 = 16 * 1024;
/// JSON parsers refuse deep nesting, so recorded values stay far below their limit.
const SETTING_DEPTH: usize = 32;
/// The limit of a window's position and size, in pixels.
const COORDINATE_LIMIT: u32 = 1 << 20;

pub(super) fn set_window(
    view: &View,
    draft: &mut Draft,
    id: WindowId,
    state: &Window,
) -> Result<(), Rejection> {
    check_text("a window's app", &state.app, 64)?;
    check_size("a window's title", state.title.len() as u64, TITLE_LIMIT)?;
    let rect = state.rect;
    let corners = [rect.x.unsigned_abs(), rect.y.unsigned_abs(), rect.width, rect.height];
    if corners.into_iter().any(|n| n > COORDINATE_LIMIT) || rect.width == 0 || rect.height == 0 {
        return Err(Rejection::Invalid {
            what: "a window's place",
            reason: "it is empty or off the desktop".into(),
        });
    }
    put_window(view, draft, id, Some(state.clone()));
    Ok(())
}

pub(super) fn close_window(view: &View, draft: &mut Draft, window: WindowId) -> Result<(), Rejection> {
    view.windows.get(&window).ok_or(Rejection::NoWindow { window })?;
    put_window(view, draft, window, None);
    Ok(())
}

pub(super) fn put_window(view: &View, draft: &mut Draft, window: WindowId, state: Option<Window>) {
    match (view.windows.get(&window).cloned(), state) {
        (prev, Some(state)) if prev.as_ref() != Some(&state) => {
            draft.event(WindowSet { window, state, prev })
        }
        (Some(prev), None) => draft.event(WindowClose { window, prev }),
        (_, Some(_)) | (None, None) => {}
    }
}

pub(super) fn set_setting(view: &View, draft: &mut Draft, key: &str, value: &Value) -> Result<(), Rejection> {
    check_text("a setting's key", key, 128)?;
    let text = value.to_string();
    check_size("a setting's value", text.len() as u64, SETTING_LIMIT)?;
    if value.is_null() {
        return Err(Rejection::Invalid {
            what: "a setting's value",
            reason: "null; clear the setting instead".into(),
        });
    }
    if is_deeper(value, SETTING_DEPTH) {
        return Err(Rejection::Invalid {
            what: "a setting's value",
            reason: "it is nested too deeply".into(),
        });
    }
    put_setting(view, draft, key, Some(&text));
    Ok(())
}

fn is_deeper(value: &Value, limit: usize) -> bool {
    let too_deep = |inner: &Value| limit == 0 || is_deeper(inner, limit - 1);
    match value {
        Value::Array(items) => items.iter().any(too_deep),
        Value::Object(fields) => fields.values().any(too_deep),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

pub(super) fn clear_setting(view: &View, draft: &mut Draft, key: &str) -> Result<(), Rejection> {
    view.settings.get(key).ok_or_else(|| Rejection::NoSetting { key: key.into() })?;
    put_setting(view, draft, key, None);
    Ok(())
}

/// Settings are compared by their stored text: equal numbers can have different texts.
pub(super) fn put_setting(view: &View, draft: &mut Draft, key: &str, text: Option<&str>) {
    if view.settings.get(key).map(|today| &**today) == text {
        return;
    }
    match (view.setting(key), text.and_then(|text| serde_json::from_str(text).ok())) {
        (prev, Some(value)) => draft.event(SettingSet { key: key.into(), value, prev }),
        (Some(prev), None) => draft.event(SettingClear { key: key.into(), prev }),
        (None, None) => {}
    }
}

/// No command writes notes any more; undo and restore still change the notes that older logs hold.
pub(super) fn put_note(view: &View, draft: &mut Draft, note: NoteId, state: Option<Note>) {
    match (view.notes.get(&note).cloned(), state) {
        (prev, Some(state)) if prev.as_ref() != Some(&state) => draft.event(NoteWrite { note, state, prev }),
        (Some(prev), None) => draft.event(NoteDelete { note, prev }),
        (_, Some(_)) | (None, None) => {}
    }
}
