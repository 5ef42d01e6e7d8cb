//! `setting.*`: preferences, one value per key. Secrets are never settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A setting was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingSet {
    pub key: Box<str>,
    pub value: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prev: Option<Value>,
}

/// A setting was cleared and has its default again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingClear {
    pub key: Box<str>,
    pub prev: Value,
}

impl SettingEvent {
    pub fn key(&self) -> &str {
        match self {
            Self::Set(p) => &p.key,
            Self::Clear(p) => &p.key,
        }
    }
}

events! {
    /// Preferences of the person.
    SettingEvent {
        /// A setting was set.
        "setting.set" v 1 Reversible => Set(SettingSet),
        /// A setting was cleared and has its default again.
        "setting.clear" v 1 Reversible => Clear(SettingClear),
    }
}
