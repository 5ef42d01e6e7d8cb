//! Passkeys in the browser. Options and credentials are JSON; the browser converts them for its authenticator.

use js_sys::{Function, Object, Promise, Reflect};
use serde_json::Value;
use shared_types::wire::Problem;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::api::{ApiFailure, ApiResult};
use crate::dom;
use crate::words;

fn passkey_error(detail: &str) -> ApiFailure {
    ApiFailure::Refused(Box::new(Problem {
        kind: String::new(),
        title: words::sign_in::PASSKEY_NOT_USED.into(),
        status: 400,
        code: "passkey".into(),
        detail: detail.into(),
        conflicts: Vec::new(),
        current: None,
    }))
}

/// Whether a passkey is created or used.
#[derive(Clone, Copy)]
enum Ceremony {
    Create,
    Get,
}

pub(crate) async fn create(options: &Value) -> ApiResult<Value> {
    run(Ceremony::Create, options).await
}

pub(crate) async fn get(options: &Value) -> ApiResult<Value> {
    run(Ceremony::Get, options).await
}

async fn run(ceremony: Ceremony, options: &Value) -> ApiResult<Value> {
    let (parse, method) = match ceremony {
        Ceremony::Create => ("parseCreationOptionsFromJSON", "create"),
        Ceremony::Get => ("parseRequestOptionsFromJSON", "get"),
    };
    let missing = || passkey_error(words::sign_in::NO_PASSKEYS_HERE);
    let class = Reflect::get(&js_sys::global(), &"PublicKeyCredential".into()).map_err(|_| missing())?;
    let parse: Function = member(&class, parse).ok_or_else(missing)?;
    let inner = options.get("publicKey").unwrap_or(options);
    let json = js_sys::JSON::parse(&inner.to_string()).map_err(|_| missing())?;
    let parsed = parse.call1(&class, &json).map_err(|e| passkey_error(&message(&e)))?;
    let request = Object::new();
    Reflect::set(&request, &"publicKey".into(), &parsed).map_err(|_| missing())?;

    let navigator = dom::window().map(|w| w.navigator()).ok_or_else(missing)?;
    let credentials = Reflect::get(&navigator, &"credentials".into()).map_err(|_| missing())?;
    let call: Function = member(&credentials, method).ok_or_else(missing)?;
    let promise: Promise =
        call.call1(&credentials, &request).ok().and_then(|p| p.dyn_into().ok()).ok_or_else(missing)?;
    let credential = JsFuture::from(promise).await.map_err(|e| passkey_error(&message(&e)))?;

    // `JSON.stringify` asks the credential for its own JSON form.
    let text = js_sys::JSON::stringify(&credential).map_err(|_| missing())?;
    serde_json::from_str(&String::from(text)).map_err(|e| ApiFailure::Unreadable(e.to_string()))
}

fn member(object: &JsValue, name: &str) -> Option<Function> {
    Reflect::get(object, &name.into()).ok()?.dyn_into().ok()
}

fn message(error: &JsValue) -> String {
    let name = Reflect::get(error, &"name".into()).ok().and_then(|v| v.as_string()).unwrap_or_default();
    match name.as_str() {
        "NotAllowedError" => words::sign_in::CANCELLED.into(),
        "InvalidStateError" => words::sign_in::ALREADY_HERE.into(),
        _ => Reflect::get(error, &"message".into()).ok().and_then(|v| v.as_string()).unwrap_or(name),
    }
}
