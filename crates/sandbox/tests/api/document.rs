//! The OpenAPI document: it is current and complete, and every operation in it withstands random
//! input.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axum::http::Method;
use serde_json::Value;

use crate::fuzz::Rng;
use crate::test_machine::{RequestBody, TestMachine, TestResponse};

/// Requests for each operation.
const TRIES: u32 = 200;

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// Method, path and description of every operation.
fn operations(document: &Value) -> Vec<(Method, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let methods = |methods: &'_ Value| methods.as_object().unwrap().clone();
    let mut all = Vec::new();
    for (path, described) in paths {
        for name in methods(described).keys() {
            all.push((name.to_uppercase().parse().unwrap(), path.as_str(), &described[name]));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_document_is_the_one_in_docs() {
    let machine = TestMachine::new().await;
    let answer = machine
        .send(
            &crate::test_machine::TestCredential::None,
            Method::GET,
            "/api/v1/openapi.json",
            RequestBody::Empty,
        )
        .await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "application/json"));
    let path = docs("openapi.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &answer.bytes).unwrap();
    }
    let kept: Value = serde_json::from_slice(&std::fs::read(&path).unwrap_or_default()).unwrap_or_default();
    assert!(
        kept == answer.json,
        "docs/openapi.json is not current; run `UPDATE_DOCS=1 cargo nextest run -p sandbox --test api document` \
         and commit it"
    );
}

/// Every schema, and every other object, in a document.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(fields) => {
            found.push(fields);
            fields.values().for_each(|field| objects(field, found));
        }
        Value::Array(items) => items.iter().for_each(|item| objects(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arrays_are_written_so_that_every_reader_of_openapi_3_1_takes_them() {
    let machine = TestMachine::new().await;
    let document = machine.get("/api/v1/openapi.json").await.json;
    let mut all = Vec::new();
    objects(&document, &mut all);
    for schema in all {
        // A property may be called `items`; a list under it can only be meant as a schema.
        assert!(
            !schema.get("items").is_some_and(Value::is_array),
            "OpenAPI 3.1 has no list of `items`: {schema:?}"
        );
        if let Some([first, rest @ ..]) =
            schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice)
        {
            assert!(rest.iter().any(|other| other != first), "write equal members as `items`: {schema:?}");
        }
    }
    let speed = &document["components"]["schemas"]["LocalModelLine"]["properties"]["speed"];
    assert_eq!(speed["items"]["type"], "integer", "{speed}");
    assert_eq!((&speed["minItems"], &speed["maxItems"]), (&2.into(), &2.into()), "{speed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_described() {
    let machine = TestMachine::new().await;
    let document = machine.get("/api/v1/openapi.json").await.json;
    let described = operations(&document);
    for route in sandbox::api::routes().iter().chain(&hypervisor::auth::routes()) {
        let found = described.iter().find(|(method, path, _)| *method == route.method && *path == route.path);
        let (_, path, operation) = found.unwrap_or_else(|| panic!("{} is not in the document", route.path));
        let success = operation["responses"].as_object().unwrap().keys().any(|status| status != "default");
        assert!(success, "{path} does not say what it gives; use `Route::giving`");
        let in_path = |parameter: &Value| parameter["in"] == "path";
        let named = operation["parameters"].as_array().is_some_and(|all| all.iter().any(in_path));
        assert_eq!(path.contains('{'), named, "{path}: what is in braces is a parameter");
        assert!(!operation["summary"].as_str().unwrap().is_empty(), "{path}");
    }
    let ids: BTreeSet<_> =
        described.iter().map(|(_, _, operation)| operation["operationId"].as_str()).collect();
    assert_eq!(ids.len(), described.len(), "operation ids are unique");
}

/// What is wrong with an answer, if anything.
fn fault(
    document: &Value,
    operation: &Value,
    answer: &TestResponse,
    codes: &BTreeSet<String>,
) -> Option<String> {
    let status = answer.status;
    if status.is_server_error() {
        return Some(format!("{status}: {}", answer.json));
    }
    if status.is_client_error() {
        let kind = answer.header("content-type");
        let code = answer.json["code"].as_str().unwrap_or_default();
        let clear = kind == "application/problem+json" && codes.contains(code);
        return (!clear)
            .then(|| format!("{status} is no problem that docs/errors.md knows: {kind} {code:?}"));
    }
    let described = operation["responses"].get(status.as_str());
    let Some(described) = described else { return Some(format!("{status} is not in the document")) };
    let schema = &described["content"]["application/json"]["schema"];
    let schema = match schema["$ref"].as_str() {
        Some(name) => document.pointer(name.trim_start_matches('#'))?,
        None => schema,
    };
    let fits = match schema["type"].as_str() {
        Some("object") => {
            let required = schema["required"].as_array().into_iter().flatten();
            let missing = required.filter_map(Value::as_str).find(|name| answer.json.get(name).is_none());
            answer.json.is_object() && missing.is_none()
        }
        Some("array") => answer.json.is_array(),
        _ => true,
    };
    (!fits).then(|| format!("{status} does not have the shape of the document: {}", answer.json))
}

#[tokio::test(flavor = "multi_thread")]
async fn random_input_to_any_operation_gets_a_clear_answer() {
    let machine = TestMachine::new().await;
    machine.write("notes/a.txt", "one").await;
    let document = machine.get("/api/v1/openapi.json").await.json;
    let explained = std::fs::read_to_string(docs("errors.md")).unwrap();
    let rows = explained.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let codes: BTreeSet<String> =
        rows.flat_map(|(codes, _)| codes.split("`, `")).map(ToOwned::to_owned).collect();
    let (mut faults, mut served) = (BTreeSet::new(), BTreeSet::new());
    for (method, path, operation) in operations(&document) {
        // Signing out, and ten slow hashes for one answer.
        if ["/api/v1/auth/logout", "/api/v1/auth/recovery", "/api/v1/auth/sessions/{id}"].contains(&path) {
            continue;
        }
        let pass = machine.owners();
        let mut rng = Rng::new(path.len() as u64 + method.as_str().len() as u64);
        let slow = ["/api/v1/terminals", "/api/v1/export", "/api/v1/auth/recover", "/api/v1/checkpoints"];
        let tries = if slow.contains(&path) { TRIES / 20 } else { TRIES };
        for _ in 0..tries {
            let (address, sent) = rng.request(path, operation);
            let told = format!("{sent:?}");
            let answer = machine.send(&pass, method.clone(), &address, sent).await;
            if answer.status.is_success() {
                served.insert((method.to_string(), path));
            }
            if let Some(fault) = fault(&document, operation, &answer, &codes) {
                let told: String = told.chars().take(200).collect();
                faults.insert(format!("{method} {path}: {fault}\n    {address}\n    {told}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), Vec::from_iter(faults).join("\n"));
    assert!(served.len() > 30, "most get something right, too: {served:?}");
    let state = machine.get("/api/v1/state").await;
    assert_eq!(state.status, 200, "and the computer still works");
}
