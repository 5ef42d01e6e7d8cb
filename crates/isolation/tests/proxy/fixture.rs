//! A proxy under test: 127.0.0.1 counts as public, other loopback addresses as private, and names resolve as the test
//! says.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolation::Network;
use isolation::proxy::{HostRules, ProxiedRequest, Proxy, ProxyLimits, Resolver, is_public};

/// Only a hang reaches this timeout.
const NEVER: Duration = Duration::from_secs(120);

/// A resolver: each name has a list of answers, of which the last one repeats.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names(Arc<Mutex<HashMap<String, Vec<Vec<SocketAddr>>>>>);

impl Names {
    pub(crate) fn lead(&self, name: &str, answers: &[&[SocketAddr]]) {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        self.0.lock().unwrap().insert(name.to_owned(), answers);
    }
}

impl Resolver for Names {
    fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let mut names = self.0.lock().unwrap();
        let name = if names.contains_key(host) { host } else { "*" };
        let answers = names.get_mut(name).ok_or_else(|| io::Error::other("no such name"))?;
        Ok(if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() })
    }

    fn is_public(&self, address: IpAddr) -> bool {
        address == Ipv4Addr::LOCALHOST || is_public(address)
    }
}

/// A proxy with its reported requests.
pub(crate) struct TestProxy {
    pub(crate) proxy: Option<Proxy>,
    pub(crate) names: Names,
    pub(crate) records: Receiver<ProxiedRequest>,
    pub(crate) address: SocketAddr,
}

pub(crate) fn allow(entries: &[&str]) -> Network {
    Network::Allow(entries.iter().map(|&entry| entry.to_owned()).collect())
}

impl TestProxy {
    pub(crate) fn new(network: &Network) -> Self {
        Self::bounded(network, ProxyLimits::default())
    }

    pub(crate) fn bounded(network: &Network, bounds: ProxyLimits) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (names, (tell, records)) = (Names::default(), channel());
        let tell = move |request| drop(tell.send(request));
        let rules = HostRules::of(network).unwrap();
        let proxy = Proxy::serve_through(listener, rules, names.clone(), bounds, tell).unwrap();
        Self { proxy: Some(proxy), names, records, address }
    }

    /// A proxy with one allowed host.
    pub(crate) fn with(name: &str, host: &Host) -> Self {
        let proxy = Self::new(&allow(&[name]));
        proxy.names.lead(name, &[&[host.address]]);
        proxy
    }

    pub(crate) fn dial(&self) -> TcpStream {
        dial(self.address)
    }

    /// Sends bytes, and reads the response until its end.
    pub(crate) fn ask(&self, bytes: impl AsRef<[u8]>) -> String {
        ask(self.address, bytes)
    }

    pub(crate) fn record(&self) -> ProxiedRequest {
        self.records.recv_timeout(NEVER).unwrap()
    }

    /// Opens a CONNECT tunnel; returns it with the response head.
    pub(crate) fn tunnel(&self, target: &str) -> (BufReader<TcpStream>, String) {
        let mut socket = self.dial();
        socket.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(socket);
        let head = head(&mut reader);
        (reader, head)
    }
}

pub(crate) fn dial(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(NEVER)).unwrap();
    socket
}

pub(crate) fn ask(address: SocketAddr, bytes: impl AsRef<[u8]>) -> String {
    let mut socket = dial(address);
    socket.write_all(bytes.as_ref()).unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// Reads a head with its empty line.
pub(crate) fn head(reader: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() > 0 {}
    head
}

/// A server that plays a host on the internet.
pub(crate) struct Host {
    pub(crate) address: SocketAddr,
    /// What its handler returned for each connection.
    pub(crate) heard: Receiver<String>,
}

impl Host {
    /// Serves each connection; `heard` receives the handler's results.
    pub(crate) fn at(ip: [u8; 4], serve: impl Fn(TcpStream) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::from(ip), 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, heard) = channel();
        std::thread::spawn(move || {
            let serve = Arc::new(serve);
            for socket in listener.incoming() {
                let (serve, tell) = (Arc::clone(&serve), tell.clone());
                std::thread::spawn(move || tell.send(serve(socket.unwrap())));
            }
        });
        Self { address, heard }
    }

    pub(crate) fn new(serve: impl Fn(TcpStream) -> String + Send + Sync + 'static) -> Self {
        Self::at([127, 0, 0, 1], serve)
    }

    /// Answers every request head with the same bytes, and records the head.
    pub(crate) fn answering(answer: &'static str) -> Self {
        Self::new(move |socket| answer_head(socket, answer))
    }

    /// Echoes its input until that ends.
    pub(crate) fn echo() -> Self {
        Self::new(|mut socket| {
            let mut reader = socket.try_clone().unwrap();
            let _ = io::copy(&mut reader, &mut socket);
            String::new()
        })
    }

    pub(crate) fn heard(&self) -> String {
        self.heard.recv_timeout(NEVER).unwrap()
    }
}

pub(crate) fn answer_head(socket: TcpStream, answer: &str) -> String {
    let mut reader = BufReader::new(socket);
    let heard = head(&mut reader);
    reader.get_mut().write_all(answer.as_bytes()).unwrap();
    heard
}

pub(crate) const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
