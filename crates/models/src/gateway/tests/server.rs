//! A provider of the tests' own: it answers requests one after the other from a list, and remembers them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// An answer of the server.
#[derive(Debug, Clone)]
pub(super) struct Scripted {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) then: Then,
    /// How long it takes.
    pub(super) after: Duration,
}

/// What happens when all is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Then {
    Close,
    /// Nothing more comes, and nothing ends.
    Hang,
    /// This comes again and again.
    Repeat(Vec<u8>),
}

impl Scripted {
    pub(super) fn ok(body: Vec<u8>) -> Self {
        Self { status: 200, headers: Vec::new(), body, then: Then::Close, after: Duration::ZERO }
    }

    pub(super) fn refusal(status: u16, body: &str) -> Self {
        Self { status, ..Self::ok(body.into()) }
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A request that came.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

#[derive(Clone)]
pub(super) struct Server(Arc<State>);

struct State {
    url: String,
    answers: Mutex<VecDeque<Scripted>>,
    asked: Mutex<Vec<Asked>>,
    now: AtomicUsize,
    most: AtomicUsize,
    hung_up: AtomicUsize,
}

impl Server {
    /// When the list is empty, its last answer is given again.
    pub(super) async fn start(answers: Vec<Scripted>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self(Arc::new(State {
            url: format!("http://{}", listener.local_addr().unwrap()),
            answers: Mutex::new(answers.into()),
            asked: Mutex::default(),
            now: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            hung_up: AtomicUsize::new(0),
        }));
        let state = server.0.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, state.clone()));
            }
        });
        server
    }

    pub(super) fn url(&self) -> &str {
        &self.0.url
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.0.asked.lock().unwrap().clone()
    }

    /// Requests that were open at the same time.
    pub(super) fn most_at_once(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    /// Connections that the client closed while it was being answered.
    pub(super) fn hung_up(&self) -> usize {
        self.0.hung_up.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, state: Arc<State>) {
    let Some(asked) = read(&mut stream).await else { return };
    state.asked.lock().unwrap().push(asked);
    let now = state.now.fetch_add(1, Ordering::SeqCst) + 1;
    state.most.fetch_max(now, Ordering::SeqCst);
    let answer = {
        let mut answers = state.answers.lock().unwrap();
        let next = answers.front().cloned().unwrap();
        if answers.len() > 1 {
            answers.pop_front();
        }
        next
    };
    tokio::time::sleep(answer.after).await;
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // The one who asks may be gone.
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
    let _ = stream.write_all(&answer.body).await;
    let _ = stream.flush().await;
    if let Then::Repeat(bytes) = &answer.then {
        while stream.write_all(bytes).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    if answer.then == Then::Hang && stream.read(&mut [0; 16]).await.is_ok_and(|read| read == 0) {
        state.hung_up.fetch_add(1, Ordering::SeqCst);
    }
    state.now.fetch_sub(1, Ordering::SeqCst);
}

async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let end = loop {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.ok()?;
        if length == 0 {
            return None;
        }
        bytes.extend_from_slice(&piece[..length]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.into()))
        .collect();
    let mut body = bytes[end + 4..].to_vec();
    let length: usize = headers.get("content-length")?.parse().ok()?;
    while body.len() < length {
        let mut piece = vec![0; length - body.len()];
        let read = stream.read(&mut piece).await.ok()?;
        body.extend_from_slice(&piece[..read]);
    }
    Some(Asked { path, headers, body: serde_json::from_slice(&body).ok()? })
}
