//! The events that a desktop follows. It decodes windows, settings, checkpoints and changes of files, and leaves every
//! other payload unread: decoders for all families would double the code that a browser loads first.

use serde::{Deserialize, Deserializer};

use super::checkpoint::{CheckpointCreate, CheckpointEvent};
use super::file::{FileBatch, FileDelete, FileEvent, FileMove, FileWrite};
use super::setting::{SettingClear, SettingEvent, SettingSet};
use super::window::{WindowClose, WindowEvent, WindowSet};
use crate::TaskId;

/// An event's payload, as far as a desktop follows it.
#[derive(Debug, Clone, PartialEq)]
pub enum DesktopEvent {
    File(FileEvent),
    Window(WindowEvent),
    Setting(SettingEvent),
    Checkpoint(CheckpointEvent),
    /// A model answered an agent, or failed to: its streamed words are out of date.
    ModelAnswered(TaskId),
    /// A family, or a version of a type, that a desktop does not follow.
    NotFollowed,
}

/// The field that all events about models have.
#[derive(Deserialize)]
struct OfTask {
    task: TaskId,
}

impl DesktopEvent {
    /// Decodes a payload.
    pub fn decode<'de, D: Deserializer<'de>>(name: &str, version: u16, payload: D) -> Result<Self, D::Error> {
        if version != 1 {
            return Ok(Self::NotFollowed);
        }
        Ok(match name {
            "file.write" => Self::File(FileEvent::Write(FileWrite::deserialize(payload)?)),
            "file.delete" => Self::File(FileEvent::Delete(FileDelete::deserialize(payload)?)),
            "file.move" => Self::File(FileEvent::Move(FileMove::deserialize(payload)?)),
            "file.batch" => Self::File(FileEvent::Batch(FileBatch::deserialize(payload)?)),
            "window.set" => Self::Window(WindowEvent::Set(WindowSet::deserialize(payload)?)),
            "window.close" => Self::Window(WindowEvent::Close(WindowClose::deserialize(payload)?)),
            "setting.set" => Self::Setting(SettingEvent::Set(SettingSet::deserialize(payload)?)),
            "setting.clear" => Self::Setting(SettingEvent::Clear(SettingClear::deserialize(payload)?)),
            "checkpoint.create" => {
                Self::Checkpoint(CheckpointEvent::Create(CheckpointCreate::deserialize(payload)?))
            }
            "llm.reply" | "llm.fail" => Self::ModelAnswered(OfTask::deserialize(payload)?.task),
            _ => Self::NotFollowed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "018f3c00-0000-7000-8000-000000000001";
    const WINDOW: &str =
        r#"{"app":"files","title":"Files","rect":{"x":1,"y":2,"width":3,"height":4},"mode":"normal","z":5}"#;

    fn decode(name: &str, version: u16, payload: &str) -> serde_json::Result<DesktopEvent> {
        DesktopEvent::decode(name, version, &mut serde_json::Deserializer::from_str(payload))
    }

    #[test]
    fn a_desktop_decodes_what_it_follows_and_skips_the_rest() {
        let set = decode("window.set", 1, &format!(r#"{{"window":"{ID}","state":{WINDOW}}}"#));
        assert!(matches!(set, Ok(DesktopEvent::Window(WindowEvent::Set(p))) if p.state.rect.height == 4));
        let close = decode("window.close", 1, &format!(r#"{{"window":"{ID}","prev":{WINDOW}}}"#));
        assert!(
            matches!(close, Ok(DesktopEvent::Window(WindowEvent::Close(p))) if p.window.to_string() == ID)
        );
        let set = decode("setting.set", 1, r#"{"key":"theme","value":"dark","prev":"light"}"#);
        assert!(matches!(set, Ok(DesktopEvent::Setting(SettingEvent::Set(p))) if p.value == "dark"));
        let write = decode("file.write", 1, r#"{"path":"a/b","node":"folder"}"#);
        assert!(matches!(write, Ok(DesktopEvent::File(FileEvent::Write(p))) if p.path.as_str() == "a/b"));
        let reply = decode("llm.reply", 1, &format!(r#"{{"task":"{ID}","model":"m"}}"#));
        assert!(matches!(reply, Ok(DesktopEvent::ModelAnswered(task)) if task.to_string() == ID));
        assert_eq!(decode("tool.call", 1, r#"{"tool":1}"#).unwrap(), DesktopEvent::NotFollowed);
        assert_eq!(decode("window.set", 2, "{}").unwrap(), DesktopEvent::NotFollowed);
    }

    #[test]
    fn a_payload_that_cannot_be_read_is_an_error() {
        assert!(decode("window.set", 1, "{}").is_err());
        assert!(decode("setting.set", 1, "[").is_err());
        assert!(decode("file.write", 1, r#"{"path":"../a","node":"folder"}"#).is_err());
    }
}
