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
    fn fetch(&self, url: Url, may: MayFetch) -> FromWeb<'_, Page> {
        Box::pin(async move {
            let page = self.0.fetch(url, may).await.map_err(in_port)?;
            Ok(Page { url: page.url, title: None, text: page.text })
        })
    }

    fn search(&self, _: String) -> Option<FromWeb<'_, Vec<WebHit>>> {
        None
    }
}

/// Pages of one, searches of another, with one user's key.
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
        Some(Box::pin(find(&self.search, words, &*self.keys)))
    }
}

/// Searches with the key that the vault has at this moment.
pub(crate) async fn find(
    search: &Search,
    words: String,
    keys: &dyn ApiKeys,
) -> Result<Vec<WebHit>, WebError> {
    let key = keys.key(search.key_name());
    let hits = search.find(words, key.as_ref().map(|key| key.expose())).await.map_err(in_port)?;
    Ok(hits.into_iter().map(|SearchHit { title, url, text }| WebHit { title, url, text }).collect())
}

fn in_port(error: FetchError) -> WebError {
    match error {
        FetchError::NotSent(why) => WebError::NotSent(why),
        FetchError::Failed(why) => WebError::Failed(why),
    }
}
