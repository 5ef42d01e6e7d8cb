//! Why a request failed, before a protocol formats it.

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestFailure {
    NoKey,
    WrongKey,
    NoSuchPath,
    RateLimit { retry_after: Option<u64> },
    Overloaded,
    ContextTooLong,
    Server,
    BadRequest(InvalidRequest),
}

/// An invalid request. Only OpenAI names the parameter and gives some problems a code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidRequest {
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    pub(crate) code: Option<&'static str>,
}

impl From<String> for InvalidRequest {
    fn from(message: String) -> Self {
        Self { message, param: None, code: None }
    }
}

impl From<&str> for InvalidRequest {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}
