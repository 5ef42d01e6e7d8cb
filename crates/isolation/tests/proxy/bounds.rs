//! Limits on connections and time, and shutdown.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use isolation::Network;
use isolation::proxy::{ProxyLimits, Verdict};

use crate::fixture::{HELLO, Host, TestProxy, allow, ask, head};

const SOON: Duration = Duration::from_millis(200);
/// Time for everything before the wait, on a busy machine.
const LATER: Duration = Duration::from_secs(2);

#[test]
fn an_endless_head_is_refused() {
    let proxy = TestProxy::new(&Network::Open);
    let answer = proxy.ask(format!("GET http://example.org/ HTTP/1.1\r\nX: {}", "x".repeat(64 << 10)));
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(proxy.record().verdict, Verdict::Refused);
    let many = "X: y\r\n".repeat(1000);
    let answer = proxy.ask(format!("GET http://example.org/ HTTP/1.1\r\n{many}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
}

#[test]
fn a_client_that_never_finishes_its_head_is_disconnected() {
    let proxy = TestProxy::bounded(&Network::Open, ProxyLimits { head: SOON, ..ProxyLimits::default() });
    assert!(proxy.ask("GET http://exam").starts_with("HTTP/1.1 408 "));
    assert_eq!(proxy.record().reason.as_deref(), Some("the request did not arrive in time"));
    assert_eq!(proxy.ask([5, 1, 0, 5, 1]).as_bytes()[..4], [5, 0, 5, 1]);
    assert_eq!(proxy.record().verdict, Verdict::Refused);
    // A connection that sends nothing is no request.
    assert_eq!(proxy.ask(""), "");
    assert!(proxy.records.try_recv().is_err());
}

#[test]
fn a_head_sent_byte_by_byte_does_not_extend_its_deadline() {
    let proxy = TestProxy::bounded(&Network::Open, ProxyLimits { head: SOON, ..ProxyLimits::default() });
    let mut socket = proxy.dial();
    let mut dripping = socket.try_clone().unwrap();
    let drip = std::thread::spawn(move || {
        while dripping.write_all(b"G").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut answer = [0; 12];
    socket.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
    socket.shutdown(Shutdown::Both).unwrap();
    drip.join().unwrap();
}

#[test]
fn an_idle_tunnel_is_closed() {
    let host = Host::echo();
    let proxy =
        TestProxy::bounded(&allow(&["example.org"]), ProxyLimits { idle: LATER, ..ProxyLimits::default() });
    proxy.names.lead("example.org", &[&[host.address]]);
    let (mut tunnel, _) = proxy.tunnel("example.org:443");
    assert_eq!(tunnel.read(&mut [0]).unwrap(), 0);
    assert!(proxy.record().reason.unwrap().contains("broke off"));
    host.heard();
}

#[test]
fn a_host_that_never_answers_is_a_bad_gateway() {
    let host = Host::new(|mut socket| {
        let _ = socket.read_to_end(&mut Vec::new());
        String::new()
    });
    let proxy =
        TestProxy::bounded(&allow(&["example.org"]), ProxyLimits { idle: SOON, ..ProxyLimits::default() });
    proxy.names.lead("example.org", &[&[host.address]]);
    assert!(proxy.ask("GET http://example.org/ HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 502 "));
}

#[test]
fn connections_beyond_the_limit_wait() {
    let host = Host::echo();
    let proxy = TestProxy::bounded(
        &allow(&["example.org"]),
        ProxyLimits { connections: 2, ..ProxyLimits::default() },
    );
    proxy.names.lead("example.org", &[&[host.address]]);
    let (first, _) = proxy.tunnel("example.org:443");
    let (second, _) = proxy.tunnel("example.org:443");
    let mut third = proxy.dial();
    third.write_all(b"CONNECT third.net:443 HTTP/1.1\r\n\r\n").unwrap();
    drop(first);
    let mut answer = String::new();
    third.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
    drop((second, third));
    // The third was served only after the first had ended.
    let hosts: Vec<_> = (0..3).map(|_| proxy.record().host).collect();
    assert_eq!(hosts[0], "example.org");
}

#[test]
fn many_at_once_are_all_served() {
    let host = Host::answering(HELLO);
    let proxy = TestProxy::with("example.org", &host);
    let address = proxy.address;
    std::thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(move || {
                assert!(ask(address, "GET http://example.org/ HTTP/1.1\r\n\r\n").ends_with("hello"))
            });
        }
    });
    assert_eq!((0..100).filter(|_| proxy.record().verdict == Verdict::Allowed).count(), 100);
}

#[test]
fn shutdown_closes_and_reports_every_connection() {
    let host = Host::new(|mut socket| {
        let mut all = Vec::new();
        let _ = socket.read_to_end(&mut all);
        "closed".to_owned()
    });
    let mut proxy = TestProxy::with("example.org", &host);
    let (mut tunnel, _) = proxy.tunnel("example.org:443");
    let mut silent = proxy.dial();
    let mut half = proxy.dial();
    half.write_all(b"GET http").unwrap();
    let mut waiting = proxy.dial();
    waiting.write_all(b"GET http://example.org/ HTTP/1.1\r\n\r\n").unwrap();
    drop(proxy.proxy.take());
    let record: Vec<_> = proxy.records.try_iter().collect();
    assert!(
        record.iter().any(|request| request.method == "CONNECT" && request.reason.is_some()),
        "{record:?}"
    );
    assert_eq!(host.heard(), "closed");
    for socket in [tunnel.get_mut(), &mut silent, &mut half, &mut waiting] {
        // Closed cleanly or reset, it is closed.
        let _ = socket.read_to_end(&mut Vec::new());
    }
    assert!(TcpStream::connect(proxy.address).is_err());
}

#[test]
fn shutdown_does_not_wait_for_an_endless_stream() {
    let host = Host::new(|mut socket| {
        while socket.write_all(&[0; 4096]).is_ok() {}
        "closed".to_owned()
    });
    let mut proxy = TestProxy::with("example.org", &host);
    let (mut tunnel, answer) = proxy.tunnel("example.org:443");
    assert!(answer.starts_with("HTTP/1.1 200 "));
    let reading = std::thread::spawn(move || std::io::copy(&mut tunnel, &mut std::io::sink()));
    drop(proxy.proxy.take());
    let _ = reading.join().unwrap();
    assert_eq!(host.heard(), "closed");
}

#[test]
fn shutdown_does_not_wait_for_a_lookup() {
    struct Stuck(std::sync::mpsc::SyncSender<()>);
    impl isolation::proxy::Resolver for Stuck {
        fn resolve(&self, _: &str, _: u16) -> std::io::Result<Vec<std::net::SocketAddr>> {
            self.0.send(()).unwrap();
            loop {
                std::thread::park();
            }
        }
        fn is_public(&self, _: std::net::IpAddr) -> bool {
            true
        }
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, asking) = std::sync::mpsc::sync_channel(1);
    let rules = isolation::proxy::HostRules::of(&Network::Open).unwrap();
    let bounds = ProxyLimits { connect: Duration::from_secs(3600), ..ProxyLimits::default() };
    let proxy =
        isolation::proxy::Proxy::serve_through(listener, rules, Stuck(asked), bounds, |_| ()).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(b"CONNECT example.org:443 HTTP/1.1\r\n\r\n").unwrap();
    asking.recv().unwrap();
    drop(proxy);
    let mut reader = std::io::BufReader::new(socket);
    assert!(!head(&mut reader).starts_with("HTTP/1.1 200"));
}
