//! Passkeys, with an authenticator in software.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::authenticator::Authenticator;
use crate::test_server::{MINUTE, TestServer, get, owner, post, request};

const START: &str = "/api/v1/auth/passkeys/register/start";
const FINISH: &str = "/api/v1/auth/passkeys/register/finish";
const LOGIN_START: &str = "/api/v1/auth/passkeys/login/start";
const LOGIN_FINISH: &str = "/api/v1/auth/passkeys/login/finish";

/// Adds a passkey to an account, as its settings page would.
pub(crate) async fn register(server: &TestServer, cookie: &str, key: &mut Authenticator) -> Value {
    let begun = post(START, &json!({ "name": "my phone" })).cookie(cookie).send(server).await;
    assert_eq!(begun.status, StatusCode::OK, "{begun:?}");
    let credential = key.create(&begun.json["options"]);
    let body = json!({ "ceremony": begun.json["ceremony"], "credential": credential });
    let added = post(FINISH, &body).cookie(cookie).send(server).await;
    assert_eq!(added.status, StatusCode::OK, "{added:?}");
    added.json
}

async fn offer(server: &TestServer, key: &mut Authenticator) -> Value {
    let begun = post(LOGIN_START, &json!({})).send(server).await;
    assert_eq!(begun.status, StatusCode::OK, "{begun:?}");
    assert!(begun.json["options"]["publicKey"]["allowCredentials"].as_array().is_none_or(Vec::is_empty));
    assert!(begun.json["options"].get("mediation").is_none(), "a button asks, not a text field");
    json!({ "ceremony": begun.json["ceremony"], "credential": key.get(&begun.json["options"]) })
}

#[tokio::test]
async fn a_passkey_signs_in_without_a_name() {
    let server = TestServer::new();
    let mut key = Authenticator::new(7);
    let passkey = register(&server, &server.cookie_of(&owner()), &mut key).await;
    for _ in 0..2 {
        let body = offer(&server, &mut key).await;
        let entered = post(LOGIN_FINISH, &body).send(&server).await;
        assert_eq!(entered.status, StatusCode::NO_CONTENT, "{entered:?}");
        let mine = get("/api/v1/mine").cookie(&entered.cookie()).send(&server).await;
        assert_eq!(mine.bytes, b"owner");
        let again = post(LOGIN_FINISH, &body).send(&server).await;
        assert_eq!(again.code(), "refused", "a ceremony is finished once");
    }
    assert_eq!(passkey["name"], "my phone");
    assert!(server.identity.passkeys(&owner()).unwrap()[0].used.is_some());
}

#[tokio::test]
async fn a_passkey_that_was_removed_or_copied_or_comes_late_is_refused() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let mut key = Authenticator::new(7);
    let passkey = register(&server, &cookie, &mut key).await;

    let late = offer(&server, &mut key).await;
    server.wait(5 * MINUTE);
    assert_eq!(post(LOGIN_FINISH, &late).send(&server).await.code(), "refused");

    let mut elsewhere = Authenticator::new(7);
    elsewhere.origin = "http://evil.example".into();
    let phished = offer(&server, &mut elsewhere).await;
    assert_eq!(post(LOGIN_FINISH, &phished).send(&server).await.code(), "refused");

    let mut stranger = Authenticator::new(9);
    let strange = offer(&server, &mut stranger).await;
    assert_eq!(post(LOGIN_FINISH, &strange).send(&server).await.code(), "refused");

    let path = format!("/api/v1/auth/passkeys/{}", passkey["id"].as_str().unwrap());
    let removed = request(Method::DELETE, &path)
        .with("origin", crate::test_server::OWN_ORIGIN)
        .cookie(&cookie)
        .send(&server);
    assert_eq!(removed.await.status, StatusCode::NO_CONTENT);
    server.wait(MINUTE);
    let gone = offer(&server, &mut key).await;
    assert_eq!(post(LOGIN_FINISH, &gone).send(&server).await.code(), "refused");
}

#[tokio::test]
async fn a_passkey_is_added_only_by_the_session_that_began() {
    let server = TestServer::new();
    let (cookie, guest) = (server.cookie_of(&owner()), server.cookie_of(&server.guest()));
    let mut key = Authenticator::new(7);
    let begun = post(START, &json!({ "name": "mine" })).cookie(&cookie).send(&server).await;
    let body =
        json!({ "ceremony": begun.json["ceremony"], "credential": key.create(&begun.json["options"]) });
    for other in [&guest, &server.cookie_of(&owner())] {
        assert_eq!(post(FINISH, &body).cookie(other).send(&server).await.code(), "not_found");
    }
    assert_eq!(post(FINISH, &body).send(&server).await.code(), "signed_out");
    assert!(server.identity.passkeys(&owner()).unwrap().is_empty());
}

#[tokio::test]
async fn a_passkey_belongs_to_one_account() {
    let server = TestServer::new();
    let (cookie, guest) = (server.cookie_of(&owner()), server.cookie_of(&server.guest()));
    register(&server, &cookie, &mut Authenticator::new(7)).await;
    let begun = post(START, &json!({ "name": "mine too" })).cookie(&guest).send(&server).await;
    let credential = Authenticator::new(7).create(&begun.json["options"]);
    let body = json!({ "ceremony": begun.json["ceremony"], "credential": credential });
    assert_eq!(post(FINISH, &body).cookie(&guest).send(&server).await.code(), "known_passkey");
}
