//! Tunnels by CONNECT and by SOCKS5: what they carry, and how they are refused.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

use isolation::proxy::{ProxiedRequest, Verdict};

use crate::fixture::{Host, TestProxy, allow};

#[test]
fn a_tunnel_carries_both_directions_and_closes_them_separately() {
    let host = Host::echo();
    let proxy = TestProxy::with("example.org", &host);
    let (mut tunnel, answer) = proxy.tunnel("example.org:443");
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    let (mut writer, sent) = (tunnel.get_ref().try_clone().unwrap(), bytes.clone());
    let writing = std::thread::spawn(move || {
        writer.write_all(&sent).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut back = Vec::new();
    tunnel.read_to_end(&mut back).unwrap();
    writing.join().unwrap();
    assert!(back == bytes);
    let record = proxy.record();
    let length = bytes.len() as u64;
    let expected = ProxiedRequest {
        method: "CONNECT".into(),
        host: "example.org".into(),
        port: 443,
        verdict: Verdict::Allowed,
        reason: None,
        sent: length,
        received: length,
    };
    assert_eq!(record, expected);
}

#[test]
fn bytes_sent_with_the_head_are_not_lost() {
    let proxy = TestProxy::with("example.org", &Host::echo());
    let mut socket = proxy.dial();
    socket.write_all(b"CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\nearly").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("\r\n\r\nearly"), "{answer}");
}

#[test]
fn a_host_that_cannot_be_reached_is_a_bad_gateway() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let proxy = TestProxy::new(&allow(&["closed.example", "nowhere.example", "empty.example"]));
    proxy.names.lead("closed.example", &[&[closed]]);
    proxy.names.lead("empty.example", &[&[]]);
    for name in ["closed.example", "nowhere.example", "empty.example"] {
        for answer in [
            proxy.ask(format!("CONNECT {name}:443 HTTP/1.1\r\n\r\n")),
            proxy.ask(format!("GET http://{name}/ HTTP/1.1\r\n\r\n")),
        ] {
            assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains(name), "{answer}");
            let record = proxy.record();
            assert_eq!((record.verdict, record.reason.is_some()), (Verdict::Allowed, true));
        }
    }
}

#[test]
fn the_next_address_is_tried_when_the_first_does_not_answer() {
    let host = Host::echo();
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let proxy = TestProxy::new(&allow(&["two.example"]));
    proxy.names.lead("two.example", &[&[closed, host.address]]);
    assert!(proxy.tunnel("two.example:443").1.starts_with("HTTP/1.1 200 "));
}

/// Performs the handshake and sends a request; returns the reply's code.
fn socks(proxy: &TestProxy, kind: u8, address: &[u8], port: u16) -> (TcpStream, u8) {
    let mut socket = proxy.dial();
    socket.write_all(&[5, 2, 2, 0]).unwrap();
    let mut chosen = [0; 2];
    socket.read_exact(&mut chosen).unwrap();
    assert_eq!(chosen, [5, 0]);
    let mut request = vec![5, 1, 0, kind];
    request.extend_from_slice(address);
    request.extend_from_slice(&port.to_be_bytes());
    socket.write_all(&request).unwrap();
    let mut reply = [0; 10];
    socket.read_exact(&mut reply).unwrap();
    assert_eq!(reply[0], 5);
    (socket, reply[1])
}

fn named(name: &str) -> Vec<u8> {
    [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat()
}

#[test]
fn socks_reaches_by_name_and_by_address() {
    let host = Host::echo();
    let port = host.address.port();
    let proxy = TestProxy::new(&allow(&["example.org", &format!("127.0.0.1:{port}")]));
    proxy.names.lead("example.org", &[&[host.address]]);
    for (kind, address, port, name) in [
        (3, named("Example.org"), 443, "example.org"),
        (1, vec![127, 0, 0, 1], port, "127.0.0.1"),
        (3, named("127.0.0.1"), port, "127.0.0.1"),
        (4, Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets().to_vec(), port, "127.0.0.1"),
    ] {
        let (mut socket, code) = socks(&proxy, kind, &address, port);
        assert_eq!(code, 0, "{name}");
        socket.write_all(b"ping").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let mut back = String::new();
        socket.read_to_string(&mut back).unwrap();
        assert_eq!(back, "ping");
        let record = proxy.record();
        assert_eq!((record.method.as_str(), record.host.as_str(), record.port), ("SOCKS5", name, port));
        assert_eq!((record.verdict, record.sent, record.received), (Verdict::Allowed, 4, 4));
    }
}

#[test]
fn socks_returns_the_reason_code() {
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let proxy = TestProxy::new(&allow(&["closed.example", "inside.example", "nowhere.example", "::1"]));
    proxy.names.lead("closed.example", &[&[closed]]);
    proxy.names.lead("inside.example", &[&[(Ipv4Addr::new(10, 1, 2, 3), 80).into()]]);
    let mut v6 = vec![0; 15];
    v6.push(1);
    for (kind, address, code) in [
        (3, named("other.example"), 2),
        (3, named("inside.example"), 2),
        (1, vec![169, 254, 169, 254], 2),
        (4, v6, 2),
        (3, named("nowhere.example"), 4),
        (3, named("closed.example"), 5),
        (3, named(""), 1),
        (9, vec![], 1),
    ] {
        assert_eq!(socks(&proxy, kind, &address, 80).1, code, "{address:?}");
        assert!(proxy.record().reason.is_some());
    }
}

#[test]
fn socks_without_a_method_or_with_another_command_is_refused() {
    let proxy = TestProxy::new(&isolation::Network::Open);
    assert_eq!(proxy.ask([5, 1, 2]).as_bytes(), "\u{5}\u{fffd}".as_bytes());
    assert_eq!(proxy.record().verdict, Verdict::Refused);
    for command in [2, 3, 0x7f] {
        let mut request = vec![5, 1, 0, 5, command, 0, 1, 1, 1, 1, 1];
        request.extend_from_slice(&[0, 80]);
        assert_eq!(proxy.ask(request).as_bytes()[..4], [5, 0, 5, 7]);
        assert_eq!(proxy.record().verdict, Verdict::Refused);
    }
}
