//! Addresses that are safe to show.

use url::Url;

/// An address without its query, user name and password, which may be secrets.
pub(crate) fn redacted(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Both fail only for a URL without a host, which has nothing to remove.
    let _ = (url.set_username(""), url.set_password(None));
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_removed_from_an_address() {
        let url = Url::parse("https://ada:hush@search.example/api?key=hush").unwrap();
        assert_eq!(redacted(&url), "https://search.example/api");
    }
}
