//! Addresses as a person sees them.

use url::Url;

/// An address without its query, user name and password, which may be secrets.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    // Both only fail where there is no host, and then there is nothing to take out.
    let _ = (url.set_username(""), url.set_password(None));
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_what_may_be_a_secret() {
        let url = Url::parse("https://ada:hush@search.example/api?key=hush").unwrap();
        assert_eq!(shown(&url), "https://search.example/api");
    }
}
