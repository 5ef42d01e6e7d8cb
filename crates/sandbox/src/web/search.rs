//! Searching the web through a provider that the machine's owner named (`[web.search]`).
//!
//! The owner vouches for the address, so it may be one of a private network; nobody else can choose it. A key comes from
//! the vault anew for each request and goes into a header, nowhere else.

use std::sync::Arc;
use std::time::Duration;

use agents::web::{FromWeb, MayFetch, Page, Web, WebError, WebHit};
use models::{ApiKey, ApiKeys};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect};
use serde::Deserialize;
use shared_types::wire::SearchLine;
use tokio::sync::Semaphore;
use url::Url;

use super::{AT_ONCE, USER_AGENT, place};
use crate::failure::{Code, Failure};
use crate::services::shown;

const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of an answer.
const LONGEST: usize = 2 << 20;
/// Results that an agent is told of, and how much of each.
const HITS: usize = 10;
const ADDRESS: usize = 2_000;
const TITLE: usize = 200;
const TEXT: usize = 600;

/// `[web.search]` of `choir.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchConfig {
    pub kind: SearchKind,
    /// Where it listens, if not where the provider does; a SearXNG of one's own has to be named.
    pub base_url: Option<Url>,
}

/// Whose protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchKind {
    Searxng,
    Brave,
    Tavily,
}

impl SearchKind {
    /// Under which name the vault has its key.
    pub fn name(self) -> &'static str {
        match self {
            Self::Searxng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
        }
    }

    fn home(self) -> Option<&'static str> {
        match self {
            Self::Searxng => None,
            Self::Brave => Some("https://api.search.brave.com"),
            Self::Tavily => Some("https://api.tavily.com"),
        }
    }

    fn path(self) -> &'static str {
        match self {
            Self::Searxng | Self::Tavily => "search",
            Self::Brave => "res/v1/web/search",
        }
    }

    /// What stands before the key in its header.
    fn before_key(self) -> &'static str {
        match self {
            Self::Searxng | Self::Brave => "",
            Self::Tavily => "Bearer ",
        }
    }

    fn needs_key(self) -> bool {
        match self {
            Self::Searxng => false,
            Self::Brave | Self::Tavily => true,
        }
    }
}

/// A provider of searches.
#[derive(Debug, Clone)]
pub struct Search {
    kind: SearchKind,
    url: Url,
    client: Client,
    places: Arc<Semaphore>,
}

#[derive(Deserialize)]
struct Found {
    title: Option<String>,
    url: String,
    /// What Brave calls it.
    description: Option<String>,
    /// What the others call it.
    content: Option<String>,
}

#[derive(Deserialize)]
struct List {
    results: Vec<Found>,
}

#[derive(Deserialize)]
struct BraveAnswer {
    /// Absent where nothing was found.
    web: Option<List>,
}

impl Search {
    pub fn new(config: &SearchConfig) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::new(Code::BadRequest, format!("[web.search]: {why}"));
        let kind = config.kind;
        let base = config.base_url.as_ref().map(Url::as_str).or(kind.home());
        let base = base.ok_or_else(|| wrong("base_url is missing: where does it listen?".into()))?;
        let url = format!("{}/{}", base.trim_end_matches('/'), kind.path());
        let url = Url::parse(&url).map_err(|e| wrong(format!("{url}: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("{url} is neither http nor https")));
        }
        models::prepare_tls();
        // A redirect would carry the key to another host.
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(USER_AGENT)
            .timeout(PATIENCE)
            .build()
            .map_err(|e| wrong(e.to_string()))?;
        Ok(Self { kind, url, client, places: Arc::new(Semaphore::new(AT_ONCE)) })
    }

    pub(crate) async fn find(&self, words: String, keys: &dyn ApiKeys) -> Result<Vec<WebHit>, WebError> {
        let _place = place(&self.places).await?;
        let key = self.key(keys).map_err(WebError::NotAsked)?;
        self.ask(&words, key).await.map_err(WebError::Asked)
    }

    fn key(&self, keys: &dyn ApiKeys) -> Result<Option<HeaderValue>, String> {
        let name = self.kind.name();
        let key = keys.key(name);
        if self.kind.needs_key() && key.is_none() {
            return Err(format!(
                "there is no key for {name}; the person can add one with `choir keys set {name}`"
            ));
        }
        let unfit = || format!("the key for {name} holds characters that no key has");
        let header = |key: ApiKey| key.in_header(self.kind.before_key()).ok_or_else(unfit);
        key.map(header).transpose()
    }

    async fn ask(&self, words: &str, key: Option<HeaderValue>) -> Result<Vec<WebHit>, String> {
        let name = self.kind.name();
        let request = self.request(words, key).header(ACCEPT, "application/json");
        let cannot = |e: reqwest::Error| format!("{name} cannot be asked: {}", e.without_url());
        let response = request.send().await.map_err(cannot)?;
        if !response.status().is_success() {
            return Err(refused(name, &response));
        }
        hits(self.kind, &body(name, response).await?)
    }

    /// As the person sees it.
    pub fn line(&self) -> SearchLine {
        let (provider, mut base) = (self.kind.name().to_owned(), self.url.clone());
        if let Some(path) = self.url.path().strip_suffix(self.kind.path()) {
            base.set_path(path);
        }
        SearchLine { key: self.kind.needs_key().then(|| provider.clone()), provider, address: shown(&base) }
    }

    fn request(&self, words: &str, key: Option<HeaderValue>) -> RequestBuilder {
        let mut url = self.url.clone();
        match self.kind {
            SearchKind::Searxng => {
                url.query_pairs_mut().append_pair("q", words).append_pair("format", "json");
                self.client.get(url)
            }
            SearchKind::Brave => {
                url.query_pairs_mut().append_pair("q", words).append_pair("count", &HITS.to_string());
                let request = self.client.get(url);
                key.into_iter().fold(request, |request, key| request.header("x-subscription-token", key))
            }
            SearchKind::Tavily => {
                let body = serde_json::json!({ "query": words, "max_results": HITS }).to_string();
                let request = self.client.post(url).header(CONTENT_TYPE, "application/json").body(body);
                key.into_iter().fold(request, |request, key| request.header(AUTHORIZATION, key))
            }
        }
    }
}

fn refused(name: &str, response: &Response) -> String {
    let wait = response.headers().get(RETRY_AFTER).and_then(|wait| wait.to_str().ok());
    match response.status() {
        StatusCode::UNAUTHORIZED => format!("{name} does not accept the key"),
        StatusCode::FORBIDDEN if name == SearchKind::Searxng.name() => {
            "searxng refuses: its settings must allow the format json".into()
        }
        StatusCode::FORBIDDEN => format!("{name} does not allow this with the key"),
        StatusCode::TOO_MANY_REQUESTS => match wait.and_then(|wait| wait.parse::<u64>().ok()) {
            Some(seconds) => format!("{name} was asked too often; it answers again in {seconds} seconds"),
            None => format!("{name} was asked too often; try again later"),
        },
        status => format!("{name} answers {status}"),
    }
}

async fn body(name: &str, mut response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let broke = |e: reqwest::Error| format!("{name} broke off: {}", e.without_url());
    while let Some(piece) = response.chunk().await.map_err(broke)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > LONGEST {
            return Err(format!("{name} answered more than {LONGEST} bytes"));
        }
    }
    Ok(bytes)
}

fn hits(kind: SearchKind, bytes: &[u8]) -> Result<Vec<WebHit>, String> {
    let list = match kind {
        SearchKind::Brave => serde_json::from_slice(bytes).map(|answer: BraveAnswer| answer.web),
        SearchKind::Searxng | SearchKind::Tavily => serde_json::from_slice(bytes).map(Some),
    };
    let list: Option<List> =
        list.map_err(|_| format!("{} answered something that is no list of results", kind.name()))?;
    let found = list.into_iter().flat_map(|list| list.results);
    // An agent may follow what is found, so it is an address of the web or nothing.
    let page = |text: &str| {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        (url.as_str().len() <= ADDRESS).then(|| url.to_string())
    };
    let hit = |found: Found| {
        Some(WebHit {
            url: page(&found.url)?,
            title: plain(&found.title.unwrap_or_default(), TITLE),
            text: plain(&found.description.or(found.content).unwrap_or_default(), TEXT),
        })
    };
    Ok(found.filter_map(hit).take(HITS).collect())
}

/// Words without marks of HTML and line ends, so that one result cannot look like two.
fn plain(text: &str, most: usize) -> String {
    let mut words = String::new();
    let mut is_mark = false;
    for c in text.chars() {
        match c {
            '<' => is_mark = true,
            '>' if is_mark => is_mark = false,
            _ if is_mark => {}
            c if c.is_control() => words.push(' '),
            c => words.push(c),
        }
    }
    words.truncate(words.floor_char_boundary(most));
    words.trim().to_owned()
}

/// Pages of the one, searches of the other, with one user's key.
pub(crate) struct SearchedWeb {
    pub(crate) pages: Arc<dyn Web>,
    pub(crate) search: Search,
    pub(crate) keys: Arc<dyn ApiKeys>,
}

impl Web for SearchedWeb {
    fn fetch(&self, url: Url, may: MayFetch) -> FromWeb<'_, Page> {
        self.pages.fetch(url, may)
    }

    fn search(&self, words: String) -> Option<FromWeb<'_, Vec<WebHit>>> {
        Some(Box::pin(self.search.find(words, &*self.keys)))
    }
}

#[cfg(test)]
mod tests;
