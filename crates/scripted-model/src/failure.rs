//! Why there is no reply, before a protocol gives it its form.

/// Why there is no reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    NoKey,
    WrongKey,
    NoSuchPath,
    RateLimit { retry_after: Option<u64> },
    Overloaded,
    ContextTooLong,
    Server,
    BadRequest(Complaint),
}

/// What is wrong with a request. Only OpenAI says where, and gives some problems a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl From<String> for Complaint {
    fn from(message: String) -> Self {
        Self { message, param: None, code: None }
    }
}

impl From<&str> for Complaint {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}
