//! The web as agents see it: public pages, and searches with one user's key.

use std::sync::Arc;

use agents::web::{FromWeb, MayFetch, Page, Web, WebError, WebHit};
use models::ApiKeys;
use url::Url;
use web_access::search::{Search, SearchHit};
use web_access::{FetchError, PublicWeb};

/// Public pages, without a search.
#[derive(Debug)]
pub struct PublicPages(pub PublicWeb);

impl Web for PublicPages {
    fn fetch(&self, url: Url, may_fetch: MayFetch) -> FromWeb<'_, Page> {
        Box::pin(async move {
            let page = self.0.fetch(url, may_fetch).await.map_err(to_web_error)?;
            Ok(Page { url: page.url, title: None, text: page.text })
        })
    }

    fn search(&self, _: String) -> Option<FromWeb<'_, Vec<WebHit>>> {
        None
    }
}

/// The web with a search provider and one user's key.
pub(crate) struct WebWithSearch {
    pub(crate) pages: Arc<dyn Web>,
    pub(crate) search: Search,
    pub(crate) keys: Arc<dyn ApiKeys>,
}

impl Web for WebWithSearch {
    fn fetch(&self, url: Url, may_fetch: MayFetch) -> FromWeb<'_, Page> {
        self.pages.fetch(url, may_fetch)
    }

    fn search(&self, query: String) -> Option<FromWeb<'_, Vec<WebHit>>> {
        Some(Box::pin(search_with_key(&self.search, query, &*self.keys)))
    }
}

/// Searches with the key that the vault has now.
pub(crate) async fn search_with_key(
    search: &Search,
    query: String,
    keys: &dyn ApiKeys,
) -> Result<Vec<WebHit>, WebError> {
    let key = keys.key(search.key_name());
    let hits = search.search(query, key.as_ref().map(|key| key.expose())).await.map_err(to_web_error)?;
    Ok(hits.into_iter().map(|SearchHit { title, url, text }| WebHit { title, url, text }).collect())
}

fn to_web_error(error: FetchError) -> WebError {
    match error {
        FetchError::NotSent(reason) => WebError::NotSent(reason),
        FetchError::Failed(reason) => WebError::Failed(reason),
    }
}
