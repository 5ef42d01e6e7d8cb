//! Links, sessions, recovery codes, invitations: how long they last, and how often they work.

use axum::http::{Method, StatusCode};
use serde_json::json;

use crate::house::{DAY, HERE, House, MINUTE, ask, caller, get, link, owner, post};

const LINK: &str = "/api/v1/auth/link";

#[tokio::test]
async fn a_link_signs_in_once() {
    let house = House::new();
    let secret = house.identity.make_link(&owner()).unwrap().reveal();
    let entered = post(LINK, &link(&secret)).send(&house).await;
    assert_eq!(entered.status, StatusCode::NO_CONTENT);
    assert_eq!(get("/api/v1/mine").cookie(&entered.cookie()).send(&house).await.status, 200);
    assert_eq!(post(LINK, &link(&secret)).send(&house).await.code(), "refused");
}

#[tokio::test]
async fn a_link_ends_after_five_minutes() {
    let house = House::new();
    let (early, late) =
        (house.identity.make_link(&owner()).unwrap(), house.identity.make_link(&owner()).unwrap());
    house.wait(5 * MINUTE - 1);
    assert_eq!(post(LINK, &link(&early.reveal())).send(&house).await.status, StatusCode::NO_CONTENT);
    house.wait(1);
    assert_eq!(post(LINK, &link(&late.reveal())).send(&house).await.code(), "refused");
}

#[tokio::test]
async fn the_cookie_is_for_us_alone() {
    for (public, host, called, secure) in [
        (None, "localhost:8080", "choir_session_8080", false),
        (Some("https://choir.example.org"), "choir.example.org", "__Host-choir_session_8080", true),
    ] {
        let house = House::at(public, &[], &[]);
        let secret = house.identity.make_link(&owner()).unwrap().reveal();
        let origin = public.unwrap_or(HERE);
        let asked = post(LINK, &link(&secret)).with("host", host).with("origin", origin);
        let answer = asked.send(&house).await;
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
    let house = House::new();
    let idle = house.cookie_of(&owner());
    let used = house.cookie_of(&owner());
    let status = async |cookie: &str| get("/api/v1/mine").cookie(cookie).send(&house).await.status;
    for _ in 0..6 {
        house.wait(14 * DAY - 1);
        assert_eq!(status(&used).await, StatusCode::OK);
    }
    assert_eq!(status(&idle).await, StatusCode::UNAUTHORIZED);
    house.wait(6 * DAY + 6);
    assert_eq!(status(&used).await, StatusCode::UNAUTHORIZED, "ninety days are over");
}

#[tokio::test]
async fn a_session_that_is_revoked_or_signed_out_is_refused_at_once() {
    let house = House::new();
    let (mine, other) = (house.cookie_of(&owner()), house.cookie_of(&owner()));
    let mut revocations = house.identity.revocations();
    let sessions = get("/api/v1/auth/sessions").cookie(&mine).send(&house).await.json;
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 2);
    let id = sessions.iter().find(|session| session["current"] == false).unwrap()["id"].as_str().unwrap();
    assert!(house.identity.session_holds(id).unwrap());
    let path = format!("/api/v1/auth/sessions/{id}");
    let revoked = ask(Method::DELETE, &path).with("origin", HERE).cookie(&mine).send(&house).await;
    assert_eq!(revoked.status, StatusCode::NO_CONTENT);
    assert_eq!(get("/api/v1/mine").cookie(&other).send(&house).await.code(), "signed_out");
    assert!(!house.identity.session_holds(id).unwrap());
    assert!(revocations.has_changed().unwrap());
    revocations.mark_unchanged();

    let left = ask(Method::POST, "/api/v1/auth/logout").with("origin", HERE).cookie(&mine).send(&house).await;
    assert_eq!(left.status, StatusCode::NO_CONTENT);
    assert!(left.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(get("/api/v1/mine").cookie(&mine).send(&house).await.code(), "signed_out");
}

#[tokio::test]
async fn a_recovery_code_works_once_and_new_ones_replace_the_old() {
    let house = House::new();
    let cookie = house.cookie_of(&owner());
    let make = || ask(Method::POST, "/api/v1/auth/recovery").with("origin", HERE).cookie(&cookie);
    let codes = make().send(&house).await.json["codes"].clone();
    assert_eq!(codes.as_array().unwrap().len(), 10);
    let recover = async |user: &str, code: &str| {
        post("/api/v1/auth/recover", &json!({ "user": user, "code": code })).send(&house).await
    };
    let code = codes[0].as_str().unwrap();
    assert_eq!(recover("somebody", code).await.code(), "refused");
    let spaced = code.to_lowercase().replace('-', " ");
    assert_eq!(
        recover("ada", &spaced).await.status,
        StatusCode::NO_CONTENT,
        "the name will do, and any spacing"
    );
    assert_eq!(recover("owner", code).await.code(), "refused");
    assert_eq!(house.identity.recovery_codes_left(&owner()).unwrap(), 9);
    let other = codes[2].as_str().unwrap();
    let almost = format!("{}{}", &other[..6], "AAAAA-AAAAA-AAAAA-AAAAA");
    assert_eq!(
        recover("owner", &almost).await.code(),
        "refused",
        "the letters that find a code do not open it"
    );
    assert_eq!(recover("owner", other).await.status, StatusCode::NO_CONTENT, "a wrong guess uses nothing up");
    make().send(&house).await;
    assert_eq!(recover("owner", codes[1].as_str().unwrap()).await.code(), "refused");
}

#[tokio::test]
async fn an_invitation_makes_one_account_within_seven_days() {
    let house = House::new();
    let cookie = house.cookie_of(&owner());
    let invite = || post("/api/v1/auth/invitations", &json!({ "name": "Ada" })).cookie(&cookie);
    let secret = |link: &serde_json::Value| {
        let link = link["link"].as_str().unwrap().to_owned();
        link.strip_prefix("http://localhost:8080/#invite-").unwrap().to_owned()
    };
    let (first, late) = (invite().send(&house).await.json, invite().send(&house).await.json);
    let accept = |secret: &str| post("/api/v1/auth/accept", &link(secret));
    let entered = accept(&secret(&first)).send(&house).await;
    assert_eq!(get("/api/v1/mine").cookie(&entered.cookie()).send(&house).await.bytes, b"ada");
    assert_eq!(accept(&secret(&first)).send(&house).await.code(), "refused");
    house.wait(7 * DAY);
    assert_eq!(accept(&secret(&late)).send(&house).await.code(), "refused");
    assert_eq!(house.identity.users().unwrap().len(), 2);
    let denied = invite().cookie(&entered.cookie()).send(&house).await;
    assert_eq!(denied.code(), "forbidden", "a guest invites nobody");
}

#[tokio::test]
async fn the_audit_trail_names_everything_and_no_secret_is_on_the_disk() {
    let house = House::new();
    let cookie = house.cookie_of(&owner());
    let link = house.identity.make_link(&owner()).unwrap().reveal();
    let token = house.token_of(&owner(), &[shared_types::wire::Scope::Read]);
    let invitation = house.identity.invite(&owner(), "Grace", &caller()).unwrap().secret.reveal();
    let codes = house.identity.make_recovery_codes(&owner(), &caller()).unwrap();
    post(LINK, &json!({ "secret": "0".repeat(64) })).from("203.0.113.9").send(&house).await;

    let lines = get("/api/v1/auth/audit").cookie(&cookie).send(&house).await.json;
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
    let guest = house.cookie_of(&house.guest());
    let seen = get("/api/v1/auth/audit").cookie(&guest).send(&house).await.json.to_string();
    assert!(seen.contains("invitation.accepted") && !seen.contains("token.made"), "only their own: {seen}");

    let disk = house.everything_on_disk();
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
    let house = House::new();
    let cookie = house.cookie_of(&owner());
    let secret = hypervisor::identity::Secret::parse(cookie.split_once('=').unwrap().1).unwrap();
    let again = hypervisor::identity::Identity::open(house.folder.path(), house.identity.clock()).unwrap();
    assert_eq!(again.session(&secret).unwrap().unwrap().user.name, "Ada");
    assert!(again.ensure_owner(&shared_types::UserId::parse("mallory").unwrap(), "M").is_err());
    assert_eq!(again.ensure_owner(&owner(), "Another Name").unwrap().name, "Ada");
}

#[tokio::test]
async fn signing_in_again_ends_the_session_that_the_cookie_held() {
    let house = House::new();
    let before = house.cookie_of(&owner());
    let secret = house.identity.make_link(&owner()).unwrap().reveal();
    let entered = post(LINK, &link(&secret)).cookie(&before).send(&house).await;
    assert_eq!(get("/api/v1/mine").cookie(&before).send(&house).await.code(), "signed_out");
    assert_eq!(get("/api/v1/mine").cookie(&entered.cookie()).send(&house).await.status, 200);
    assert_eq!(house.identity.sessions(&owner(), None).unwrap().len(), 1);
}
