//! The server: one thread with its own runtime. Dropping the handle ends the thread and all connections.

use std::{
    convert::Infallible,
    fmt, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Method, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{sync::oneshot, time::sleep};

use crate::{
    player::{Answer, Content, Piece, ScriptPlayer},
    recording::RecordedRequest,
    script::Script,
    wire::{ErrorResponse, Request, Wire},
};

/// Lets earlier writes leave before the connection is cut.
const BEFORE_CUT: Duration = Duration::from_millis(2);

/// The path that returns the same list as [`ScriptedServer::requests`], for tests of the program.
const REQUESTS: &str = "/requests";

/// A scripted model for tests. It serves until it is dropped.
#[derive(Debug)]
pub struct ScriptedServer {
    address: SocketAddr,
    player: Arc<ScriptPlayer>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The configuration of a server.
#[derive(Debug, Default)]
pub struct ServerOptions {
    /// Chosen by their objective; see the crate documentation.
    pub scripts: Vec<Script>,
    /// 0 for any free port.
    pub port: u16,
    /// Random by default.
    pub key: Option<String>,
}

impl ScriptedServer {
    /// Serves one script on a free port.
    ///
    /// # Panics
    /// If this machine does not allow listening on loopback.
    pub fn start(script: Script) -> Self {
        let started = ServerOptions { scripts: vec![script], ..ServerOptions::default() }.serve();
        #[expect(
            clippy::panic,
            reason = "the signature that tests want; `ServerOptions::serve` is there for the rest"
        )]
        started.unwrap_or_else(|error| panic!("the scripted model cannot start: {error}"))
    }

    /// The base URL for a client of this provider; includes `/v1` for OpenAI.
    pub fn url(&self, wire: Wire) -> String {
        format!("http://{}{}", self.address, wire.base())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The key that every protocol requires; for AWS signatures, the secret of [`crate::ACCESS_KEY`].
    pub fn key(&self) -> &str {
        self.player.key()
    }

    /// All requests so far, in the order of their answers.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.player.requests()
    }

    pub fn forget_requests(&self) {
        self.player.forget_requests();
    }

    /// The reasons of all refused requests; empty for a scenario that went well.
    pub fn refusals(&self) -> Vec<String> {
        self.requests().iter().filter_map(RecordedRequest::refusal).map(str::to_owned).collect()
    }

    /// Replaces the script and resets the fault counters.
    pub fn set_script(&self, script: Script) {
        self.player.set_scripts(vec![script]);
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl ServerOptions {
    pub fn serve(self) -> io::Result<ScriptedServer> {
        let key = self.key.map_or_else(random_key, Ok)?;
        let player = Arc::new(ScriptPlayer::new(self.scripts, key));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let shared = player.clone();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    // Ends when the handle is dropped or the listener fails.
                    _ = stopped => {}
                    _ = accept(listener, shared) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("scripted-model".into()).spawn(serve)?;
        Ok(ScriptedServer { address, player, stop: Some(stop), thread: Some(thread) })
    }
}

fn random_key() -> io::Result<String> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
    let hex: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sk-scripted-{hex}"))
}

async fn accept(listener: TcpListener, player: Arc<ScriptPlayer>) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        // A connection that was closed early, or a full table of connections, does not end the server.
        let Ok((socket, _)) = listener.accept().await else {
            sleep(BEFORE_CUT).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let player = player.clone();
        let service = service_fn(move |request| respond(player.clone(), request));
        // Errors are expected when a stream is cut or a client disconnects.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

type Body = UnsyncBoxBody<Bytes, Cut>;

/// Cuts the connection.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script cuts the stream here")
    }
}

impl std::error::Error for Cut {}

async fn respond(
    player: Arc<ScriptPlayer>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let request = Request { method: head.method, path: head.uri.path().into(), headers: head.headers, body };
    if request.method == Method::GET && request.path == REQUESTS {
        return Ok(whole(StatusCode::OK, Vec::new(), &json!(player.requests())));
    }
    let Answer { delay, content } = player.answer(&request);
    if !delay.is_zero() {
        sleep(delay).await;
    }
    Ok(match content {
        Content::Stream { wire, pieces } => stream_of(wire, pieces),
        Content::Problem(ErrorResponse { status, headers, body }) => whole(status, headers, &body),
        Content::NoSuchPath => {
            whole(StatusCode::NOT_FOUND, Vec::new(), &json!({"error": "no provider has this path"}))
        }
        Content::Silence => std::future::pending().await,
    })
}

fn whole(status: StatusCode, headers: Vec<(&'static str, String)>, body: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = ("content-type", "application/json".to_owned());
    for (name, value) in headers.into_iter().chain([json]) {
        if let Ok(value) = value.parse() {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn stream_of(wire: Wire, pieces: Vec<Piece>) -> Response<Body> {
    let frames = stream::unfold(pieces.into_iter(), |mut rest| async move {
        loop {
            match rest.next()? {
                Piece::Bytes(bytes) => return Some((Ok(Frame::data(bytes)), rest)),
                Piece::Wait(pause) => sleep(pause).await,
                Piece::Cut => {
                    sleep(BEFORE_CUT).await;
                    return Some((Err(Cut), rest));
                }
            }
        }
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    for (name, value) in wire.stream_headers() {
        response.headers_mut().insert(*name, hyper::header::HeaderValue::from_static(value));
    }
    response
}
