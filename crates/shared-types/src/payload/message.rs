//! `message.*`: what was said, in conversations. The words are content by hash, so that a pasted secret can be purged.

use serde::{Deserialize, Serialize};

use crate::{ContentRef, ConversationId, MessageId};

/// Whose words a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Person,
    Agent,
    System,
}

/// A conversation began.
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
    /// Conversations and what was said in them.
    MessageEvent {
        /// A conversation began.
        "message.start" v 1 Final => Start(ConversationStart),
        /// Somebody said something.
        "message.post" v 1 Final => Post(MessagePost),
    }
}
