//! Building a router, and what an access rule covers.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower::ServiceExt;

use super::*;
use crate::rate_limits::RateLimits;
use crate::site::{Site, Transport};
use crate::vault::{MasterKeySource, Vault};

fn server_state(folder: &std::path::Path) -> Arc<ServerState> {
    let identity = IdentityStore::open(folder, crate::server::clock()).unwrap();
    let site = Site::new(8080, Transport::Plain, None, &[]).unwrap();
    let vault = Vault::open(identity.clone(), MasterKeySource::Folder(folder.to_owned()));
    ServerState::new(identity, vault, site, RateLimits::default(), Vec::new()).unwrap()
}

fn no_extensions() -> ExtensionLoader {
    Arc::new(|_| Box::pin(async { Ok(Extensions::new()) }))
}

#[test]
fn a_route_is_declared_once() {
    let folder = tempfile::tempdir().unwrap();
    let route = || Route::get("/a", Access::Owner, "A", async || "a");
    let built = build_router(vec![route(), route()], server_state(folder.path()), no_extensions());
    assert!(matches!(built, Err(BuildRouterError::DuplicateRoute { path: "/a", .. })));
}

#[tokio::test]
async fn a_handler_answers_only_to_the_method_of_its_route() {
    let folder = tempfile::tempdir().unwrap();
    let handler = get(async || "read").post(async || "written");
    let route = Route { handler, ..Route::get("/a", Access::Anyone, "A", async || "a") };
    let router = build_router(vec![route], server_state(folder.path()), no_extensions()).unwrap();
    for (method, expected) in [
        (Method::GET, StatusCode::OK),
        (Method::HEAD, StatusCode::OK),
        (Method::POST, StatusCode::METHOD_NOT_ALLOWED),
        (Method::DELETE, StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let request =
            axum::http::Request::builder().method(&method).uri("/a").header("host", "localhost:8080");
        let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(response.status(), expected, "{method}");
    }
}

#[test]
fn a_token_never_reaches_owner_or_account_routes() {
    let user = User { id: UserId::owner(), name: "Ada".into(), owner: true, handle: [0; 16] };
    let all = vec![TokenScope::Read, TokenScope::Write, TokenScope::Terminal, TokenScope::Account];
    let token = Principal::new(user.clone(), Credential::Token { id: "t".into(), scopes: all });
    let session = Principal::new(user, Credential::Session { id: "s".into() });
    for (access, allowed_for_token) in [
        (Access::Anyone, true),
        (Access::SignedIn(TokenScope::Read), true),
        (Access::SignedIn(TokenScope::Account), false),
        (Access::Owner, false),
    ] {
        assert_eq!(token.authorize(access).is_ok(), allowed_for_token, "{access:?}");
        assert!(session.authorize(access).is_ok(), "{access:?}");
    }
}

#[tokio::test]
async fn a_connection_learns_at_once_that_its_session_was_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let identity = server_state(folder.path()).identity.clone();
    let owner = identity.ensure_owner(&UserId::owner(), "Ada").unwrap();
    let client = crate::identity::ClientInfo::default();
    let link = identity.make_link(&owner.id).unwrap().reveal();
    let session = identity.redeem_link(&link, &client).unwrap();
    let principal = Principal::new(owner.clone(), Credential::Session { id: session.id.clone() });
    let connection = tokio::spawn({
        let identity = identity.clone();
        async move { principal.wait_until_invalid(&identity).await }
    });
    tokio::task::yield_now().await;
    assert!(!connection.is_finished());
    identity.revoke_session(&owner.id, &session.id, &client).unwrap();
    tokio::time::timeout(Duration::from_secs(10), connection).await.unwrap().unwrap();
}

async fn body_length(body: Body) -> Response {
    match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes.len().to_string().into_response(),
        Err(_) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
    }
}

#[tokio::test]
async fn a_streamed_body_is_limited_too() {
    let folder = tempfile::tempdir().unwrap();
    let routes = vec![
        Route::post("/small", Access::Anyone, "A", body_length),
        Route::post("/file", Access::Anyone, "A", body_length).accepts_file(),
    ];
    let router = build_router(routes, server_state(folder.path()), no_extensions()).unwrap();
    for (path, expected) in [("/small", StatusCode::PAYLOAD_TOO_LARGE), ("/file", StatusCode::OK)] {
        let request =
            axum::http::Request::builder().method("POST").uri(path).header("host", "localhost:8080");
        let request = request.body(Body::from(vec![0; MAX_BODY_BYTES + 1])).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), expected, "{path}");
    }
}
