//! The services of one user other than models: web search with their key, and telemetry.

use std::sync::Arc;
use std::time::Instant;

use models::ApiKeys;
use shared_types::wire::{SearchLine, SearchTestResult, ServiceList};

use crate::address::redacted;
use crate::telemetry::Telemetry;
use crate::web;
use web_access::search::Search;

/// A query for which every search finds something.
const TEST_QUERY: &str = "choir";

/// See the module.
pub struct UserServices {
    pub(crate) search: Option<Search>,
    pub(crate) telemetry: Option<Telemetry>,
    pub(crate) keys: Arc<dyn ApiKeys>,
}

impl std::fmt::Debug for UserServices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserServices")
    }
}

impl UserServices {
    pub fn list(&self) -> ServiceList {
        ServiceList {
            search: self.search.as_ref().map(search_line),
            telemetry: self.telemetry.as_ref().map(Telemetry::line),
        }
    }

    /// Runs a test search, if search is configured.
    pub async fn try_search(&self) -> Option<SearchTestResult> {
        let started = Instant::now();
        let found = web::search_with_key(self.search.as_ref()?, TEST_QUERY.to_owned(), &*self.keys).await;
        let millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        Some(match found {
            Ok(hits) => SearchTestResult { ok: true, results: hits.len() as u64, problem: None, millis },
            Err(why) => SearchTestResult { ok: false, results: 0, problem: Some(why.to_string()), millis },
        })
    }
}

/// A search provider as shown to the person.
pub fn search_line(search: &Search) -> SearchLine {
    let provider = search.key_name().to_owned();
    SearchLine {
        key: search.needs_key().then(|| provider.clone()),
        provider,
        address: redacted(&search.base_url()),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;
    use web_access::search::{SearchConfig, SearchKind};

    use super::*;

    #[test]
    fn a_provider_is_shown_with_its_address_and_its_key() {
        let line = |kind, base: Option<&str>| {
            let base_url = base.map(|base| Url::parse(base).unwrap());
            search_line(&Search::new(&SearchConfig { kind, base_url }).unwrap())
        };
        let brave = line(SearchKind::Brave, None);
        assert_eq!((&*brave.address, brave.key.as_deref()), ("https://api.search.brave.com/", Some("brave")));
        let own = line(SearchKind::Searxng, Some("http://ada:hush@127.0.0.1:8888/find/"));
        assert_eq!((&*own.address, own.key), ("http://127.0.0.1:8888/find/", None));
    }
}
