//! A whole server in a temporary folder, called without a network, with helpers to build requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::ConnectInfo;
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, ORIGIN, SET_COOKIE};
use axum::http::{Extensions, HeaderMap, Method, Request, StatusCode};
use axum::response::IntoResponse;
use axum::routing::put;
use axum::{Extension, Router};
use hypervisor::access::{Access, ExtensionLoader, Route, build_router};
use hypervisor::assets::{Asset, Assets};
use hypervisor::identity::{ClientInfo, IdentityStore};
use hypervisor::pages::Pages;
use hypervisor::rate_limits::RateLimits;
use hypervisor::server_state::ServerState;
use hypervisor::site::{Site, Transport};
use hypervisor::vault::{MasterKeySource, Vault};
use hypervisor::{auth, pages};
use serde_json::{Value, json};
use shared_types::wire::{NewToken, TokenScope};
use shared_types::{Timestamp, UserId};
use tempfile::TempDir;
use tower::ServiceExt;

pub(crate) const PORT: u16 = 8080;
pub(crate) const OWN_ORIGIN: &str = "http://localhost:8080";
pub(crate) const START: i64 = 1_800_000_000_000;
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const DAY: i64 = 24 * 60 * MINUTE;

/// The request extension of these tests: the user whose computer it stands for.
#[derive(Clone)]
struct Computer(UserId);

struct Bundle;

impl Assets for Bundle {
    fn get(&self, path: &str) -> Option<Asset> {
        let (bytes, brotli, mime, immutable) = match path {
            "index.html" => (&b"<style nonce=\"{{nonce}}\"></style>"[..], None, "text/html", false),
            "assets/desk-1a2b.js" => (&b"let desk"[..], Some(&b"squeezed"[..]), "text/javascript", true),
            _ => return None,
        };
        Some(Asset { bytes: bytes.into(), brotli: brotli.map(Into::into), mime, immutable })
    }
}

pub(crate) struct TestServer {
    pub(crate) folder: TempDir,
    pub(crate) identity: IdentityStore,
    pub(crate) state: Arc<ServerState>,
    router: Router,
    time: Arc<AtomicI64>,
}

pub(crate) fn owner() -> UserId {
    UserId::owner()
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with_site(None, &[], &[])
    }

    pub(crate) fn with_site(public: Option<&str>, cors: &[&str], proxies: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let time = Arc::new(AtomicI64::new(START));
        let clock = {
            let time = Arc::clone(&time);
            Arc::new(move || Timestamp::from_millis(time.load(Ordering::Relaxed)))
        };
        let identity = IdentityStore::open(folder.path(), clock).unwrap();
        identity.ensure_owner(&owner(), "Ada").unwrap();
        let cors: Vec<String> = cors.iter().map(|origin| (*origin).to_owned()).collect();
        let site = Site::new(PORT, Transport::Plain, public.map(|url| url.parse().unwrap()), &cors).unwrap();
        let proxies = proxies.iter().map(|network| network.parse().unwrap()).collect();
        let vault = Vault::open(identity.clone(), MasterKeySource::Folder(folder.path().to_owned()));
        let state = ServerState::new(identity.clone(), vault, site, RateLimits::default(), proxies).unwrap();
        let router = router(Arc::clone(&state));
        Self { folder, identity, state, router, time }
    }

    pub(crate) fn wait(&self, millis: i64) {
        self.time.fetch_add(millis, Ordering::Relaxed);
    }

    /// The cookie of a new session of a user.
    pub(crate) fn cookie_of(&self, user: &UserId) -> String {
        let link = self.identity.make_link(user).unwrap();
        let session = self.identity.redeem_link(&link.reveal(), &client()).unwrap();
        format!("{}={}", self.state.site.cookie(), session.secret.reveal())
    }

    /// A second user.
    pub(crate) fn guest(&self) -> UserId {
        let invitation = self.identity.invite(&owner(), "Grace Hopper", &client()).unwrap();
        self.identity.accept(&invitation.secret.reveal(), &client()).unwrap().user.id
    }

    pub(crate) fn token_of(&self, user: &UserId, scopes: &[TokenScope]) -> String {
        let new = NewToken { name: "script".into(), scopes: scopes.to_vec(), days: Some(30) };
        self.identity.make_token(user, &new, &client()).unwrap().secret.unwrap()
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, 1 << 24).await.unwrap();
        let json = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
        TestResponse { status: parts.status, headers: parts.headers, bytes: bytes.to_vec(), json }
    }

    pub(crate) fn everything_on_disk(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        files.flat_map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
    }
}

pub(crate) fn client() -> ClientInfo {
    ClientInfo { address: "192.0.2.7".into(), browser: "test".into() }
}

fn router(state: Arc<ServerState>) -> Router {
    let own_user_id =
        |Extension(Computer(user)): Extension<Computer>| async move { user.to_string().into_response() };
    let mut routes = auth::routes();
    routes.push(Route::get("/api/v1/mine", Access::SignedIn(TokenScope::Read), "Own user id", own_user_id));
    routes.push(Route::post("/api/v1/mine", Access::SignedIn(TokenScope::Write), "Own user id", own_user_id));
    let length = |body: Bytes| async move { body.len().to_string() };
    let bytes = Route::new(
        Method::PUT,
        "/api/v1/bytes",
        Access::SignedIn(TokenScope::Write),
        "Body length",
        own_user_id,
    );
    routes.push(Route { handler: put(length), ..bytes }.accepts_file());
    routes.extend(pages::routes(Pages {
        assets: Arc::new(Bundle),
        version: "1.2.3",
        ready: Arc::new(|| Ok(())),
        metrics: Arc::new(|text| text.push_str("choir_more 1\n")),
    }));
    let load_extensions: ExtensionLoader = Arc::new(|principal| {
        let mut attached = Extensions::new();
        attached.insert(Computer(principal.user));
        Box::pin(async { Ok(attached) })
    });
    build_router(routes, state, load_extensions).unwrap()
}

/// A response with its complete body.
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

    /// The error code. Fails unless the response is `application/problem+json`.
    pub(crate) fn code(&self) -> &str {
        assert_eq!(self.header("content-type"), "application/problem+json", "{self:?}");
        assert_eq!(self.json["status"], self.status.as_u16());
        assert!(!self.json["detail"].as_str().unwrap().is_empty());
        self.json["code"].as_str().unwrap()
    }

    pub(crate) fn cookie(&self) -> String {
        let line = self.headers.get(SET_COOKIE).unwrap_or_else(|| panic!("no cookie: {self:?}"));
        line.to_str().unwrap().split(';').next().unwrap().to_owned()
    }
}

/// A builder for a request, by default as a browser sends it from our own page.
pub(crate) struct TestRequest {
    request: axum::http::request::Builder,
    body: Body,
}

pub(crate) fn request(method: Method, path: &str) -> TestRequest {
    let from: SocketAddr = "127.0.0.1:5000".parse().unwrap();
    let request = Request::builder().method(method).uri(path).header(HOST, "localhost:8080");
    TestRequest { request: request.extension(ConnectInfo(from)), body: Body::empty() }
}

pub(crate) fn get(path: &str) -> TestRequest {
    request(Method::GET, path)
}

pub(crate) fn post(path: &str, body: &Value) -> TestRequest {
    request(Method::POST, path).with(ORIGIN.as_str(), OWN_ORIGIN).json(body)
}

impl TestRequest {
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        if let Some(headers) = self.request.headers_mut() {
            let name: axum::http::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.request.headers_mut().unwrap().remove(name);
        self
    }

    pub(crate) fn cookie(self, cookie: &str) -> Self {
        self.with(COOKIE.as_str(), cookie)
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.with(AUTHORIZATION.as_str(), &format!("Bearer {token}"))
    }

    pub(crate) fn from(mut self, address: &str) -> Self {
        let from = SocketAddr::new(address.parse().unwrap(), 5000);
        self.request = self.request.extension(ConnectInfo(from));
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.with(CONTENT_TYPE.as_str(), "application/json").body(body.to_string())
    }

    pub(crate) fn body(mut self, body: impl Into<Body>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) async fn send(self, server: &TestServer) -> TestResponse {
        server.send(self.request.body(self.body).unwrap()).await
    }
}

/// The body of `POST /auth/link`.
pub(crate) fn link(secret: &str) -> Value {
    json!({ "secret": secret })
}
