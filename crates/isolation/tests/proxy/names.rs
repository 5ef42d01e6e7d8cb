//! The allow list, and the many ways to write one host.

use std::net::Ipv4Addr;

use isolation::proxy::{HostRules, Verdict, environment};

use crate::fixture::{Host, TestProxy, allow};

/// The list, the requested host, and the host as the proxy records it; `None` if refused.
const TABLE: &[(&[&str], &str, Option<&str>)] = &[
    (&["example.org"], "example.org:443", Some("example.org")),
    (&["example.org"], "example.org:80", Some("example.org")),
    (&["example.org"], "EXAMPLE.Org:443", Some("example.org")),
    (&["Example.ORG."], "example.org:443", Some("example.org")),
    (&["example.org"], "example.org.:443", Some("example.org")),
    (&["example.org"], "%65xample.org:443", Some("example.org")),
    (&["example.org"], "example.org:22", None),
    (&["example.org"], "example.org:8443", None),
    (&["example.org:22"], "example.org:22", Some("example.org")),
    (&["example.org:22"], "example.org:443", None),
    (&["example.org", "example.org:22"], "example.org:22", Some("example.org")),
    (&["example.org"], "www.example.org:443", None),
    (&["example.org"], "notexample.org:443", None),
    (&["example.org"], "example.org.evil.net:443", None),
    (&["example.org"], "org:443", None),
    (&["*.example.org"], "www.example.org:443", Some("www.example.org")),
    (&["*.example.org"], "a.b.example.org:443", Some("a.b.example.org")),
    (&["*.example.org"], "example.org:443", None),
    (&["*.example.org"], "notexample.org:443", None),
    (&["*.example.org:8080"], "www.example.org:8080", Some("www.example.org")),
    (&["*.example.org:8080"], "www.example.org:80", None),
    (&["*.example.org", "example.org"], "example.org:443", Some("example.org")),
    (&["bücher.example"], "xn--bcher-kva.example:443", Some("xn--bcher-kva.example")),
    (&["xn--bcher-kva.example"], "b%C3%BCcher.example:443", Some("xn--bcher-kva.example")),
    (&["*.bücher.example"], "www.xn--bcher-kva.example:443", Some("www.xn--bcher-kva.example")),
    (&[], "example.org:443", None),
    // Addresses only if they are listed themselves, in any notation.
    (&["*.0.0.1.example"], "127.0.0.1:443", None),
    (&["example.org"], "127.0.0.1:443", None),
    (&["127.0.0.1:PORT"], "127.0.0.1:PORT", Some("127.0.0.1")),
    (&["127.0.0.1:PORT"], "127.0.0.1.:PORT", Some("127.0.0.1")),
    (&["127.0.0.1:PORT"], "2130706433:PORT", Some("127.0.0.1")),
    (&["127.0.0.1:PORT"], "0177.0.0.1:PORT", Some("127.0.0.1")),
    (&["127.0.0.1:PORT"], "0x7f000001:PORT", Some("127.0.0.1")),
    (&["127.0.0.1:PORT"], "127.1:PORT", Some("127.0.0.1")),
    (&["127.0.0.1:PORT"], "[::ffff:127.0.0.1]:PORT", Some("127.0.0.1")),
    (&["example.org"], "2130706433:443", None),
    (&["127.0.0.2:PORT", "2130706434"], "127.0.0.2:PORT", None),
    (&["[::1]:PORT", "::1"], "[::1]:PORT", None),
];

#[test]
fn the_list_decides() {
    let host = Host::echo();
    let port = host.address.port().to_string();
    for (list, target, understood) in TABLE {
        let list: Vec<_> = list.iter().map(|entry| entry.replace("PORT", &port)).collect();
        let target = target.replace("PORT", &port);
        let proxy = TestProxy::new(&isolation::Network::Allow(list.clone()));
        proxy.names.lead("*", &[&[host.address]]);
        let (_, answer) = proxy.tunnel(&target);
        let status = if understood.is_some() { "HTTP/1.1 200 " } else { "HTTP/1.1 403 " };
        assert!(answer.starts_with(status), "{list:?} {target}: {answer}");
        let record = proxy.record();
        let allowed = (record.verdict == Verdict::Allowed).then_some(record.host.as_str());
        assert_eq!(allowed, *understood, "{list:?} {target}");
    }
}

#[test]
fn an_open_network_reaches_every_public_host_on_every_port() {
    let host = Host::echo();
    let proxy = TestProxy::new(&isolation::Network::Open);
    proxy.names.lead("*", &[&[host.address]]);
    for (target, status) in [
        ("anything.example:9999".to_owned(), "200"),
        (format!("127.0.0.1:{}", host.address.port()), "200"),
        (format!("{}:{}", Ipv4Addr::new(127, 0, 0, 2), host.address.port()), "403"),
        ("169.254.169.254:80".to_owned(), "403"),
        ("[fe80::1]:80".to_owned(), "403"),
    ] {
        let (_, answer) = proxy.tunnel(&target);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{target}: {answer}");
    }
}

#[test]
fn an_invalid_host_is_refused() {
    let proxy = TestProxy::new(&isolation::Network::Open);
    proxy.names.lead("*", &[&[(Ipv4Addr::LOCALHOST, 1).into()]]);
    let long = format!("{}:1", "a".repeat(64));
    let longer = format!("{}a:1", "a.".repeat(130));
    for target in [
        "",
        ":443",
        ".:443",
        "..:443",
        "a..b:443",
        "example.org",
        "example.org:",
        "example.org:0",
        "example.org:+80",
        "example.org:65536",
        "example.org:x",
        "exa%00mple.org:443",
        "exa%20mple.org:443",
        "user@example.org:443",
        "example.org\\@evil:443",
        "256.256.256.256:443",
        "1.2.3.4.5:443",
        "::1:443",
        "[::1:443",
        "[::1%25lo]:443",
        "*:443",
        "*.example.org:443x",
        "http://example.org:443",
        "example.org/x:443",
        &long,
        &longer,
    ] {
        let answer = proxy.ask(format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{target}: {answer}");
        assert_eq!(proxy.record().verdict, Verdict::Refused);
    }
}

#[test]
fn an_entry_that_names_no_host_is_reported() {
    for entry in [
        "",
        "*",
        "*.",
        "*.*.org",
        "a*.org",
        "https://example.org",
        "example.org/x",
        "example.org:0",
        "example.org:http",
        "exa mple.org",
        "*.127.0.0.1",
        "a..b",
    ] {
        let error = HostRules::of(&allow(&[entry])).unwrap_err().to_string();
        assert!(error.contains(&format!("{entry:?}")), "{error}");
    }
}

#[test]
fn a_refusal_gives_its_reason_and_remedy() {
    let proxy = TestProxy::new(&allow(&["example.org"]));
    let answer = proxy.ask("CONNECT other.net:443 HTTP/1.1\r\n\r\n");
    assert!(answer.contains("other.net is not on the list"), "{answer}");
    assert!(answer.contains("choir run --net other.net …"), "{answer}");
    let answer = proxy.ask("CONNECT example.org:22 HTTP/1.1\r\n\r\n");
    assert!(answer.contains("port 22 of example.org"), "{answer}");
    assert!(answer.contains("choir run --net example.org:22 …"), "{answer}");
}

#[test]
fn proxy_variables_exist_in_both_cases() {
    let variables = environment();
    for (name, value) in [
        ("HTTP_PROXY", "http://127.0.0.1:3128"),
        ("HTTPS_PROXY", "http://127.0.0.1:3128"),
        ("ALL_PROXY", "socks5h://127.0.0.1:3128"),
        ("NO_PROXY", "localhost,127.0.0.1"),
    ] {
        for name in [name.to_owned(), name.to_lowercase()] {
            assert!(variables.contains(&(name.clone(), value.to_owned())), "{name}");
        }
    }
}
