//! The proxy from inside a real cell, whose only way out it is.

use std::net::TcpListener;
use std::sync::mpsc::channel;

use isolation::policy::clean_environment;
use isolation::proxy::{HostRules, Proxy, ProxyLimits, Verdict, environment};
use isolation::{Backend, Command, Image, Jail, Limits, Policy, Status, Stream};

use crate::fixture::{HELLO, Host, Names, allow};

/// Sends its standard input to the proxy, and prints the response.
const TALK: &str = r#"exec 3<>/dev/tcp/127.0.0.1/3128; printf "$1" >&3; cat <&3"#;

#[test]
fn a_cell_reaches_only_listed_hosts() {
    let host = Host::answering(HELLO);
    let folder = tempfile::tempdir().unwrap();
    let policy = Policy {
        image: Image::Host { tools: Vec::new() },
        mounts: Vec::new(),
        limits: Limits::default(),
        network: allow(&["example.org"]),
        environment: clean_environment().into_iter().chain(environment()).collect(),
        owner: "ada".into(),
    };
    let cell = Jail::new(env!("CARGO_BIN_EXE_choir-cell")).start(&policy, folder.path()).unwrap();
    let listener: TcpListener = cell.take_listener().unwrap();
    let (names, (tell, records)) = (Names::default(), channel());
    names.lead("example.org", &[&[host.address]]);
    let rules = HostRules::of(&policy.network).unwrap();
    let tell = move |request| drop(tell.send(request));
    let proxy = Proxy::serve_through(listener, rules, names, ProxyLimits::default(), tell).unwrap();
    let run = |argv: &[&str]| {
        let command = Command { folder: "/tmp".into(), ..Command::new(argv.iter().copied()) };
        let mut said = Vec::new();
        let exit = cell.exec(&command, &mut |stream, bytes| match stream {
            Stream::Out => said.extend_from_slice(bytes),
            Stream::Err => {}
        });
        (exit.unwrap().status, String::from_utf8_lossy(&said).into_owned())
    };
    let talk = |request: &str| run(&["/bin/bash", "-c", TALK, "talk", request]).1;

    assert!(talk(r"GET http://example.org/ HTTP/1.1\r\n\r\n").ends_with("hello"));
    let refused = talk(r"GET http://other.net/ HTTP/1.1\r\n\r\n");
    assert!(
        refused.starts_with("HTTP/1.1 403 ") && refused.contains("choir run --net other.net"),
        "{refused}"
    );
    let refused = talk(r"CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    // The same server without the proxy: the host's loopback is not the cell's.
    let direct = format!("exec 3<>/dev/tcp/127.0.0.1/{}", host.address.port());
    assert_ne!(run(&["/bin/bash", "-c", &direct]).0, Status::Exited(0));
    let record: Vec<_> = records.try_iter().map(|request| (request.host, request.verdict)).collect();
    let expected = [
        ("example.org".to_owned(), Verdict::Allowed),
        ("other.net".to_owned(), Verdict::Refused),
        ("169.254.169.254".to_owned(), Verdict::Refused),
    ];
    assert_eq!(record, expected);

    if run(&["/bin/bash", "-c", "command -v curl"]).0 == Status::Exited(0) {
        for script in [
            "curl -sS http://example.org/",
            "curl -sS --proxy $ALL_PROXY http://example.org/",
            "curl -sS --proxytunnel http://example.org/",
        ] {
            assert_eq!(run(&["/bin/bash", "-c", script]).1, "hello", "{script}");
        }
    }
    cell.stop();
    drop(proxy);
}
