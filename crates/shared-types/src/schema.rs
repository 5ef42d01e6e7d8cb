//! JSON schemas of the types that serialize as plain text or numbers. All other types derive theirs.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    AskId, CommandId, ContentHash, FilePath, GrantId, NoteId, OpId, RootHash, RunId, Seq, TaskId, TerminalId,
    Timestamp, UserId, WindowId,
};

macro_rules! schema {
    ($($name:ident => { $($schema:tt)* })*) => {
        $(impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ $($schema)* })
            }
        })*
    };
}

schema! {
    OpId => { "type": "string", "format": "uuid", "description": "One operation, the unit of undo." }
    CommandId => {
        "type": "string",
        "format": "uuid",
        "description": "Minted by the caller, so that a resend is recognised."
    }
    RunId => { "type": "string", "format": "uuid", "description": "One run of agents." }
    TaskId => { "type": "string", "format": "uuid", "description": "The work of one agent in a run." }
    AskId => { "type": "string", "format": "uuid", "description": "A question of a run to the person." }
    GrantId => { "type": "string", "format": "uuid", "description": "A lasting permission for agents." }
    NoteId => { "type": "string", "format": "uuid", "description": "One note of an agent's memory." }
    WindowId => { "type": "string", "format": "uuid", "description": "One window." }
    TerminalId => { "type": "string", "format": "uuid", "description": "One terminal." }
    ContentHash => {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "The SHA-256 of some bytes, which is their name."
    }
    RootHash => { "type": "string", "pattern": "^[0-9a-f]{64}$", "description": "The hash of a whole state." }
    Seq => {
        "type": "integer",
        "format": "uint64",
        "minimum": 0,
        "description": "The number of an event in the log, from 1; zero is before the first."
    }
    Timestamp => { "type": "integer", "format": "int64", "description": "Milliseconds since 1970." }
    UserId => { "type": "string", "pattern": "^[a-z0-9-]{1,64}$", "description": "One user." }
    FilePath => {
        "type": "string",
        "minLength": 1,
        "maxLength": FilePath::MAX_LEN,
        "pattern": "^[^/\\u0000]+(/[^/\\u0000]+)*$",
        "description": "A path from the top of the workspace, with / between its parts. No part is . or .. or \
            longer than 255 bytes, and .choir is not a name."
    }
}
