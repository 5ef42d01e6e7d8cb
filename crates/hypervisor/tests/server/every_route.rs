//! Every route of identity, called by everyone: nobody gets more than the table says.

use std::collections::BTreeSet;

use axum::http::Method;
use hypervisor::vault::{KeyScope, Provider, Secret};
use serde_json::{Value, json};
use shared_types::wire::Scope;

use crate::authenticator::Authenticator;
use crate::house::{Answer, DAY, HERE, House, ask, caller, get, owner};
use crate::passkeys::register;

/// Those who call.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Who {
    Anonymous,
    OtherUser,
    Expired,
    Token,
    Right,
}

const EVERYONE: [Who; 5] = [Who::Anonymous, Who::OtherUser, Who::Expired, Who::Token, Who::Right];

/// A route, a body that would work, and what each of [`EVERYONE`] is told.
struct Row(Method, &'static str, Value, [u16; 5]);

/// Whatever stands in `<…>` is replaced by the owner's own.
fn table() -> Vec<Row> {
    let (get, post, delete) = (Method::GET, Method::POST, Method::DELETE);
    let entering = [204; 5];
    let owners = [401, 403, 401, 403, 200];
    let own = [401, 200, 401, 403, 200];
    // Somebody else's session, token or passkey is not there for the other user.
    let named = [401, 404, 401, 403, 204];
    let none = Value::Null;
    let row = |method: &Method, path, body: &Value, told| Row(method.clone(), path, body.clone(), told);
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
        // Nothing was begun: even the right caller is told so.
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
async fn every_route_tells_everyone_what_the_table_says() {
    let mut wrong = Vec::new();
    for Row(method, path, body, told) in table() {
        for (who, expected) in EVERYONE.into_iter().zip(told) {
            let answer = call(who, &method, path, &body).await;
            if answer.status.as_u16() != expected {
                wrong.push(format!("{method} {path} by {who:?}: {} for {expected}", answer.status));
            } else if expected >= 400 {
                let code = answer.code();
                let fits = match (who, expected) {
                    (Who::Token, 403) => code == "wrong_scope",
                    (_, 403) => code == "forbidden",
                    (Who::Anonymous | Who::Expired, 401) => matches!(code, "signed_out" | "refused"),
                    _ => matches!(code, "not_found" | "refused"),
                };
                assert!(fits, "{method} {path} by {who:?}: {code}");
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Makes a house with everything in it, and one call.
async fn call(who: Who, method: &Method, path: &str, body: &Value) -> Answer {
    let house = House::new();
    let cookie = match who {
        Who::OtherUser => Some(house.cookie_of(&house.guest())),
        Who::Expired => Some(house.cookie_of(&owner())),
        Who::Right => Some(house.cookie_of(&owner())),
        Who::Anonymous | Who::Token => None,
    };
    if who == Who::Expired {
        house.wait(14 * DAY);
    }
    let (path, body) = fill(&house, path, &body.to_string()).await;
    let mut asked = ask(method.clone(), &path);
    if body != "null" {
        asked = asked.with("content-type", "application/json").body(body);
    }
    if method != Method::GET {
        asked = asked.with("origin", HERE);
    }
    if let Some(cookie) = &cookie {
        asked = asked.cookie(cookie);
    }
    if who == Who::Token {
        let everything = [Scope::Read, Scope::Write, Scope::Terminal];
        asked = asked.token(&house.token_of(&owner(), &everything));
    }
    asked.send(&house).await
}

/// Replaces what stands in `<…>`.
async fn fill(house: &House, path: &str, body: &str) -> (String, String) {
    let (mut path, mut body) = (path.to_owned(), body.to_owned());
    if body.contains("<link>") {
        body = body.replace("<link>", &house.identity.make_link(&owner()).unwrap().reveal());
    }
    if body.contains("<invitation secret>") {
        let invitation = house.identity.invite(&owner(), "Lin", &caller()).unwrap();
        body = body.replace("<invitation secret>", &invitation.secret.reveal());
    }
    if body.contains("<code>") {
        let codes = house.identity.make_recovery_codes(&owner(), &caller()).unwrap();
        body = body.replace("<code>", &codes[3]);
    }
    if path.contains("<session>") {
        house.cookie_of(&owner());
        path = path.replace("<session>", &house.identity.sessions(&owner(), None).unwrap()[0].id);
    }
    if path.contains("<token>") {
        house.token_of(&owner(), &[Scope::Read]);
        path = path.replace("<token>", &house.identity.tokens(&owner()).unwrap()[0].id);
    }
    if path.contains("<passkey>") {
        let passkey = register(house, &house.cookie_of(&owner()), &mut Authenticator::new(5)).await;
        path = path.replace("<passkey>", passkey["id"].as_str().unwrap());
    }
    if path.contains("<provider>") {
        let (user, zai) = (house.identity.user(&owner()).unwrap().unwrap(), Provider::parse("zai").unwrap());
        let secret = Secret::new("sk-of-the-owner".into());
        house.front.vault.set(&user, KeyScope::Own, &zai, &secret, &caller()).unwrap();
        path = path.replace("<provider>", "zai");
    }
    if path.contains("<invitation>") {
        let invitation = house.identity.invite(&owner(), "Lin", &caller()).unwrap();
        path = path.replace("<invitation>", &invitation.invitation.id);
    }
    (path, body)
}

#[tokio::test]
async fn a_request_reaches_the_computer_of_its_own_user() {
    let house = House::new();
    let guest = house.guest();
    for user in [&owner(), &guest] {
        let by_cookie = get("/api/v1/mine").cookie(&house.cookie_of(user)).send(&house).await;
        assert_eq!(by_cookie.bytes, user.as_str().as_bytes());
        let by_token = get("/api/v1/mine").token(&house.token_of(user, &[Scope::Read])).send(&house).await;
        assert_eq!(by_token.bytes, user.as_str().as_bytes());
    }
    assert_eq!(guest.as_str(), "grace-hopper");
}

#[tokio::test]
async fn a_token_does_what_its_scopes_say_until_it_ends() {
    let house = House::new();
    let token = house.token_of(&owner(), &[Scope::Write]);
    let write = || ask(Method::POST, "/api/v1/mine").token(&token);
    assert_eq!(write().send(&house).await.status, 200);
    assert_eq!(get("/api/v1/mine").token(&token).send(&house).await.code(), "wrong_scope");
    house.wait(30 * DAY);
    assert_eq!(write().send(&house).await.code(), "signed_out");

    let token = house.token_of(&owner(), &[Scope::Read]);
    let id = house.identity.tokens(&owner()).unwrap()[0].id.clone();
    assert_eq!(get("/api/v1/mine").token(&token).send(&house).await.status, 200);
    house.identity.revoke_token(&owner(), &id, &caller()).unwrap();
    assert_eq!(get("/api/v1/mine").token(&token).send(&house).await.code(), "signed_out");
}
