//! The web, for those who find things out. Who serves it is chosen by whoever builds the choir.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use thiserror::Error;
use url::Url;

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it was in the end.
    pub url: String,
    pub title: Option<String>,
    /// Its words, as Markdown where it was HTML.
    pub text: String,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebHit {
    pub title: String,
    pub url: String,
    pub text: String,
}

/// Why nothing came from the web, in a sentence for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WebError {
    /// Nobody was asked: the words are ours.
    #[error("{0}")]
    NotAsked(String),
    /// Somebody was asked: the words may be theirs.
    #[error("{0}")]
    Asked(String),
}

/// What the web answers.
pub type FromWeb<'a, T> = Pin<Box<dyn Future<Output = Result<T, WebError>> + Send + 'a>>;

/// Whether an address may be gone to without asking.
pub type MayFetch = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Whoever serves the web.
pub trait Web: Send + Sync + 'static {
    /// The page at an address. Where that leads on to another, whether it is followed is asked first.
    fn fetch(&self, url: Url, may: MayFetch) -> FromWeb<'_, Page>;
    /// Nothing, if no search is set up.
    fn search(&self, words: String) -> Option<FromWeb<'_, Vec<WebHit>>>;
}
