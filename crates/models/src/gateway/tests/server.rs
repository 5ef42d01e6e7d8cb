//! A test server that answers requests in order from a list and records them.

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

/// A response of the server.
#[derive(Debug, Clone)]
pub(super) struct ScriptedResponse {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) after_body: AfterBody,
    /// Delay before the response.
    pub(super) delay: Duration,
}

/// What the server does after the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AfterBody {
    Close,
    /// Sends nothing more and keeps the connection open.
    Hang,
    /// Sends these bytes repeatedly.
    Repeat(Vec<u8>),
}

impl ScriptedResponse {
    pub(super) fn ok(body: Vec<u8>) -> Self {
        Self { status: 200, headers: Vec::new(), body, after_body: AfterBody::Close, delay: Duration::ZERO }
    }

    pub(super) fn refusal(status: u16, body: &str) -> Self {
        Self { status, ..Self::ok(body.into()) }
    }

    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A request that the server received.
#[derive(Debug, Clone)]
pub(super) struct ReceivedRequest {
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

#[derive(Clone)]
pub(super) struct Server(Arc<ServerState>);

struct ServerState {
    url: String,
    answers: Mutex<VecDeque<ScriptedResponse>>,
    requests: Mutex<Vec<ReceivedRequest>>,
    open: AtomicUsize,
    most_open: AtomicUsize,
    disconnects: AtomicUsize,
}

impl Server {
    /// The last response is repeated when the list is exhausted.
    pub(super) async fn start(answers: Vec<ScriptedResponse>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self(Arc::new(ServerState {
            url: format!("http://{}", listener.local_addr().unwrap()),
            answers: Mutex::new(answers.into()),
            requests: Mutex::default(),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            disconnects: AtomicUsize::new(0),
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

    pub(super) fn requests(&self) -> Vec<ReceivedRequest> {
        self.0.requests.lock().unwrap().clone()
    }

    /// Maximum number of concurrent requests.
    pub(super) fn most_at_once(&self) -> usize {
        self.0.most_open.load(Ordering::SeqCst)
    }

    /// Number of connections that the client closed during a response.
    pub(super) fn disconnects(&self) -> usize {
        self.0.disconnects.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, state: Arc<ServerState>) {
    let Some(request) = read(&mut stream).await else { return };
    state.requests.lock().unwrap().push(request);
    let open = state.open.fetch_add(1, Ordering::SeqCst) + 1;
    state.most_open.fetch_max(open, Ordering::SeqCst);
    let response = {
        let mut answers = state.answers.lock().unwrap();
        let next = answers.front().cloned().unwrap();
        if answers.len() > 1 {
            answers.pop_front();
        }
        next
    };
    tokio::time::sleep(response.delay).await;
    let mut head = format!("HTTP/1.1 {} X\r\nconnection: close\r\n", response.status);
    for (name, value) in &response.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    // The client may have disconnected.
    let _ = stream.write_all(format!("{head}\r\n").as_bytes()).await;
    let _ = stream.write_all(&response.body).await;
    let _ = stream.flush().await;
    if let AfterBody::Repeat(bytes) = &response.after_body {
        while stream.write_all(bytes).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    if response.after_body == AfterBody::Hang && stream.read(&mut [0; 16]).await.is_ok_and(|read| read == 0) {
        state.disconnects.fetch_add(1, Ordering::SeqCst);
    }
    state.open.fetch_sub(1, Ordering::SeqCst);
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
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
    Some(ReceivedRequest { path, headers, body: serde_json::from_slice(&body).ok()? })
}
