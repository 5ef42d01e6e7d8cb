//! `message.*`: conversations and their messages, in older logs. No command makes these events any more. The text of a
//! message is content by hash, so that a pasted secret can be purged.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, ConversationId, MessageId};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Person,
    Agent,
    System,
}

/// A conversation started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationStart {
    pub conversation: ConversationId,
    pub title: Box<str>,
}

/// A message was added to a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessagePost {
    pub conversation: ConversationId,
    pub message: MessageId,
    pub role: Role,
    pub body: ContentRef,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
}

events! {
    /// Conversations and their messages. Only older logs hold them; nothing records them any more.
    MessageEvent {
        /// A conversation started.
        "message.start" v 1 Final => Start(ConversationStart),
        /// A message was added to a conversation.
        "message.post" v 1 Final => Post(MessagePost),
    }
}
