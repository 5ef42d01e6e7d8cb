//! Plain HTTP with an absolute URL.

use std::io::{BufReader, Read, Write};

use isolation::proxy::Verdict;

use crate::fixture::{HELLO, Host, TestProxy, head};

#[test]
fn a_request_reaches_its_host_and_the_answer_comes_back() {
    let host = Host::answering(HELLO);
    let proxy = TestProxy::with("example.org", &host);
    let request = "GET HTTP://Example.org/a?b=c HTTP/1.1\r\nHost: elsewhere.net\r\nAccept: */*\r\n\
        Connection: keep-alive, X-Mine\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n\
        Proxy-Authorization: Basic c2VjcmV0\r\nTE: trailers\r\nUpgrade: h2c\r\nX-Kept: yes\r\n\r\n";
    let answer = proxy.ask(request);
    assert_eq!(answer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
    let heard = host.heard();
    assert_eq!(
        heard,
        "GET /a?b=c HTTP/1.1\r\nHost: example.org\r\naccept: */*\r\nx-kept: yes\r\nConnection: close\r\n\r\n"
    );
    let record = proxy.record();
    assert_eq!((record.method.as_str(), record.host.as_str(), record.port), ("GET", "example.org", 80));
    assert_eq!((record.verdict, record.reason), (Verdict::Allowed, None));
    assert_eq!((record.sent, record.received), (heard.len() as u64, HELLO.len() as u64));
}

#[test]
fn a_port_and_a_bare_host_are_forwarded_correctly() {
    let host = Host::answering(HELLO);
    let proxy = TestProxy::with("example.org:8080", &host);
    proxy.names.lead("example.org", &[&[host.address]]);
    for (target, first) in [("http://example.org:8080", "GET / "), ("http://example.org:8080?q", "GET /?q ")]
    {
        assert!(proxy.ask(format!("GET {target} HTTP/1.1\r\n\r\n")).ends_with("hello"));
        let heard = host.heard();
        assert!(heard.starts_with(first) && heard.contains("\r\nHost: example.org:8080\r\n"), "{heard}");
    }
}

/// Reads every request completely, and answers with the length of its body.
fn counting() -> Host {
    Host::new(|socket| {
        let mut reader = BufReader::new(socket);
        let head = head(&mut reader);
        let mut body = Vec::new();
        if let Some(length) = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")) {
            body.resize(length.parse().unwrap(), 0);
            reader.read_exact(&mut body).unwrap();
        } else {
            while !body.ends_with(b"0\r\n\r\n") {
                let mut byte = [0];
                reader.read_exact(&mut byte).unwrap();
                body.push(byte[0]);
            }
        }
        reader.get_mut().write_all(HELLO.as_bytes()).unwrap();
        format!("{head}{}", String::from_utf8_lossy(&body))
    })
}

#[test]
fn bodies_are_uploaded_by_length_and_in_chunks() {
    let host = counting();
    let proxy = TestProxy::with("example.org", &host);
    let answer =
        proxy.ask("POST http://example.org/ HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodyGET http://other/");
    assert!(answer.ends_with("hello"), "{answer}");
    assert!(host.heard().ends_with("Content-Length: 4\r\nConnection: close\r\n\r\nbody"));
    let answer = proxy.ask(
        "POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n\
         3;x=y\r\nabc\r\n0A\r\n0123456789\r\n0\r\nX-Trailer: 1\r\n\r\n",
    );
    assert!(answer.ends_with("hello"), "{answer}");
    let heard = host.heard();
    let body =
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n";
    assert!(heard.ends_with(body), "{heard}");
}

#[test]
fn a_long_body_is_uploaded_completely() {
    let host = counting();
    let proxy = TestProxy::with("example.org", &host);
    let body = "z".repeat(2_000_000);
    let head = format!("PUT http://example.org/ HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
    assert!(proxy.ask(format!("{head}{body}")).ends_with("hello"));
    assert!(host.heard().ends_with(&body));
    assert!(proxy.record().sent > 2_000_000);
}

#[test]
fn a_host_may_answer_before_it_has_read_everything() {
    let host = Host::answering("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno");
    let proxy = TestProxy::with("example.org", &host);
    let mut socket = proxy.dial();
    socket.write_all(b"PUT http://example.org/ HTTP/1.1\r\nContent-Length: 99999999\r\n\r\nfirst").unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("no"), "{answer}");
}

#[test]
fn expect_100_continue_is_forwarded() {
    let host = Host::new(|socket| {
        let mut reader = BufReader::new(socket);
        let head = head(&mut reader);
        reader.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
        let mut body = [0; 4];
        reader.read_exact(&mut body).unwrap();
        reader.get_mut().write_all(HELLO.as_bytes()).unwrap();
        head
    });
    let proxy = TestProxy::with("example.org", &host);
    let mut reader = BufReader::new(proxy.dial());
    let request = b"PUT http://example.org/ HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n";
    reader.get_mut().write_all(request).unwrap();
    assert_eq!(head(&mut reader), "HTTP/1.1 100 Continue\r\n\r\n");
    reader.get_mut().write_all(b"body").unwrap();
    let mut answer = String::new();
    reader.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("hello"), "{answer}");
}

#[test]
fn responses_of_every_framing_are_forwarded() {
    let ok = "HTTP/1.1 200 OK\r\n";
    let close = "Connection: close\r\n\r\n";
    let chunks = "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    for (request, answer, expected) in [
        (
            "GET",
            format!("{ok}{chunks}"),
            format!("{ok}Transfer-Encoding: chunked\r\n{close}5\r\nhello\r\n0\r\n\r\n"),
        ),
        ("GET 1.0", format!("{ok}{chunks}"), format!("{ok}{close}hello")),
        ("GET", format!("{ok}\r\nhello"), format!("{ok}{close}hello")),
        ("GET", "HTTP/1.0 200 OK\r\nKeep-Alive: 1\r\n\r\nhello".into(), format!("{ok}{close}hello")),
        ("HEAD", format!("{ok}Content-Length: 5\r\n\r\n"), format!("{ok}Content-Length: 5\r\n{close}")),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".into(),
            format!("HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n{close}"),
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n".into(), format!("HTTP/1.1 204 No Content\r\n{close}")),
        (
            "GET",
            format!("{ok}Content-Length: 5\r\n\r\nhelloHTTP/1.1 200 More\r\n\r\n"),
            format!("{ok}Content-Length: 5\r\n{close}hello"),
        ),
    ] {
        let host = Host::answering(answer.clone().leak());
        let proxy = TestProxy::with("example.org", &host);
        let (method, version) = request.split_once(' ').unwrap_or((request, "1.1"));
        let heard = proxy.ask(format!("{method} http://example.org/ HTTP/{version}\r\n\r\n"));
        assert_eq!(heard, expected, "{answer}");
    }
}
