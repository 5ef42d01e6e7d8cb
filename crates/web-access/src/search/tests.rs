//! Searches with a local server that speaks the protocols of the providers.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use super::*;

const KEY: &str = "key-that-must-stay-secret";

/// Answers once, and reports the request that it received.
fn serve(answer: String) -> (Url, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (sender, request_text) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 8192];
        let mut text = String::new();
        loop {
            let read = stream.read(&mut request).unwrap_or(0);
            text.push_str(&String::from_utf8_lossy(&request[..read]));
            let length =
                text.to_lowercase().split("content-length: ").nth(1).and_then(|rest| {
                    rest.split("\r\n").next().and_then(|number| number.parse::<usize>().ok())
                });
            let whole =
                text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.len() >= length.unwrap_or(0));
            if read == 0 || whole {
                break;
            }
        }
        let _ = sender.send(text);
        let _ = stream.write_all(answer.as_bytes());
    });
    (url, request_text)
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

async fn search_with(kind: SearchKind, answer: String) -> (Result<Vec<SearchHit>, String>, String) {
    let (url, request_text) = serve(answer);
    let search = Search::new(&SearchConfig { kind, base_url: Some(url) }).unwrap();
    let found = search.search("oolong & tea".into(), Some(KEY)).await;
    let theirs = |error: FetchError| match error {
        FetchError::Failed(reason) => reason,
        FetchError::NotSent(reason) => panic!("no request was sent: {reason}"),
    };
    (found.map_err(theirs), request_text.recv().unwrap())
}

const KINDS: [SearchKind; 3] = [SearchKind::Searxng, SearchKind::Brave, SearchKind::Tavily];

#[tokio::test]
async fn each_provider_uses_its_own_protocol() {
    let results = r#"{"query":"oolong","number_of_results":0,"results":[{"url":"https://tea.example/oolong","title":"Oolong","content":"A tea.","engine":"x","score":1.5},{"url":"javascript:evil()","title":"x","content":"y"}]}"#;
    let brave = r#"{"type":"search","query":{"original":"oolong"},"web":{"type":"search","results":[{"title":"Oolong","url":"https://tea.example/oolong","description":"A <strong>tea</strong>."},{"title":"x","url":"file:///etc/passwd"}]}}"#;
    let expected =
        SearchHit { title: "Oolong".into(), url: "https://tea.example/oolong".into(), text: "A tea.".into() };
    for (kind, answer, line, with_key) in [
        (SearchKind::Searxng, results, "GET /search?q=oolong+%26+tea&format=json HTTP/1.1", None),
        (
            SearchKind::Brave,
            brave,
            "GET /res/v1/web/search?q=oolong+%26+tea&count=10 HTTP/1.1",
            Some(format!("x-subscription-token: {KEY}")),
        ),
        (SearchKind::Tavily, results, "POST /search HTTP/1.1", Some(format!("authorization: Bearer {KEY}"))),
    ] {
        let (found, request_text) =
            search_with(kind, http("200 OK\r\nContent-Type: application/json", answer)).await;
        assert_eq!(found.unwrap(), std::slice::from_ref(&expected), "{kind:?}");
        assert!(request_text.starts_with(line), "{request_text}");
        assert_eq!(request_text.contains(KEY), with_key.is_some());
        assert!(with_key.is_none_or(|header| request_text.contains(&header)), "{request_text}");
        if kind == SearchKind::Tavily {
            assert!(request_text.ends_with(r#"{"max_results":10,"query":"oolong & tea"}"#), "{request_text}");
        }
    }
    let nothing = http("200 OK", r#"{"type":"search","query":{}}"#);
    assert_eq!(search_with(SearchKind::Brave, nothing).await.0, Ok(Vec::new()));
}

#[tokio::test]
async fn errors_never_contain_the_key() {
    for kind in KINDS {
        for (answer, part) in [
            (http("401 Unauthorized", KEY), "does not accept the key"),
            (http("429 Too Many Requests\r\nRetry-After: 7", ""), "in 7 seconds"),
            (http("429 Too Many Requests", ""), "try again later"),
            (http("500 Internal Server Error", KEY), "returned 500"),
            (http("302 Found\r\nLocation: http://127.0.0.1:9/", ""), "returned 302"),
            (http("200 OK", "<html>hello"), "is not a list of results"),
            (http("200 OK", r#"{"results": 3, "web": 4}"#), "is not a list of results"),
            (http("200 OK", &" ".repeat(MAX_RESPONSE_BYTES + 1)), "is larger than"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_owned(), "closed the connection early"),
        ] {
            let refused = search_with(kind, answer).await.0.unwrap_err();
            assert!(refused.contains(part) && !refused.contains(KEY), "{kind:?}: {refused}");
        }
    }
    let (refused, _) = search_with(SearchKind::Searxng, http("403 Forbidden", "")).await;
    assert!(refused.unwrap_err().contains("format json"));
}

#[tokio::test]
async fn without_a_key_no_request_is_sent() {
    let search = Search::new(&SearchConfig { kind: SearchKind::Brave, base_url: None }).unwrap();
    let refused = search.search("tea".into(), None).await.unwrap_err();
    assert!(
        matches!(&refused, FetchError::NotSent(reason) if reason.contains("no key for brave")),
        "{refused:?}"
    );
    let nowhere = Search::new(&SearchConfig { kind: SearchKind::Searxng, base_url: None }).unwrap_err();
    assert!(nowhere.to_string().contains("base_url"), "{nowhere}");
}

#[test]
fn a_provider_knows_its_address_and_whether_it_needs_a_key() {
    let search = |kind, base: Option<&str>| {
        let base_url = base.map(|base| Url::parse(base).unwrap());
        Search::new(&SearchConfig { kind, base_url }).unwrap()
    };
    let brave = search(SearchKind::Brave, None);
    assert_eq!((brave.base_url().as_str(), brave.needs_key()), ("https://api.search.brave.com/", true));
    let own = search(SearchKind::Searxng, Some("http://127.0.0.1:8888/find/"));
    assert_eq!((own.base_url().as_str(), own.needs_key()), ("http://127.0.0.1:8888/find/", false));
}
