//! The server: one thread with a runtime of its own, which ends when the handle is dropped, with all its connections.

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
    recorded::Recorded,
    script::Script,
    stage::{Answer, Content, Piece, Stage},
    wire::{Problem, Request, Wire},
};

/// Long enough for what was written before to leave, so that a cut comes after it and not instead of it.
const BEFORE_CUT: Duration = Duration::from_millis(2);

/// Where a test that runs the program reads back what [`Server::requests`] gives to others.
const REQUESTS: &str = "/requests";

/// A model to test against. It serves until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stage: Arc<Stage>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How to serve.
#[derive(Debug, Default)]
pub struct Options {
    /// Played by their objective; see the head of this crate.
    pub scripts: Vec<Script>,
    /// 0 for any that is free.
    pub port: u16,
    /// A random one unless told.
    pub key: Option<String>,
}

impl Server {
    /// Plays one script on a free port.
    ///
    /// # Panics
    /// When this machine lets nobody listen on its loopback; a test has nothing better to do then.
    pub fn start(script: Script) -> Self {
        let started = Options { scripts: vec![script], ..Options::default() }.serve();
        #[expect(
            clippy::panic,
            reason = "the signature that tests want; `Options::serve` is there for the rest"
        )]
        started.unwrap_or_else(|error| panic!("the scripted model cannot start: {error}"))
    }

    /// Where a client of this provider has to be pointed; for OpenAI with the customary `/v1`.
    pub fn url(&self, wire: Wire) -> String {
        format!("http://{}{}", self.address, wire.base())
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The key that every wire wants; for signatures of AWS, the secret that belongs to [`crate::ACCESS_KEY`].
    pub fn key(&self) -> &str {
        self.stage.key()
    }

    /// All requests so far, in the order in which they were answered.
    pub fn requests(&self) -> Vec<Recorded> {
        self.stage.requests()
    }

    pub fn forget_requests(&self) {
        self.stage.forget_requests();
    }

    /// Why requests were refused: a scenario that went well has none.
    pub fn refusals(&self) -> Vec<String> {
        self.requests().iter().filter_map(Recorded::refusal).map(str::to_owned).collect()
    }

    /// Plays this script from now on, and counts faults anew.
    pub fn set_script(&self, script: Script) {
        self.stage.set_scripts(vec![script]);
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Options {
    pub fn serve(self) -> io::Result<Server> {
        let key = self.key.map_or_else(random_key, Ok)?;
        let stage = Arc::new(Stage::new(self.scripts, key));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let shared = stage.clone();
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    // Either way it is over: the handle was dropped, or nobody can be accepted any more.
                    _ = stopped => {}
                    _ = accept(listener, shared) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("scripted-model".into()).spawn(serve)?;
        Ok(Server { address, stage, stop: Some(stop), thread: Some(thread) })
    }
}

fn random_key() -> io::Result<String> {
    let mut bits = [0_u8; 16];
    getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
    let hex: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sk-scripted-{hex}"))
}

async fn accept(listener: TcpListener, stage: Arc<Stage>) -> io::Result<Infallible> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        // A connection that was gone before we took it, or too many of them, is nothing to end for.
        let Ok((socket, _)) = listener.accept().await else {
            sleep(BEFORE_CUT).await;
            continue;
        };
        let _ = socket.set_nodelay(true);
        let stage = stage.clone();
        let service = service_fn(move |request| respond(stage.clone(), request));
        // It ends with an error when a stream is cut or a client goes, and both are meant to happen.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

type Body = UnsyncBoxBody<Bytes, Cut>;

/// The connection breaks here.
#[derive(Debug)]
struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script cuts the stream here")
    }
}

impl std::error::Error for Cut {}

async fn respond(
    stage: Arc<Stage>,
    request: hyper::Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let (head, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let request = Request { method: head.method, path: head.uri.path().into(), headers: head.headers, body };
    if request.method == Method::GET && request.path == REQUESTS {
        return Ok(whole(StatusCode::OK, Vec::new(), &json!(stage.requests())));
    }
    let Answer { delay, content } = stage.answer(&request);
    if !delay.is_zero() {
        sleep(delay).await;
    }
    Ok(match content {
        Content::Stream { wire, pieces } => stream_of(wire, pieces),
        Content::Problem(Problem { status, headers, body }) => whole(status, headers, &body),
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
