//! Every route of a computer, called with every credential: no caller gets more than the route allows.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};
use shared_types::wire::TokenScope;

use crate::test_machine::{DAY, RequestBody, TestMachine, nothing, owner};

/// A route, and a request that would work for the right caller.
struct Row(Method, &'static str, Value);

const SET_THEME: &str = "018f3c00-0000-7000-8000-00000000000";

fn table() -> Vec<Row> {
    let (get, post) = (Method::GET, Method::POST);
    let theme = json!({ "command": format!("{SET_THEME}1"), "op": format!("{SET_THEME}2"),
        "action": { "set_setting": { "key": "theme", "value": "dark" } } });
    let row = |method: &Method, path, body: Value| Row(method.clone(), path, body);
    vec![
        row(&get, "/api/v1/state", Value::Null),
        row(&post, "/api/v1/gestures", theme),
        row(&get, "/api/v1/storage", Value::Null),
        row(&get, "/api/v1/parts", Value::Null),
        row(&get, "/api/v1/socket", Value::Null),
        row(&get, "/api/v1/files", Value::Null),
        row(&post, "/api/v1/files/move", json!({ "from": "Welcome.md", "to": "w.md" })),
        row(&post, "/api/v1/files/copy", json!({ "from": "Welcome.md", "to": "copy.md" })),
        row(&post, "/api/v1/files/upload", json!([])),
        row(&post, "/api/v1/files/several", json!({ "delete": ["copy.md"] })),
        row(&post, "/api/v1/files/delete", json!({ "path": "Welcome.md" })),
        row(&post, "/api/v1/folders", json!({ "path": "folder" })),
        row(&get, "/api/v1/search?q=welcome", Value::Null),
        row(&get, "/api/v1/versions?path=Welcome.md", Value::Null),
        row(&get, "/api/v1/content?path=Welcome.md", Value::Null),
        row(&Method::PUT, "/api/v1/content?path=new.txt", Value::Null),
        row(&get, "/api/v1/compare?from=1", Value::Null),
        row(&get, "/api/v1/checkpoints", Value::Null),
        row(&post, "/api/v1/checkpoints", json!({ "message": "by hand" })),
        row(&get, "/api/v1/operations", Value::Null),
        row(&get, "/api/v1/operations/{op}", Value::Null),
        row(&post, "/api/v1/operations/{op}/undo", json!({ "preview": true })),
        row(&post, "/api/v1/operations/{op}/redo", json!({ "preview": true })),
        row(&post, "/api/v1/undo", nothing()),
        row(&post, "/api/v1/redo", nothing()),
        row(&post, "/api/v1/restore", json!({ "seq": 1, "preview": true })),
        row(&get, "/api/v1/export", Value::Null),
        row(&post, "/api/v1/import", Value::Null),
        row(&get, "/api/v1/commands", Value::Null),
        row(&post, "/api/v1/commands", json!({ "run": { "argv": ["true"] } })),
        row(&get, "/api/v1/commands/{op}", Value::Null),
        row(&post, "/api/v1/commands/{op}/accept", Value::Null),
        row(&post, "/api/v1/commands/{op}/discard", Value::Null),
        row(&post, "/api/v1/commands/{op}/stop", Value::Null),
        row(&get, "/api/v1/runs", Value::Null),
        row(
            &post,
            "/api/v1/runs",
            json!({ "command": format!("{SET_THEME}3"), "run": format!("{SET_THEME}4"), "objective": "work" }),
        ),
        row(&get, "/api/v1/runs/{run}", Value::Null),
        row(&get, "/api/v1/runs/{run}/steps", Value::Null),
        row(&get, "/api/v1/runs/{run}/steps/{seq}", Value::Null),
        row(
            &post,
            "/api/v1/runs/{run}/gestures",
            json!({ "command": format!("{SET_THEME}5"), "gesture": "pause" }),
        ),
        row(&post, "/api/v1/runs/{run}/steps/{seq}/retry", json!({ "preview": true })),
        row(&post, "/api/v1/runs/{run}/undo", json!({ "preview": true })),
        row(&post, "/api/v1/runs/{run}/redo", json!({ "preview": true })),
        row(&get, "/api/v1/questions", Value::Null),
        row(&get, "/api/v1/grants", Value::Null),
        row(&Method::DELETE, "/api/v1/grants/{grant}", Value::Null),
        row(&get, "/api/v1/models", Value::Null),
        row(&post, "/api/v1/models/{name}/test", Value::Null),
        row(&post, "/api/v1/models/local/fetch", Value::Null),
        row(&post, "/api/v1/models/local/decline", Value::Null),
        row(&post, "/api/v1/models/local/stop", Value::Null),
        row(&get, "/api/v1/mcp", Value::Null),
        row(&post, "/api/v1/mcp/reach", Value::Null),
        row(&post, "/api/v1/mcp/{name}/restart", Value::Null),
        row(&get, "/api/v1/services", Value::Null),
        row(&post, "/api/v1/services/search/test", Value::Null),
        row(&get, "/api/v1/terminals", Value::Null),
        row(&post, "/api/v1/terminals", json!({ "columns": 80, "rows": 24 })),
        row(&Method::DELETE, "/api/v1/terminals/{id}", Value::Null),
    ]
}

#[test]
fn the_table_has_every_route() {
    let name = |method: &Method, path: &str| format!("{method} {}", path.split('?').next().unwrap());
    let stated: BTreeSet<_> = sandbox::api::routes().iter().map(|r| name(&r.method, r.path)).collect();
    let tested: BTreeSet<_> = table().iter().map(|Row(method, path, _)| name(method, path)).collect();
    assert_eq!(stated, tested);
}

/// The answer of the guard to a caller without access; other callers get the answer of the route.
#[tokio::test(flavor = "multi_thread")]
async fn no_caller_gets_more_than_the_route_allows() {
    let machine = TestMachine::new().await;
    let guest = machine.guest();
    let expired = machine.owners();
    machine.wait(91 * DAY);
    let wrong = [TokenScope::Read, TokenScope::Write, TokenScope::Terminal];
    let mut mistakes = Vec::new();
    for Row(method, path, body) in table() {
        let op = "018f3c00-0000-7000-8000-0000000000aa";
        let ids = ["{op}", "{id}", "{run}", "{grant}"];
        let concrete = ids.iter().fold(path.replace("{seq}", "1"), |path, id| path.replace(id, op));
        let sent = || if body.is_null() { RequestBody::Empty } else { RequestBody::Json(body.clone()) };
        let route = sandbox::api::routes()
            .into_iter()
            .find(|route| route.method == method && path.starts_with(route.path.split('{').next().unwrap()))
            .unwrap();
        let owners_only = route.access == sandbox::api::Access::Owner;
        let scope = match route.access {
            sandbox::api::Access::SignedIn(scope) => Some(scope),
            sandbox::api::Access::Owner | sandbox::api::Access::Anyone => None,
        };
        let others: Vec<TokenScope> = wrong.into_iter().filter(|s| Some(*s) != scope).collect();
        let callers = [
            ("anonymous", crate::test_machine::TestCredential::None, Some(401)),
            ("expired session", expired.clone(), Some(401)),
            ("wrong scope", machine.token_of(&owner(), &others), Some(403)),
            ("other user", machine.cookie_of(&guest), owners_only.then_some(403)),
            ("right caller", machine.owners(), None),
        ];
        for (who, pass, refused) in callers {
            let answer = machine.send(&pass, method.clone(), &concrete, sent()).await;
            let status = answer.status.as_u16();
            let right = match refused {
                Some(expected) => status == expected,
                None => status != 401 && (status != 403 || answer.json["code"] == "no_shell"),
            };
            if !right {
                mistakes.push(format!("{method} {path} by {who}: {status}"));
            }
        }
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_reaches_their_own_computer_and_no_other() {
    let machine = TestMachine::new().await;
    machine.write("secret.txt", "mine").await;
    let guest = machine.guest();
    let pass = machine.cookie_of(&guest);
    for path in
        ["/api/v1/files", "/api/v1/search?q=secret", "/api/v1/operations", "/api/v1/versions?path=secret.txt"]
    {
        let answer = machine.send(&pass, Method::GET, path, RequestBody::Empty).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!String::from_utf8_lossy(&answer.bytes).contains("secret"), "{path}: {answer:?}");
    }
    let read = machine.send(&pass, Method::GET, "/api/v1/content?path=secret.txt", RequestBody::Empty).await;
    assert_eq!((read.status.as_u16(), read.code()), (404, "not_found"));
    // Knowing the hash does not help either.
    let hash = machine.get("/api/v1/content?path=secret.txt").await.header("x-choir-hash").to_owned();
    let read =
        machine.send(&pass, Method::GET, &format!("/api/v1/content?hash={hash}"), RequestBody::Empty).await;
    assert_eq!(read.status, 404, "{read:?}");
}
