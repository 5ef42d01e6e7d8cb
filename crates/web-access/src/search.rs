//! Searches the web through the provider that the machine's owner configured (`[web.search]`).
//!
//! The owner configures the address, so it may be private. A key is read from the vault for each request and sent in
//! a header, nowhere else.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Client, RequestBuilder, Response, StatusCode, redirect};
use serde::Deserialize;
use tokio::sync::Semaphore;
use url::Url;
use zeroize::Zeroizing;

use super::{FetchError, MAX_CONCURRENT, SetupError, USER_AGENT, acquire_permit, prepare_tls};

const TIMEOUT: Duration = Duration::from_secs(20);
/// Larger responses are refused.
const MAX_RESPONSE_BYTES: usize = 2 << 20;
/// Results that an agent receives, and the lengths of their fields.
const MAX_HITS: usize = 10;
const MAX_URL_CHARS: usize = 2_000;
const MAX_TITLE_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 600;

/// `[web.search]` of `choir.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchConfig {
    pub kind: SearchKind,
    /// The address, if it is not the default of the provider; required for SearXNG, which has none.
    pub base_url: Option<Url>,
}

/// The provider, which determines the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchKind {
    Searxng,
    Brave,
    Tavily,
}

impl SearchKind {
    /// Also the name of its key in the vault.
    pub fn name(self) -> &'static str {
        match self {
            Self::Searxng => "searxng",
            Self::Brave => "brave",
            Self::Tavily => "tavily",
        }
    }

    fn default_base_url(self) -> Option<&'static str> {
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

    /// The text before the key in its header.
    fn key_prefix(self) -> &'static str {
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

/// A configured search provider.
#[derive(Debug, Clone)]
pub struct Search {
    kind: SearchKind,
    url: Url,
    client: Client,
    permits: Arc<Semaphore>,
}

/// A page that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    pub title: String,
    pub url: String,
    pub text: String,
}

#[derive(Deserialize)]
struct RawHit {
    title: Option<String>,
    url: String,
    /// The snippet from Brave.
    description: Option<String>,
    /// The snippet from the others.
    content: Option<String>,
}

#[derive(Deserialize)]
struct RawHits {
    results: Vec<RawHit>,
}

#[derive(Deserialize)]
struct BraveAnswer {
    /// Absent if nothing was found.
    web: Option<RawHits>,
}

impl Search {
    pub fn new(config: &SearchConfig) -> Result<Self, SetupError> {
        let wrong = |reason: String| SetupError(format!("[web.search]: {reason}"));
        let kind = config.kind;
        let base = config.base_url.as_ref().map(Url::as_str).or(kind.default_base_url());
        let base = base.ok_or_else(|| wrong("base_url is missing".into()))?;
        let url = format!("{}/{}", base.trim_end_matches('/'), kind.path());
        let url = Url::parse(&url).map_err(|e| wrong(format!("{url}: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong(format!("{url} is neither http nor https")));
        }
        prepare_tls();
        // A redirect would carry the key to another host.
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(USER_AGENT)
            .timeout(TIMEOUT)
            .build()
            .map_err(|e| wrong(e.to_string()))?;
        Ok(Self { kind, url, client, permits: Arc::new(Semaphore::new(MAX_CONCURRENT)) })
    }

    /// Searches, with the user's key if the provider needs one.
    pub async fn search(&self, query: String, key: Option<&str>) -> Result<Vec<SearchHit>, FetchError> {
        let _permit = acquire_permit(&self.permits).await?;
        let key = self.key(key).map_err(FetchError::NotSent)?;
        self.send(&query, key).await.map_err(FetchError::Failed)
    }

    /// The name of its key in the vault.
    pub fn key_name(&self) -> &'static str {
        self.kind.name()
    }

    pub fn needs_key(&self) -> bool {
        self.kind.needs_key()
    }

    fn key(&self, key: Option<&str>) -> Result<Option<HeaderValue>, String> {
        let name = self.kind.name();
        if self.kind.needs_key() && key.is_none() {
            return Err(format!(
                "there is no key for {name}; the person can add one with `choir keys set {name}`"
            ));
        }
        let header = |key: &str| {
            let text = Zeroizing::new(format!("{}{}", self.kind.key_prefix(), key.trim()));
            let mut header = HeaderValue::from_str(&text)
                .map_err(|_| format!("the key for {name} contains invalid characters"))?;
            header.set_sensitive(true);
            Ok(header)
        };
        key.map(header).transpose()
    }

    async fn send(&self, query: &str, key: Option<HeaderValue>) -> Result<Vec<SearchHit>, String> {
        let name = self.kind.name();
        let request = self.request(query, key).header(ACCEPT, "application/json");
        let cannot = |e: reqwest::Error| format!("cannot reach {name}: {}", e.without_url());
        let response = request.send().await.map_err(cannot)?;
        if !response.status().is_success() {
            return Err(refused(name, &response));
        }
        hits(self.kind, &body(name, response).await?)
    }

    /// The address of the provider.
    pub fn base_url(&self) -> Url {
        let mut base = self.url.clone();
        if let Some(path) = self.url.path().strip_suffix(self.kind.path()) {
            base.set_path(path);
        }
        base
    }

    fn request(&self, query: &str, key: Option<HeaderValue>) -> RequestBuilder {
        let mut url = self.url.clone();
        match self.kind {
            SearchKind::Searxng => {
                url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
                self.client.get(url)
            }
            SearchKind::Brave => {
                url.query_pairs_mut().append_pair("q", query).append_pair("count", &MAX_HITS.to_string());
                let request = self.client.get(url);
                key.into_iter().fold(request, |request, key| request.header("x-subscription-token", key))
            }
            SearchKind::Tavily => {
                let body = serde_json::json!({ "query": query, "max_results": MAX_HITS }).to_string();
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
            "searxng refused: its settings must allow the format json".into()
        }
        StatusCode::FORBIDDEN => format!("{name} does not allow this with the key"),
        StatusCode::TOO_MANY_REQUESTS => match wait.and_then(|wait| wait.parse::<u64>().ok()) {
            Some(seconds) => format!("{name} has received too many requests; try again in {seconds} seconds"),
            None => format!("{name} has received too many requests; try again later"),
        },
        status => format!("{name} returned {status}"),
    }
}

async fn body(name: &str, mut response: Response) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let broke = |e: reqwest::Error| format!("{name} closed the connection early: {}", e.without_url());
    while let Some(piece) = response.chunk().await.map_err(broke)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_RESPONSE_BYTES {
            return Err(format!("the response of {name} is larger than {MAX_RESPONSE_BYTES} bytes"));
        }
    }
    Ok(bytes)
}

fn hits(kind: SearchKind, bytes: &[u8]) -> Result<Vec<SearchHit>, String> {
    let list = match kind {
        SearchKind::Brave => serde_json::from_slice(bytes).map(|answer: BraveAnswer| answer.web),
        SearchKind::Searxng | SearchKind::Tavily => serde_json::from_slice(bytes).map(Some),
    };
    let list: Option<RawHits> =
        list.map_err(|_| format!("the response of {} is not a list of results", kind.name()))?;
    let found = list.into_iter().flat_map(|list| list.results);
    // An agent may open a result, so anything but a web address is dropped.
    let page = |text: &str| {
        let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        (url.as_str().len() <= MAX_URL_CHARS).then(|| url.to_string())
    };
    let hit = |found: RawHit| {
        Some(SearchHit {
            url: page(&found.url)?,
            title: plain(&found.title.unwrap_or_default(), MAX_TITLE_CHARS),
            text: plain(&found.description.or(found.content).unwrap_or_default(), MAX_TEXT_CHARS),
        })
    };
    Ok(found.filter_map(hit).take(MAX_HITS).collect())
}

/// Plain text on one line, so that a result cannot imitate another.
fn plain(text: &str, limit: usize) -> String {
    let mut plain_text = String::new();
    let mut is_tag = false;
    for c in text.chars() {
        match c {
            '<' => is_tag = true,
            '>' if is_tag => is_tag = false,
            _ if is_tag => {}
            c if c.is_control() => plain_text.push(' '),
            c => plain_text.push(c),
        }
    }
    plain_text.truncate(plain_text.floor_char_boundary(limit));
    plain_text.trim().to_owned()
}

#[cfg(test)]
mod tests;
