//! Which addresses are public, and that no other can be reached in any way.

use std::net::{Ipv4Addr, SocketAddr};

use isolation::Network;
use isolation::proxy::{Resolver, SystemResolver, Verdict, is_public};

use crate::fixture::{HELLO, Host, TestProxy, allow, answer_head, ask};

const PUBLIC: &[&str] = &[
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:200::1",
    "2a00::1",
    "3ffe::1",
    "::ffff:1.1.1.1",
    "64:ff9b::101:101",
    "2002:101:101::1",
    // Teredo via 1.1.1.1 to 8.8.8.8.
    "2001:0:101:101::f7f7:f7f7",
];

const PRIVATE: &[&str] = &[
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.255",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::1.1.1.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::127.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001:db8::1",
    "2001:2::1",
    "2001:10::1",
    "2001:20::1",
    "3fff::1",
    "2002:7f00:1::1",
    "2002:a00:1::",
    "2002:c0a8:101::1",
    // Teredo via 10.0.0.1, and to 127.0.0.1.
    "2001:0:a00:1::f7f7:f7f7",
    "2001:0:101:101::80ff:fffe",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
    "5f00::1",
    "4000::1",
];

#[test]
fn everything_that_is_not_public_is_private() {
    for address in PUBLIC {
        assert!(is_public(address.parse().unwrap()), "{address}");
    }
    for address in PRIVATE {
        assert!(!is_public(address.parse().unwrap()), "{address}");
        assert!(!SystemResolver.is_public(address.parse().unwrap()), "{address}");
    }
}

#[test]
fn a_name_with_a_private_address_is_refused_before_connecting() {
    let proxy = TestProxy::new(&Network::Open);
    for address in PRIVATE.iter().filter(|address| **address != "127.0.0.1") {
        proxy.names.lead("inside.example", &[&[SocketAddr::new(address.parse().unwrap(), 80)]]);
        let (_, answer) = proxy.tunnel("inside.example:443");
        assert!(answer.starts_with("HTTP/1.1 403 "), "{address}: {answer}");
        let record = proxy.record();
        assert_eq!(
            (record.verdict, record.host.as_str(), record.sent),
            (Verdict::Refused, "inside.example", 0),
            "{address}"
        );
    }
}

#[test]
fn one_private_address_among_public_ones_refuses_the_host() {
    let host = Host::answering(HELLO);
    let proxy = TestProxy::new(&allow(&["mixed.example"]));
    let private: SocketAddr = (Ipv4Addr::new(10, 0, 0, 1), 80).into();
    for addresses in [[host.address, private], [private, host.address]] {
        proxy.names.lead("mixed.example", &[&addresses]);
        let answer = proxy.ask("GET http://mixed.example/ HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("not public"), "{answer}");
    }
    assert!(host.heard.try_recv().is_err());
}

#[test]
fn a_name_is_resolved_once_per_request() {
    let host = Host::answering(HELLO);
    let private = Host::at([127, 0, 0, 2], |socket| answer_head(socket, HELLO));
    let proxy = TestProxy::new(&allow(&["rebind.example"]));
    proxy.names.lead("rebind.example", &[&[host.address], &[private.address]]);
    let ask = || proxy.ask("GET http://rebind.example/ HTTP/1.1\r\n\r\n");
    assert!(ask().ends_with("hello"));
    assert!(ask().starts_with("HTTP/1.1 403 "));
    assert!(private.heard.try_recv().is_err());
}

#[test]
fn a_redirect_to_a_private_address_ends_at_the_second_request() {
    let private = Host::at([127, 0, 0, 2], |socket| answer_head(socket, HELLO));
    let to = private.address;
    let host = Host::new(move |socket| {
        answer_head(
            socket,
            &format!("HTTP/1.1 302 Found\r\nLocation: http://{to}/\r\nContent-Length: 0\r\n\r\n"),
        )
    });
    for network in [allow(&["start.example", &to.to_string()]), Network::Open] {
        let proxy = TestProxy::new(&network);
        proxy.names.lead("start.example", &[&[host.address]]);
        let answer = proxy.ask("GET http://start.example/ HTTP/1.1\r\n\r\n");
        let location = answer.lines().find_map(|line| line.strip_prefix("location: ")).unwrap();
        let answer = proxy.ask(format!("GET {location} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains("not public"), "{answer}");
    }
    assert!(private.heard.try_recv().is_err());
}

#[test]
fn the_system_resolver_refuses_this_machine() {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let rules = isolation::proxy::HostRules::of(&Network::Open).unwrap();
    let _proxy = isolation::proxy::Proxy::serve(listener, rules, |_| ()).unwrap();
    for target in [
        "localhost:1",
        "127.0.0.1:1",
        "2130706433:1",
        "0177.0.0.1:1",
        "0x7f.1:1",
        "127.1:1",
        "0:1",
        "[::1]:1",
    ] {
        let answer = ask(address, format!("CONNECT {target} HTTP/1.1\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 "), "{target}: {answer}");
    }
}
