//! Access to the web for agents. The program that starts the agents provides the implementation of [`Web`].

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use url::Url;

/// A fetched page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The address after all redirects.
    pub url: String,
    pub title: Option<String>,
    /// The text of the page; Markdown if the page was HTML.
    pub text: String,
}

/// One result of a web search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebHit {
    pub title: String,
    pub url: String,
    pub text: String,
}

/// Why a request to the web failed, in a sentence for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WebError {
    /// No request was sent: the message is ours.
    #[error("{0}")]
    NotSent(String),
    /// A request was sent: the message may contain text from the remote server.
    #[error("{0}")]
    Failed(String),
}

/// A response from the web.
pub type FromWeb<'a, T> = Pin<Box<dyn Future<Output = Result<T, WebError>> + Send + 'a>>;

/// Whether an address may be fetched without asking the person.
pub type MayFetch = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Fetches pages and searches the web.
pub trait Web: Send + Sync + 'static {
    /// Fetches the page at an address. `may` decides whether a redirect is followed.
    fn fetch(&self, url: Url, may: MayFetch) -> FromWeb<'_, Page>;
    /// Searches the web; `None` if no search provider is configured.
    fn search(&self, words: String) -> Option<FromWeb<'_, Vec<WebHit>>>;
}
