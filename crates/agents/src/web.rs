//! The web, for those who find things out. Who serves it is chosen by whoever builds the choir.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

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

/// What the web answers; the error is a sentence for the agent.
pub type FromWeb<'a, T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send + 'a>>;

/// Whether an address may be gone to without asking.
pub type MayFetch = Arc<dyn Fn(&Url) -> bool + Send + Sync>;

/// Whoever serves the web.
pub trait Web: Send + Sync + 'static {
    /// The page at an address. Where that leads on to another, whether it is followed is asked first.
    fn fetch(&self, url: Url, may: MayFetch) -> FromWeb<'_, Page>;
    /// Nothing, if no search is set up.
    fn search(&self, words: String) -> Option<FromWeb<'_, Vec<WebHit>>>;
}
