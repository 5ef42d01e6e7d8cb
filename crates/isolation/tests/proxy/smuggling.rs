//! Messages that two readers would understand differently, and garbage.

use std::io::{Read, Write};
use std::net::Shutdown;

use isolation::proxy::Verdict;

use crate::world::{HELLO, Host, World};

#[test]
fn a_request_that_can_be_understood_in_two_ways_reaches_nobody() {
    let host = Host::answering(HELLO);
    let world = World::with("example.org", &host);
    for headers in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: 4\r\n",
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: 4, 4\r\n",
        "Content-Length: +4\r\n",
        "Content-Length: -4\r\n",
        "Content-Length: 0x4\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \u{b}chunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Content-Length : 4\r\n",
        "X: y\r\n Content-Length: 4\r\n",
        " X: y\r\n",
        "X\r\n",
        "X: a\0b\r\n",
        "X: a\rb\r\n",
    ] {
        for request in ["POST http://example.org/", "CONNECT example.org:443"] {
            let answer = world.ask(format!("{request} HTTP/1.1\r\n{headers}\r\n0\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 400 "), "{request} {headers:?}: {answer}");
            assert_eq!(world.told().verdict, Verdict::Refused);
        }
    }
    let old = world.ask("POST http://example.org/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    assert!(old.starts_with("HTTP/1.1 400 "), "{old}");
    let body = world.ask("CONNECT example.org:443 HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody");
    assert!(body.starts_with("HTTP/1.1 400 "), "{body}");
    assert!(host.heard.try_recv().is_err());
}

#[test]
fn a_broken_chunk_never_looks_whole_to_the_host() {
    for chunks in [
        "zz\r\n",
        "-1\r\n",
        "\r\n",
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\nabc\r\n",
        "11111111111111111\r\n",
        "0x3\r\nabc\r\n",
    ] {
        let host = Host::new(|mut socket| {
            let mut all = Vec::new();
            let _ = socket.read_to_end(&mut all);
            String::from_utf8_lossy(&all).into_owned()
        });
        let world = World::with("example.org", &host);
        let answer = world
            .ask(format!("POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{chunks:?}: {answer}");
        let heard = host.heard();
        assert!(!heard.contains("0\r\n\r\n"), "{chunks:?}: {heard}");
    }
}

#[test]
fn an_answer_that_can_be_understood_in_two_ways_is_a_bad_gateway() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nbroken\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
        "",
    ] {
        let world = World::with("example.org", &Host::answering(answer));
        let heard = world.ask("GET http://example.org/ HTTP/1.1\r\n\r\n");
        assert!(heard.starts_with("HTTP/1.1 502 "), "{answer:?}: {heard}");
        assert!(world.told().reason.is_some());
    }
}

#[test]
fn a_broken_answer_does_not_look_whole() {
    let world = World::with(
        "example.org",
        &Host::answering("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel"),
    );
    let heard = world.ask("GET http://example.org/ HTTP/1.1\r\n\r\n");
    assert!(heard.contains("hel") && !heard.ends_with("0\r\n\r\n"), "{heard}");
    assert!(world.told().reason.unwrap().contains("broke off"));
}

#[test]
fn only_absolute_addresses_of_plain_http_are_served() {
    let host = Host::answering(HELLO);
    let world = World::with("example.org", &host);
    for request in [
        "GET / HTTP/1.1\r\nHost: example.org",
        "GET //example.org/ HTTP/1.1",
        "GET https://example.org/ HTTP/1.1",
        "GET ftp://example.org/ HTTP/1.1",
        "GET http:/example.org/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://example.org@evil.net/ HTTP/1.1",
        "GET http://evil.net\\@example.org/ HTTP/1.1",
        "GET http://evil.net#@example.org/ HTTP/1.1",
        "GET http://example.org/#x HTTP/1.1",
        "GET http://example.org:/ HTTP/1.1",
        "GET http://example.org:80x/ HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "GET http://example.org/",
        "GET http://example.org/ HTTP/2.0",
        "GET http://example.org/ HTTP/1.1 HTTP/1.1",
        "GET  http://example.org/ HTTP/1.1",
        "PRI * HTTP/2.0",
        "nonsense",
    ] {
        let answer = world.ask(format!("{request}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{request}: {answer}");
        assert_eq!(world.told().verdict, Verdict::Refused, "{request}");
    }
    assert!(host.heard.try_recv().is_err());
}

#[test]
fn garbage_is_answered_at_once() {
    let world = World::new(&isolation::Network::Open);
    // TLS, SOCKS4, an empty line, and bytes that mean nothing.
    for bytes in [&b"\x16\x03\x01\x02\x00\x01"[..], b"\x04\x01\x00\x50", b"\r\n", b"\0\0\0", b"\xff\xfe"] {
        assert!(world.ask(bytes).starts_with("HTTP/1.1 400 "), "{bytes:?}");
        assert_eq!(world.told().verdict, Verdict::Refused);
    }
}

/// Whole requests of each kind, to be spoiled.
const WHOLE: [&[u8]; 4] = [
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\nping",
    b"GET http://example.org/a HTTP/1.1\r\nHost: example.org\r\nConnection: close, x\r\nX: y\r\n\r\n",
    b"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x01\xbbping",
];

#[test]
fn every_spoiled_request_is_told_once_and_harms_nobody() {
    let host = Host::new(|mut socket| {
        let _ = socket.write_all(HELLO.as_bytes());
        let _ = socket.shutdown(Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
        String::new()
    });
    let world = World::with("example.org", &host);
    // Always the same, so that what fails once fails again.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % 0xffff_ffff).unwrap() % below
    };
    for _ in 0..500 {
        let mut bytes = WHOLE[next(WHOLE.len())].to_vec();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 => bytes.insert(at, b"\r\n:,; \0%@"[next(9)]),
                2 => bytes.truncate(at + 1),
                _ => drop(bytes.remove(at)),
            }
        }
        let mut socket = world.dial();
        // It may have been refused by then.
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(Shutdown::Write);
        let _ = socket.read_to_end(&mut Vec::new());
        let told = world.told();
        let reached = told.verdict == Verdict::Allowed && told.sent > 0;
        assert!(!reached || told.host == "example.org", "{:?}: {told:?}", String::from_utf8_lossy(&bytes));
    }
    assert!(world.records.try_recv().is_err());
}
