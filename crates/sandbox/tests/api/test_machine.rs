//! A machine in a temporary folder, with its owner and a guest, over a real port where a socket is needed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, Method, Request, StatusCode};
use hypervisor::assets::{Asset, Assets};
use hypervisor::identity::{ClientInfo, IdentityStore};
use hypervisor::rate_limits::RateLimits;
use hypervisor::server::ServerConfig;
use sandbox::machine::{Machine, MachineConfig};
use sandbox::open_computer::OpenComputer;
use serde_json::{Value, json};
use shared_types::wire::{NewToken, TokenScope};
use shared_types::{Timestamp, UserId};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tower::ServiceExt;

pub(crate) const DAY: i64 = 24 * 60 * 60 * 1000;
const START: i64 = 1_800_000_000_000;

struct NoAssets;

impl Assets for NoAssets {
    fn get(&self, _: &str) -> Option<Asset> {
        None
    }
}

pub(crate) struct TestMachine {
    pub(crate) identity: IdentityStore,
    pub(crate) port: u16,
    router: Router,
    time: Arc<AtomicI64>,
    stop: oneshot::Sender<()>,
    serving: tokio::task::JoinHandle<()>,
    folder: TempDir,
}

/// The credential of a request.
#[derive(Debug, Clone)]
pub(crate) enum TestCredential {
    None,
    Cookie(String),
    Token(String),
}

pub(crate) fn owner() -> UserId {
    UserId::parse("ada").unwrap()
}

fn caller() -> ClientInfo {
    ClientInfo { address: "192.0.2.7".into(), browser: "test".into() }
}

impl TestMachine {
    pub(crate) async fn new() -> Self {
        Self::with(|_| ()).await
    }

    pub(crate) async fn with(configure: impl FnOnce(&mut MachineConfig)) -> Self {
        Self::build(configure).await.0
    }

    /// With the owner's desk, which is then never closed for want of use.
    pub(crate) async fn with_desk() -> (Self, OpenComputer) {
        Self::build(|_| ()).await
    }

    /// Stops the server, and starts it again over the same data.
    pub(crate) async fn restarted(self) -> Self {
        let Self { stop, serving, folder, router, identity, .. } = self;
        drop((stop, router, identity));
        serving.await.unwrap();
        Self::build_in(folder, |_| ()).await.0
    }

    async fn build(configure: impl FnOnce(&mut MachineConfig)) -> (Self, OpenComputer) {
        Self::build_in(tempfile::tempdir().unwrap(), configure).await
    }

    async fn build_in(folder: TempDir, configure: impl FnOnce(&mut MachineConfig)) -> (Self, OpenComputer) {
        isolation::set_launcher(env!("CARGO_BIN_EXE_sandbox"));
        let time = Arc::new(AtomicI64::new(START));
        let same = Arc::clone(&time);
        let clock = Arc::new(move || Timestamp::from_millis(same.load(Ordering::Relaxed)));
        let mut config = MachineConfig::new(ServerConfig::local(0, folder.path().to_owned()));
        config.server.rates = RateLimits::unlimited();
        configure(&mut config);
        let machine = Machine::start(&config, clock.clone(), &owner(), "Ada", Arc::new(NoAssets), "test")
            .await
            .unwrap();
        let (port, router) = (machine.port(), machine.router());
        let open_computer = machine.owner_computer().await.unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(async {
            let _ = machine
                .serve(async {
                    let _ = stopped.await;
                })
                .await;
        });
        let identity = IdentityStore::open(folder.path(), clock).unwrap();
        (Self { identity, port, router, time, stop, serving, folder }, open_computer)
    }

    pub(crate) fn wait(&self, millis: i64) {
        self.time.fetch_add(millis, Ordering::Relaxed);
    }

    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        self.folder.path().join("users/ada/workspace")
    }

    pub(crate) fn data(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn cookie_of(&self, user: &UserId) -> TestCredential {
        let link = self.identity.make_link(user).unwrap();
        let session = self.identity.redeem_link(&link.reveal(), &caller()).unwrap();
        TestCredential::Cookie(format!("choir_session_{}={}", self.port, session.secret.reveal()))
    }

    pub(crate) fn owners(&self) -> TestCredential {
        self.cookie_of(&owner())
    }

    pub(crate) fn token_of(&self, user: &UserId, scopes: &[TokenScope]) -> TestCredential {
        let wish = NewToken { name: "script".into(), scopes: scopes.to_vec(), days: Some(3) };
        TestCredential::Token(self.identity.make_token(user, &wish, &caller()).unwrap().secret.unwrap())
    }

    pub(crate) fn guest(&self) -> UserId {
        let invitation = self.identity.invite(&owner(), "Grace", &caller()).unwrap();
        self.identity.accept(&invitation.secret.reveal(), &caller()).unwrap().user.id
    }

    pub(crate) async fn send(
        &self,
        pass: &TestCredential,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> TestResponse {
        self.send_under(None, pass, method, path, body).await
    }

    /// The same under the id of a request.
    pub(crate) async fn send_under(
        &self,
        command: Option<&str>,
        pass: &TestCredential,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> TestResponse {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", format!("localhost:{}", self.port))
            .header("origin", format!("http://localhost:{}", self.port))
            .extension(ConnectInfo(std::net::SocketAddr::from(([127, 0, 0, 1], 5000))));
        if let Some(command) = command {
            request = request.header("choir-command", command);
        }
        match pass {
            TestCredential::None => {}
            TestCredential::Cookie(cookie) => request = request.header("cookie", cookie),
            TestCredential::Token(token) => {
                request = request.header("authorization", format!("Bearer {token}"))
            }
        }
        let bytes = match body {
            RequestBody::Empty => Vec::new(),
            RequestBody::Json(value) => {
                request = request.header("content-type", "application/json");
                value.to_string().into_bytes()
            }
            RequestBody::Bytes(kind, bytes) => {
                request = request.header("content-type", kind);
                bytes
            }
        };
        self.answer(request.body(Body::from(bytes)).unwrap()).await
    }

    /// The same with another header.
    pub(crate) async fn send_with(
        &self,
        pass: &TestCredential,
        path: &str,
        name: &str,
        value: &str,
    ) -> TestResponse {
        let TestCredential::Cookie(cookie) = pass else { panic!("this is for browsers") };
        let request = Request::builder()
            .uri(path)
            .header("host", format!("localhost:{}", self.port))
            .header("cookie", cookie)
            .header(name, value)
            .extension(ConnectInfo(std::net::SocketAddr::from(([127, 0, 0, 1], 5000))));
        self.answer(request.body(Body::empty()).unwrap()).await
    }

    async fn answer(&self, request: Request<Body>) -> TestResponse {
        let (parts, body) = self.router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = to_bytes(body, 1 << 26).await.unwrap().to_vec();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        TestResponse { status: parts.status, headers: parts.headers, bytes, json }
    }

    /// As the owner, in a browser.
    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(&self.owners(), Method::GET, path, RequestBody::Empty).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.send(&self.owners(), Method::POST, path, RequestBody::Json(body)).await
    }

    pub(crate) async fn put(&self, path: &str, bytes: &[u8]) -> TestResponse {
        let sent = RequestBody::Bytes("application/octet-stream", bytes.to_vec());
        self.send(&self.owners(), Method::PUT, path, sent).await
    }

    pub(crate) async fn write(&self, path: &str, text: &str) -> TestResponse {
        let written = self.put(&format!("/api/v1/content?path={path}"), text.as_bytes()).await;
        assert_eq!(written.status, StatusCode::OK, "{written:?}");
        written
    }

    pub(crate) async fn head(&self) -> u64 {
        self.get("/api/v1/state").await.json["seq"].as_u64().unwrap()
    }
}

/// The body of a request.
#[derive(Debug, Clone)]
pub(crate) enum RequestBody {
    Empty,
    Json(Value),
    Bytes(&'static str, Vec<u8>),
}

#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    pub(crate) json: Value,
}

impl TestResponse {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn code(&self) -> &str {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.json["status"], self.status.as_u16());
        self.json["code"].as_str().unwrap()
    }
}

pub(crate) fn nothing() -> Value {
    json!({})
}
