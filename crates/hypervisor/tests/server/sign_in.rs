//! Links, sessions, recovery codes, invitations: how long they last, and how often they work.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::test_server::{DAY, MINUTE, OWN_ORIGIN, TestServer, client, get, link, owner, post, request};

const LINK: &str = "/api/v1/auth/link";

#[tokio::test]
async fn a_link_signs_in_once() {
    let server = TestServer::new();
    let secret = server.identity.make_link(&owner()).unwrap().reveal();
    let entered = post(LINK, &link(&secret)).send(&server).await;
    assert_eq!(entered.status, StatusCode::NO_CONTENT);
    assert_eq!(get("/api/v1/mine").cookie(&entered.cookie()).send(&server).await.status, 200);
    assert_eq!(post(LINK, &link(&secret)).send(&server).await.code(), "refused");
}

#[tokio::test]
async fn a_link_ends_after_five_minutes() {
    let server = TestServer::new();
    let (early, late) =
        (server.identity.make_link(&owner()).unwrap(), server.identity.make_link(&owner()).unwrap());
    server.wait(5 * MINUTE - 1);
    assert_eq!(post(LINK, &link(&early.reveal())).send(&server).await.status, StatusCode::NO_CONTENT);
    server.wait(1);
    assert_eq!(post(LINK, &link(&late.reveal())).send(&server).await.code(), "refused");
}

#[tokio::test]
async fn the_cookie_is_restricted_to_this_server() {
    for (public, host, called, secure) in [
        (None, "localhost:8080", "choir_session_8080", false),
        (Some("https://choir.example.org"), "choir.example.org", "__Host-choir_session_8080", true),
    ] {
        let server = TestServer::with_site(public, &[], &[]);
        let secret = server.identity.make_link(&owner()).unwrap().reveal();
        let origin = public.unwrap_or(OWN_ORIGIN);
        let request = post(LINK, &link(&secret)).with("host", host).with("origin", origin);
        let answer = request.send(&server).await;
        let mut parts = answer.header("set-cookie").split("; ");
        let (name, value) = parts.next().unwrap().split_once('=').unwrap();
        assert_eq!((name, value.len()), (called, 64));
        let mut attributes: Vec<_> = parts.collect();
        attributes.sort_unstable();
        let mut expected = vec!["HttpOnly", "Max-Age=7776000", "Path=/", "SameSite=Strict"];
        expected.extend(secure.then_some("Secure"));
        assert_eq!(attributes, expected);
        assert_eq!(!answer.header("strict-transport-security").is_empty(), secure);
    }
}

#[tokio::test]
async fn a_session_ends_when_idle_and_in_any_case_when_old() {
    let server = TestServer::new();
    let idle = server.cookie_of(&owner());
    let used = server.cookie_of(&owner());
    let status = async |cookie: &str| get("/api/v1/mine").cookie(cookie).send(&server).await.status;
    for _ in 0..6 {
        server.wait(14 * DAY - 1);
        assert_eq!(status(&used).await, StatusCode::OK);
    }
    assert_eq!(status(&idle).await, StatusCode::UNAUTHORIZED);
    server.wait(6 * DAY + 6);
    assert_eq!(status(&used).await, StatusCode::UNAUTHORIZED, "ninety days are over");
}

#[tokio::test]
async fn a_session_that_is_revoked_or_signed_out_is_refused_at_once() {
    let server = TestServer::new();
    let (mine, other) = (server.cookie_of(&owner()), server.cookie_of(&owner()));
    let mut revocations = server.identity.revocations();
    let sessions = get("/api/v1/auth/sessions").cookie(&mine).send(&server).await.json;
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    let id = sessions.iter().find(|session| session["current"] == false).unwrap()["id"].as_str().unwrap();
    assert!(server.identity.is_session_valid(id).unwrap());
    let path = format!("/api/v1/auth/sessions/{id}");
    let revoked = request(Method::DELETE, &path).with("origin", OWN_ORIGIN).cookie(&mine).send(&server).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(get("/api/v1/mine").cookie(&other).send(&server).await.code(), "signed_out");
    assert!(!server.identity.is_session_valid(id).unwrap());
    assert!(revocations.has_changed().unwrap());
    revocations.mark_unchanged();

    let left = request(Method::POST, "/api/v1/auth/logout")
        .with("origin", OWN_ORIGIN)
        .cookie(&mine)
        .send(&server)
        .await;
    assert_eq!(left.status, StatusCode::NO_CONTENT);
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(get("/api/v1/mine").cookie(&mine).send(&server).await.code(), "signed_out");
}

#[tokio::test]
async fn a_recovery_code_works_once_and_new_ones_replace_the_old() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let make = || request(Method::POST, "/api/v1/auth/recovery").with("origin", OWN_ORIGIN).cookie(&cookie);
    let codes = make().send(&server).await.json["codes"].clone();
    assert_eq!(codes.as_array().unwrap().len(), 10);
    let recover = async |user: &str, code: &str| {
        post("/api/v1/auth/recover", &json!({ "user": user, "code": code })).send(&server).await
    };
    let code = codes[0].as_str().unwrap();
    assert_eq!(recover("stranger", code).await.code(), "refused");
    let spaced = code.to_lowercase().replace('-', " ");
    assert_eq!(
        recover("ada", &spaced).await.status,
        StatusCode::NO_CONTENT,
        "the name works, with any spacing"
    );
    assert_eq!(recover("owner", code).await.code(), "refused");
    assert_eq!(server.identity.recovery_codes_left(&owner()).unwrap(), 9);
    let other = codes[2].as_str().unwrap();
    let almost = format!("{}{}", &other[..6], "AAAAA-AAAAA-AAAAA-AAAAA");
    assert_eq!(recover("owner", &almost).await.code(), "refused", "the selector alone does not sign in");
    assert_eq!(recover("owner", other).await.status, StatusCode::NO_CONTENT, "a wrong guess uses nothing up");
    make().send(&server).await;
    assert_eq!(recover("owner", codes[1].as_str().unwrap()).await.code(), "refused");
}

#[tokio::test]
async fn an_invitation_makes_one_account_within_seven_days() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let invite = || post("/api/v1/auth/invitations", &json!({ "name": "Ada" })).cookie(&cookie);
    let secret = |link: &serde_json::Value| {
        let link = link["link"].as_str().unwrap().to_owned();
        link.strip_prefix("http://localhost:8080/#invite-").unwrap().to_owned()
    };
    let (first, late) = (invite().send(&server).await.json, invite().send(&server).await.json);
    let accept = |secret: &str| post("/api/v1/auth/accept", &link(secret));
    let entered = accept(&secret(&first)).send(&server).await;
    assert_eq!(get("/api/v1/mine").cookie(&entered.cookie()).send(&server).await.bytes, b"ada");
    assert_eq!(accept(&secret(&first)).send(&server).await.code(), "refused");
    server.wait(7 * DAY);
    assert_eq!(accept(&secret(&late)).send(&server).await.code(), "refused");
    assert_eq!(server.identity.users().unwrap().len(), 2);
    let denied = invite().cookie(&entered.cookie()).send(&server).await;
    assert_eq!(denied.code(), "forbidden", "a guest cannot invite users");
}

#[tokio::test]
async fn the_audit_trail_names_everything_and_no_secret_is_on_the_disk() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let link = server.identity.make_link(&owner()).unwrap().reveal();
    let token = server.token_of(&owner(), &[shared_types::wire::TokenScope::Read]);
    let invitation = server.identity.invite(&owner(), "Grace", &client()).unwrap().secret.reveal();
    let codes = server.identity.make_recovery_codes(&owner(), &client()).unwrap();
    post(LINK, &json!({ "secret": "0".repeat(64) })).from("203.0.113.9").send(&server).await;

    let lines = get("/api/v1/auth/audit").cookie(&cookie).send(&server).await.json;
    let said: Vec<_> = lines.as_array().unwrap().iter().map(|line| line["what"].as_str().unwrap()).collect();
    let expected = [
        "sign_in.refused",
        "recovery.made",
        "invitation.made",
        "token.made",
        "link.made",
        "signed_in",
        "link.made",
        "owner.created",
    ];
    assert_eq!(said, expected);
    assert_eq!(lines[0]["address"], "203.0.113.9");
    let guest = server.cookie_of(&server.guest());
    let seen = get("/api/v1/auth/audit").cookie(&guest).send(&server).await.json.to_string();
    assert!(seen.contains("invitation.accepted") && !seen.contains("token.made"), "only their own: {seen}");

    let disk = server.everything_on_disk();
    let cookie = cookie.split_once('=').unwrap().1.to_owned();
    let token = token.strip_prefix("choir_").unwrap().to_owned();
    for secret in [cookie, link, token, invitation].iter().chain(&codes) {
        let raw: Vec<u8> = secret.as_bytes().chunks(2).filter_map(byte).collect();
        for form in [secret.as_bytes(), secret.replace('-', "").as_bytes(), &raw] {
            assert!(form.len() >= 8 || form.is_empty() || secret.contains('-'), "{secret}");
            let there = form.len() >= 8 && disk.windows(form.len()).any(|window| window == form);
            assert!(!there, "{secret} is in the database");
        }
    }
    assert!(disk.windows(7).any(|window| window == b"$argon2"), "the folder was really read");
}

fn byte(pair: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()
}

#[test]
fn the_store_belongs_to_one_owner_and_survives_being_closed() {
    let server = TestServer::new();
    let cookie = server.cookie_of(&owner());
    let secret = hypervisor::identity::RandomSecret::parse(cookie.split_once('=').unwrap().1).unwrap();
    let again =
        hypervisor::identity::IdentityStore::open(server.folder.path(), server.identity.clock()).unwrap();
    assert_eq!(again.session(&secret).unwrap().unwrap().user.name, "Ada");
    assert!(again.ensure_owner(&shared_types::UserId::parse("mallory").unwrap(), "M").is_err());
    assert_eq!(again.ensure_owner(&owner(), "Another Name").unwrap().name, "Ada");
}

#[tokio::test]
async fn signing_in_again_ends_the_session_that_the_cookie_held() {
    let server = TestServer::new();
    let before = server.cookie_of(&owner());
    let secret = server.identity.make_link(&owner()).unwrap().reveal();
    let entered = post(LINK, &link(&secret)).cookie(&before).send(&server).await;
    assert_eq!(get("/api/v1/mine").cookie(&before).send(&server).await.code(), "signed_out");
    assert_eq!(get("/api/v1/mine").cookie(&entered.cookie()).send(&server).await.status, 200);
    assert_eq!(server.identity.sessions(&owner(), None).unwrap().len(), 1);
}
