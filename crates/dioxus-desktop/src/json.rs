//! Reads types of the wire from JSON, through serde and in little code.
//!
//! `serde_json` reads a structure from an object or from an array, and an identifier from a text, bytes or a number.
//! The server writes objects and texts only, and code for the rest doubles each of sixty derived readers in a bundle
//! that people wait for. This deserializer instantiates the half that is used.

use std::fmt;

use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor, value::StrDeserializer,
};
use serde::forward_to_deserialize_any;
use serde_json::{Value, map};

/// Why something cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadError(String);

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ReadError {}

impl serde::de::Error for ReadError {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self(reason.to_string())
    }

    fn missing_field(field: &'static str) -> Self {
        Self(["missing field ", field].concat())
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self(["duplicate field ", field].concat())
    }

    fn unknown_variant(variant: &str, _: &'static [&'static str]) -> Self {
        Self(["unknown variant ", variant].concat())
    }
}

/// Reads a text.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    T::deserialize(Json(&parse(text)?))
}

/// Not generic, so that the parser is in the bundle once.
fn parse(text: &str) -> Result<Value, ReadError> {
    serde_json::from_str(text).map_err(|error| ReadError(error.to_string()))
}

/// A value to read from. It is borrowed, so that error paths have nothing to drop.
#[derive(Clone, Copy)]
pub(crate) struct Json<'a>(pub &'a Value);

impl Json<'_> {
    #[inline(never)]
    fn unexpected(self, expected: &dyn Expected) -> ReadError {
        let found = match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(_) => Unexpected::Other("number"),
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        serde::de::Error::invalid_type(found, expected)
    }
}

macro_rules! numbers {
    ($($method:ident => $visit:ident by $read:ident;)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
            match self.0.$read() {
                Some(number) => visitor.$visit(number),
                None => Err(self.unexpected(&visitor)),
            }
        })*
    };
}

impl<'de> Deserializer<'de> for Json<'_> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        // For values that stay JSON, such as those of settings.
        self.0.clone().deserialize_any(visitor).map_err(|error| ReadError(error.to_string()))
    }

    numbers! {
        deserialize_bool => visit_bool by as_bool;
        deserialize_u16 => visit_u64 by as_u64;
        deserialize_u32 => visit_u64 by as_u64;
        deserialize_u64 => visit_u64 by as_u64;
        deserialize_i32 => visit_i64 by as_i64;
        deserialize_i64 => visit_i64 by as_i64;
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::String(text) = self.0 else { return Err(self.unexpected(&visitor)) };
        visitor.visit_str(text)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::String(text) = self.0 else { return Err(self.unexpected(&visitor)) };
        visitor.visit_str(text)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::Array(items) = self.0 else { return Err(self.unexpected(&visitor)) };
        visitor.visit_seq(Items(items.iter()))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        let Value::Object(fields) = self.0 else { return Err(self.unexpected(&visitor)) };
        visitor.visit_map(Fields { rest: fields.iter(), value: &Value::Null })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        if let Value::String(name) = self.0 {
            return visitor.visit_enum(Variant { name, content: None });
        }
        let Value::Object(fields) = self.0 else { return Err(self.unexpected(&visitor)) };
        let mut fields = fields.iter();
        match (fields.next(), fields.next()) {
            (Some((name, content)), None) => visitor.visit_enum(Variant { name, content: Some(content) }),
            (_, _) => Err(ReadError("not one variant".to_owned())),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        u8 u128 i8 i16 i128 f32 f64 char bytes byte_buf unit unit_struct tuple_struct
    }
}

/// The items of an array.
struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        self.0.next().map(|item| seed.deserialize(Json(item))).transpose()
    }
}

/// The fields of an object.
struct Fields<'a> {
    rest: map::Iter<'a>,
    value: &'a Value,
}

impl<'a> Fields<'a> {
    #[inline(never)]
    fn next(&mut self) -> Option<&'a str> {
        let (key, value) = self.rest.next()?;
        self.value = value;
        Some(key)
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.next().map(|key| seed.deserialize(name(key))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ReadError> {
        seed.deserialize(Json(self.value))
    }
}

fn name(text: &str) -> StrDeserializer<'_, ReadError> {
    text.into_deserializer()
}

/// A variant of an enum, with its content.
struct Variant<'a> {
    name: &'a str,
    content: Option<&'a Value>,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = ReadError;
    type Variant = Content<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'a>), ReadError> {
        Ok((seed.deserialize(name(self.name))?, Content(self.content)))
    }
}

/// The content of a variant.
struct Content<'a>(Option<&'a Value>);

impl<'a> Content<'a> {
    #[inline(never)]
    fn take(self) -> Result<Json<'a>, ReadError> {
        self.0.map(Json).ok_or_else(|| ReadError("a variant without its content".to_owned()))
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.0 {
            None => Ok(()),
            Some(_) => Err(ReadError("a variant with content that it does not have".to_owned())),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        seed.deserialize(self.take()?)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.take()?.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        self.take()?.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use shared_types::payload::file::FileNode;
    use shared_types::payload::run::{ApprovalScope, AskKind, Reply};
    use shared_types::payload::tool::ToolStatus;
    use shared_types::wire::{CallStatus, DesktopState, FromServer, Operation, RunControl, SentEvent};
    use shared_types::{AskId, ContentHash, OpId, RootHash, Seq, Subject, TaskId, Timestamp, WindowId};

    use super::*;

    /// Asserts that a value written by serde_json is read back equal.
    fn same<T: DeserializeOwned + Serialize + PartialEq + fmt::Debug>(value: &T) {
        let text = serde_json::to_string(value).unwrap();
        assert_eq!(read::<T>(&text).as_ref(), Ok(value), "{text}");
    }

    #[test]
    fn every_shape_of_the_wire_reads_back() {
        same(&FileNode::Folder);
        same(&FileNode::File { hash: ContentHash::of(b"x"), size: 1, mode: 0o644 });
        same(&vec![Subject::Setting("theme".into()), Subject::Window(WindowId::from_bytes([1; 16]))]);
        same(&ToolStatus::Exited { code: -3 });
        same(&CallStatus::Held);
        same(&RunControl::Steer { task: None, words: "w".into() });
        same(&RunControl::Answer {
            ask: AskId::from_bytes([1; 16]),
            reply: Reply::Allow(ApprovalScope::Run),
        });
        same(&AskKind::Question {
            call: OpId::from_bytes([4; 16]),
            text: "?".into(),
            choices: vec!["a".into()],
        });
        same(&(Some(Timestamp::from_millis(-1)), None::<TaskId>));
        same(&DesktopState {
            seq: Seq(9),
            root: RootHash::default(),
            windows: Vec::new(),
            settings: vec![("runs.budget".into(), serde_json::json!({ "micros": 1, "steps": [1.5, null] }))],
            checkpoint: Some(("c".into(), Seq(8))),
            unsaved: 3,
        });
    }

    #[test]
    fn a_message_of_the_socket_reads() {
        let text = r#"{"event":{"event":{"id":"018f3c00-0000-7000-8000-000000000001","seq":4,"ts":5,
            "source":"agent","type":"setting.clear","op":"018f3c00-0000-7000-8000-000000000002",
            "actor":"choir","payload":{"key":"theme"},"hash":"00"}}}"#;
        let message: FromServer<SentEvent> = read(text).unwrap();
        assert!(matches!(message, FromServer::Event { event } if event.seq == Seq(4) && event.version == 1));
        assert!(read::<FromServer<SentEvent>>(r#"{"through":{"seq":1}}"#).is_ok());
    }

    #[test]
    fn what_is_not_as_expected_is_an_error() {
        let path = r#"{"op":"zero","first":1,"last":1,"ts":0,"source":"user"}"#;
        assert!(read::<Operation>(path).is_err(), "a bad id");
        assert_eq!(read::<Seq>("\"1\"").unwrap_err().to_string(), "invalid type: string \"1\", expected u64");
        assert!(read::<shared_types::FilePath>("\"../a\"").is_err());
        assert!(read::<CallStatus>("\"resting\"").is_err());
        assert!(read::<RunControl>("{\"stop\":1}").is_err());
        for wrong in
            ["{}", r#"{"through":{}}"#, r#"{"other":{"seq":1}}"#, "[]", r#"{"through":{"seq":1},"x":{}}"#]
        {
            assert!(read::<FromServer<SentEvent>>(wrong).is_err(), "{wrong}");
        }
    }
}
