//! What makes a router, and what a statement covers.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower::ServiceExt;

use super::*;
use crate::server::rates::RateLimits;
use crate::server::site::{Site, Transport};
use crate::vault::{KeySource, Vault};

fn front(folder: &std::path::Path) -> Arc<Front> {
    let identity = Identity::open(folder, crate::server::clock()).unwrap();
    let site = Site::new(8080, Transport::Plain, None, &[]).unwrap();
    let vault = Vault::open(identity.clone(), KeySource::Folder(folder.to_owned()));
    Front::new(identity, vault, site, RateLimits::default(), Vec::new()).unwrap()
}

fn nothing() -> Attach {
    Arc::new(|_| Box::pin(async { Ok(Extensions::new()) }))
}

#[test]
fn a_route_is_stated_once() {
    let folder = tempfile::tempdir().unwrap();
    let route = || Route::get("/a", Access::Owner, "A", async || "a");
    let twice = assemble(vec![route(), route()], front(folder.path()), nothing());
    assert!(matches!(twice, Err(AssembleError::Twice { path: "/a", .. })));
}

#[tokio::test]
async fn a_handler_answers_only_to_the_method_of_its_statement() {
    let folder = tempfile::tempdir().unwrap();
    let handler = get(async || "read").post(async || "written");
    let route = Route { handler, ..Route::get("/a", Access::Anyone, "A", async || "a") };
    let router = assemble(vec![route], front(folder.path()), nothing()).unwrap();
    for (method, expected) in [
        (Method::GET, StatusCode::OK),
        (Method::HEAD, StatusCode::OK),
        (Method::POST, StatusCode::METHOD_NOT_ALLOWED),
        (Method::DELETE, StatusCode::METHOD_NOT_ALLOWED),
    ] {
        let request =
            axum::http::Request::builder().method(&method).uri("/a").header("host", "localhost:8080");
        let answer = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), expected, "{method}");
    }
}

#[test]
fn a_token_never_does_what_is_the_owners_or_the_accounts() {
    let user = User { id: UserId::owner(), name: "Ada".into(), owner: true, handle: [0; 16] };
    let all = vec![Scope::Read, Scope::Write, Scope::Terminal, Scope::Account];
    let token = Principal::new(user.clone(), How::Token { id: "t".into(), scopes: all });
    let session = Principal::new(user, How::Session { id: "s".into() });
    for (access, by_token) in [
        (Access::Anyone, true),
        (Access::Signed(Scope::Read), true),
        (Access::Signed(Scope::Account), false),
        (Access::Owner, false),
    ] {
        assert_eq!(token.check(access).is_ok(), by_token, "{access:?}");
        assert!(session.check(access).is_ok(), "{access:?}");
    }
}

#[tokio::test]
async fn a_connection_learns_at_once_that_its_session_was_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let identity = front(folder.path()).identity.clone();
    let owner = identity.ensure_owner(&UserId::owner(), "Ada").unwrap();
    let caller = crate::identity::Caller::default();
    let link = identity.make_link(&owner.id).unwrap().reveal();
    let session = identity.redeem_link(&link, &caller).unwrap();
    let principal = Principal::new(owner.clone(), How::Session { id: session.id.clone() });
    let connection = tokio::spawn({
        let identity = identity.clone();
        async move { principal.ended(&identity).await }
    });
    tokio::task::yield_now().await;
    assert!(!connection.is_finished());
    identity.revoke_session(&owner.id, &session.id, &caller).unwrap();
    tokio::time::timeout(Duration::from_secs(10), connection).await.unwrap().unwrap();
}

async fn length(body: Body) -> Response {
    match axum::body::to_bytes(body, usize::MAX).await {
        Ok(bytes) => bytes.len().to_string().into_response(),
        Err(_) => StatusCode::PAYLOAD_TOO_LARGE.into_response(),
    }
}

#[tokio::test]
async fn a_body_that_is_read_as_it_comes_has_a_limit_too() {
    let folder = tempfile::tempdir().unwrap();
    let routes = vec![
        Route::post("/small", Access::Anyone, "A", length),
        Route::post("/file", Access::Anyone, "A", length).with_file(),
    ];
    let router = assemble(routes, front(folder.path()), nothing()).unwrap();
    for (path, expected) in [("/small", StatusCode::PAYLOAD_TOO_LARGE), ("/file", StatusCode::OK)] {
        let request =
            axum::http::Request::builder().method("POST").uri(path).header("host", "localhost:8080");
        let request = request.body(Body::from(vec![0; BODY + 1])).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), expected, "{path}");
    }
}
