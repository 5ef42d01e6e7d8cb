//! Sign-in links created while a server runs.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::test_computer::choir;

/// The address of a link, without the secret that it carries.
fn address(text: &str) -> &str {
    let link = text.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    link.split('#').next().unwrap()
}

#[test]
fn a_link_leads_to_the_port_on_which_the_server_is() {
    let data = tempfile::tempdir().unwrap();
    let mut up = choir();
    up.args(["up", "--no-browser", "--port", "0", "--data"]).arg(data.path());
    let mut up = up.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(up.stdout.take().unwrap()).lines().map(Result::unwrap);
    let told = lines.find(|line| line.contains("http://")).unwrap();
    let made = choir().args(["link", "--data"]).arg(data.path()).output().unwrap();
    up.kill().unwrap();
    up.wait().unwrap();
    let made = String::from_utf8(made.stdout).unwrap();
    assert_eq!(address(&made), address(&told));
    assert_ne!(made.trim(), told.trim(), "each link has a secret of its own");
    let named = choir().args(["link", "--port", "4711", "--data"]).arg(data.path()).output().unwrap();
    assert_eq!(address(&String::from_utf8(named.stdout).unwrap()), "http://localhost:4711/");
}
