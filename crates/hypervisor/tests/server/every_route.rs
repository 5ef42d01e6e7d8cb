//! Every identity route, called by every kind of caller: the table states the expected status of each.

use std::collections::BTreeSet;

use axum::http::Method;
use hypervisor::vault::{KeyScope, ProviderName, ProviderSecret};
use serde_json::{Value, json};
use shared_types::wire::TokenScope;

use crate::authenticator::Authenticator;
use crate::passkeys::register;
use crate::test_server::{DAY, OWN_ORIGIN, TestResponse, TestServer, client, get, owner, request};

/// The kinds of callers.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Caller {
    Anonymous,
    OtherUser,
    Expired,
    Token,
    Authorized,
}

const CALLERS: [Caller; 5] =
    [Caller::Anonymous, Caller::OtherUser, Caller::Expired, Caller::Token, Caller::Authorized];

/// A route, a valid body, and the expected status for each of [`CALLERS`].
struct Row(Method, &'static str, Value, [u16; 5]);

/// Placeholders in `<…>` are replaced by the owner's own ids and secrets.
fn table() -> Vec<Row> {
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    let entering = [204; 5];
    let owners = [401, 403, 401, 403, 200];
    let own = [401, 200, 401, 403, 200];
    // The session, token or passkey of another user counts as not found.
    let named = [401, 404, 401, 403, 204];
    let none = Value::Null;
    let row = |method: &Method, path, body: &Value, expected_statuses| {
        Row(method.clone(), path, body.clone(), expected_statuses)
    };
    let token = json!({ "name": "script", "scopes": ["read"] });
    let finish = json!({ "ceremony": "unknown", "credential": register_finish() });
    let login = json!({ "ceremony": "unknown", "credential": login_finish() });
    vec![
        row(&post, "/api/v1/auth/link", &json!({ "secret": "<link>" }), entering),
        row(&post, "/api/v1/auth/accept", &json!({ "secret": "<invitation secret>" }), entering),
        row(&post, "/api/v1/auth/recover", &json!({ "user": "owner", "code": "<code>" }), entering),
        row(&post, "/api/v1/auth/passkeys/login/start", &json!({}), [200; 5]),
        row(&post, "/api/v1/auth/passkeys/login/finish", &login, [401; 5]),
        row(&post, "/api/v1/auth/logout", &none, [401, 204, 401, 403, 204]),
        row(&get, "/api/v1/auth/sessions", &none, own),
        row(&delete, "/api/v1/auth/sessions/<session>", &none, named),
        row(&get, "/api/v1/auth/passkeys", &none, own),
        row(&delete, "/api/v1/auth/passkeys/<passkey>", &none, named),
        row(&post, "/api/v1/auth/passkeys/register/start", &json!({ "name": "key" }), own),
        // No ceremony was started, so even the authorized caller gets an error.
        row(&post, "/api/v1/auth/passkeys/register/finish", &finish, [401, 404, 401, 403, 404]),
        row(&post, "/api/v1/auth/recovery", &none, own),
        row(&get, "/api/v1/auth/tokens", &none, own),
        row(&post, "/api/v1/auth/tokens", &token, own),
        row(&delete, "/api/v1/auth/tokens/<token>", &none, named),
        row(&get, "/api/v1/auth/audit", &none, own),
        row(&get, "/api/v1/auth/invitations", &none, owners),
        row(&post, "/api/v1/auth/invitations", &json!({ "name": "Lin" }), owners),
        row(&delete, "/api/v1/auth/invitations/<invitation>", &none, [401, 403, 401, 403, 204]),
        row(&get, "/api/v1/keys", &none, own),
        row(&Method::PUT, "/api/v1/keys/<provider>", &json!({ "secret": "sk-1" }), [401, 204, 401, 403, 204]),
        row(&delete, "/api/v1/keys/<provider>", &none, named),
    ]
}

fn register_finish() -> Value {
    let options = json!({ "publicKey": {
        "authenticatorSelection": { "residentKey": "required" }, "user": { "id": "AAAA" }, "challenge": "AAAA",
    } });
    Authenticator::new(3).create(&options)
}

fn login_finish() -> Value {
    Authenticator::new(3).get(&json!({ "publicKey": { "challenge": "AAAA" } }))
}

#[test]
fn the_table_has_every_route() {
    let name = |method: &Method, path: &str| {
        let path = path.replace("{id}", "<>").replace("{provider}", "<>");
        let end = path.find('<').unwrap_or(path.len());
        format!("{method} {}", &path[..end])
    };
    let stated: BTreeSet<_> =
        hypervisor::auth::routes().iter().map(|route| name(&route.method, route.path)).collect();
    let tested: BTreeSet<_> = table().iter().map(|Row(method, path, ..)| name(method, path)).collect();
    assert_eq!(stated, tested);
}

#[tokio::test]
async fn every_route_answers_every_caller_as_the_table_says() {
    let mut wrong = Vec::new();
    for Row(method, path, body, expected_statuses) in table() {
        for (caller, expected) in CALLERS.into_iter().zip(expected_statuses) {
            let answer = call(caller, &method, path, &body).await;
            if answer.status.as_u16() != expected {
                wrong.push(format!("{method} {path} by {caller:?}: {} for {expected}", answer.status));
            } else if expected >= 400 {
                let code = answer.code();
                let fits = match (caller, expected) {
                    (Caller::Token, 403) => code == "wrong_scope",
                    (_, 403) => code == "forbidden",
                    (Caller::Anonymous | Caller::Expired, 401) => matches!(code, "signed_out" | "refused"),
                    _ => matches!(code, "not_found" | "refused"),
                };
                assert!(fits, "{method} {path} by {caller:?}: {code}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Creates a server with all kinds of entries, and sends one request.
async fn call(caller: Caller, method: &Method, path: &str, body: &Value) -> TestResponse {
    let server = TestServer::new();
    let cookie = match caller {
        Caller::OtherUser => Some(server.cookie_of(&server.guest())),
        Caller::Expired => Some(server.cookie_of(&owner())),
        Caller::Authorized => Some(server.cookie_of(&owner())),
        Caller::Anonymous | Caller::Token => None,
    };
    if caller == Caller::Expired {
        server.wait(14 * DAY);
    }
    let (path, body) = fill(&server, path, &body.to_string()).await;
    let mut request = request(method.clone(), &path);
    if body != "null" {
        request = request.with("content-type", "application/json").body(body);
    }
    if method != Method::GET {
        request = request.with("origin", OWN_ORIGIN);
    }
    if let Some(cookie) = &cookie {
        request = request.cookie(cookie);
    }
    if caller == Caller::Token {
        let everything = [TokenScope::Read, TokenScope::Write, TokenScope::Terminal];
        request = request.token(&server.token_of(&owner(), &everything));
    }
    request.send(&server).await
}

/// Replaces the placeholders.
async fn fill(server: &TestServer, path: &str, body: &str) -> (String, String) {
    let (mut path, mut body) = (path.to_owned(), body.to_owned());
    if body.contains("<link>") {
        body = body.replace("<link>", &server.identity.make_link(&owner()).unwrap().reveal());
    }
    if body.contains("<invitation secret>") {
        let invitation = server.identity.invite(&owner(), "Lin", &client()).unwrap();
        body = body.replace("<invitation secret>", &invitation.secret.reveal());
    }
    if body.contains("<code>") {
        let codes = server.identity.make_recovery_codes(&owner(), &client()).unwrap();
        body = body.replace("<code>", &codes[3]);
    }
    if path.contains("<session>") {
        server.cookie_of(&owner());
        path = path.replace("<session>", &server.identity.sessions(&owner(), None).unwrap()[0].id);
    }
    if path.contains("<token>") {
        server.token_of(&owner(), &[TokenScope::Read]);
        path = path.replace("<token>", &server.identity.tokens(&owner()).unwrap()[0].id);
    }
    if path.contains("<passkey>") {
        let passkey = register(server, &server.cookie_of(&owner()), &mut Authenticator::new(5)).await;
        path = path.replace("<passkey>", passkey["id"].as_str().unwrap());
    }
    if path.contains("<provider>") {
        let (user, zai) =
            (server.identity.user(&owner()).unwrap().unwrap(), ProviderName::parse("zai").unwrap());
        let secret = ProviderSecret::new("sk-of-the-owner".into());
        server.state.vault.set(&user, KeyScope::Own, &zai, &secret, &client()).unwrap();
        path = path.replace("<provider>", "zai");
    }
    if path.contains("<invitation>") {
        let invitation = server.identity.invite(&owner(), "Lin", &client()).unwrap();
        path = path.replace("<invitation>", &invitation.invitation.id);
    }
    (path, body)
}

#[tokio::test]
async fn a_request_reaches_the_computer_of_its_own_user() {
    let server = TestServer::new();
    let guest = server.guest();
    for user in [&owner(), &guest] {
        let by_cookie = get("/api/v1/mine").cookie(&server.cookie_of(user)).send(&server).await;
        assert_eq!(by_cookie.bytes, user.as_str().as_bytes());
        let by_token =
            get("/api/v1/mine").token(&server.token_of(user, &[TokenScope::Read])).send(&server).await;
        assert_eq!(by_token.bytes, user.as_str().as_bytes());
    }
    assert_eq!(guest.as_str(), "grace-hopper");
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_until_it_ends() {
    let server = TestServer::new();
    let token = server.token_of(&owner(), &[TokenScope::Write]);
    let write = || request(Method::POST, "/api/v1/mine").token(&token);
    assert_eq!(write().send(&server).await.status, 200);
    assert_eq!(get("/api/v1/mine").token(&token).send(&server).await.code(), "wrong_scope");
    server.wait(30 * DAY);
    assert_eq!(write().send(&server).await.code(), "signed_out");

    let token = server.token_of(&owner(), &[TokenScope::Read]);
    let id = server.identity.tokens(&owner()).unwrap()[0].id.clone();
    assert_eq!(get("/api/v1/mine").token(&token).send(&server).await.status, 200);
    server.identity.revoke_token(&owner(), &id, &client()).unwrap();
    assert_eq!(get("/api/v1/mine").token(&token).send(&server).await.code(), "signed_out");
}
