//! Searches against a server on this machine that speaks as the providers do.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use super::*;

const KEY: &str = "key-that-nobody-may-see";

/// Answers once, and tells what it was asked.
fn serve(answer: String) -> (Url, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let (sender, asked) = channel();
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
    (url, asked)
}

fn http(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

struct Vault(Option<&'static str>);

impl ApiKeys for Vault {
    fn key(&self, provider: &str) -> Option<ApiKey> {
        self.0.filter(|known| *known == provider).map(|_| ApiKey::new(KEY))
    }
}

async fn find(kind: SearchKind, answer: String) -> (Result<Vec<WebHit>, String>, String) {
    let (url, asked) = serve(answer);
    let search = Search::new(&SearchConfig { kind, base_url: Some(url) }).unwrap();
    let found = search.find("oolong & tea".into(), &Vault(Some(kind.name()))).await;
    let theirs = |error: WebError| match error {
        WebError::Asked(why) => why,
        WebError::NotAsked(why) => panic!("nobody was asked: {why}"),
    };
    (found.map_err(theirs), asked.recv().unwrap())
}

const KINDS: [SearchKind; 3] = [SearchKind::Searxng, SearchKind::Brave, SearchKind::Tavily];

#[tokio::test]
async fn each_provider_is_asked_and_read_in_its_own_words() {
    let results = r#"{"query":"oolong","number_of_results":0,"results":[{"url":"https://tea.example/oolong","title":"Oolong","content":"A tea.","engine":"x","score":1.5},{"url":"javascript:evil()","title":"x","content":"y"}]}"#;
    let brave = r#"{"type":"search","query":{"original":"oolong"},"web":{"type":"search","results":[{"title":"Oolong","url":"https://tea.example/oolong","description":"A <strong>tea</strong>."},{"title":"x","url":"file:///etc/passwd"}]}}"#;
    let expected =
        WebHit { title: "Oolong".into(), url: "https://tea.example/oolong".into(), text: "A tea.".into() };
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
        let (found, asked) = find(kind, http("200 OK\r\nContent-Type: application/json", answer)).await;
        assert_eq!(found.unwrap(), std::slice::from_ref(&expected), "{kind:?}");
        assert!(asked.starts_with(line), "{asked}");
        assert_eq!(asked.contains(KEY), with_key.is_some());
        assert!(with_key.is_none_or(|header| asked.contains(&header)), "{asked}");
        if kind == SearchKind::Tavily {
            assert!(asked.ends_with(r#"{"max_results":10,"query":"oolong & tea"}"#), "{asked}");
        }
    }
    let nothing = http("200 OK", r#"{"type":"search","query":{}}"#);
    assert_eq!(find(SearchKind::Brave, nothing).await.0, Ok(Vec::new()));
}

#[tokio::test]
async fn what_a_provider_refuses_is_said_without_the_key() {
    for kind in KINDS {
        for (answer, part) in [
            (http("401 Unauthorized", KEY), "does not accept the key"),
            (http("429 Too Many Requests\r\nRetry-After: 7", ""), "in 7 seconds"),
            (http("429 Too Many Requests", ""), "try again later"),
            (http("500 Internal Server Error", KEY), "answers 500"),
            (http("302 Found\r\nLocation: http://127.0.0.1:9/", ""), "answers 302"),
            (http("200 OK", "<html>hello"), "no list of results"),
            (http("200 OK", r#"{"results": 3, "web": 4}"#), "no list of results"),
            (http("200 OK", &" ".repeat(LONGEST + 1)), "more than"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{".to_owned(), "broke off"),
        ] {
            let refused = find(kind, answer).await.0.unwrap_err();
            assert!(refused.contains(part) && !refused.contains(KEY), "{kind:?}: {refused}");
        }
    }
    let (refused, _) = find(SearchKind::Searxng, http("403 Forbidden", "")).await;
    assert!(refused.unwrap_err().contains("format json"));
}

#[tokio::test]
async fn without_a_key_nobody_is_asked() {
    let search = Search::new(&SearchConfig { kind: SearchKind::Brave, base_url: None }).unwrap();
    let refused = search.find("tea".into(), &Vault(None)).await.unwrap_err();
    assert!(matches!(&refused, WebError::NotAsked(why) if why.contains("no key for brave")), "{refused:?}");
    let nowhere = Search::new(&SearchConfig { kind: SearchKind::Searxng, base_url: None }).unwrap_err();
    assert!(nowhere.message.contains("base_url"), "{nowhere}");
}

#[test]
fn a_provider_is_shown_with_where_it_listens_and_the_key_that_it_needs() {
    let line = |kind, base: Option<&str>| {
        let base_url = base.map(|base| Url::parse(base).unwrap());
        Search::new(&SearchConfig { kind, base_url }).unwrap().line()
    };
    let brave = line(SearchKind::Brave, None);
    assert_eq!((&*brave.address, brave.key.as_deref()), ("https://api.search.brave.com/", Some("brave")));
    let own = line(SearchKind::Searxng, Some("http://ada:hush@127.0.0.1:8888/find/"));
    assert_eq!((&*own.address, own.key), ("http://127.0.0.1:8888/find/", None));
}
