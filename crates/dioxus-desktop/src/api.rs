//! Typed requests to the server. A failure has a sentence for the person and, if the server refused, its error code.

use std::rc::Rc;

use dioxus::prelude::*;
use futures_util::future::LocalBoxFuture;
use gloo_net::http::{Request, RequestBuilder, Response};
use gloo_timers::future::TimeoutFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared_types::wire::Problem;
use shared_types::{CommandId, ContentHash};
use wasm_bindgen::JsValue;

use crate::dom::{self, encode};
use crate::ids;
use crate::json;
use crate::words;

const BASE: &str = "/api/v1";

/// Why a request failed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ApiFailure {
    /// No answer came. The server may or may not have carried out the request.
    Unreachable,
    /// The answer, or the request, cannot be read by this version.
    Unreadable(String),
    /// The server refused.
    Refused(Box<Problem>),
}

/// The server's code for a write that was made from another version of the file (`docs/errors.md`).
const STALE: &str = "stale";

impl ApiFailure {
    /// For the person.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Unreachable => words::NO_ANSWER.into(),
            Self::Unreadable(reason) => words::answer_unreadable(reason),
            Self::Refused(problem) if problem.detail.is_empty() => problem.title.clone(),
            Self::Refused(problem) => problem.detail.clone(),
        }
    }

    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Refused(problem) => problem.status,
            Self::Unreachable | Self::Unreadable(_) => 0,
        }
    }

    /// Whether the file changed since the version that a write was made from, or exists where it should not.
    pub(crate) fn is_stale(&self) -> bool {
        self.problem().is_some_and(|problem| problem.code == STALE)
    }

    pub(crate) fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused(problem) => Some(problem),
            Self::Unreachable | Self::Unreadable(_) => None,
        }
    }
}

pub(crate) type ApiResult<T> = std::result::Result<T, ApiFailure>;

/// `path?key=value…`, with empty values left out.
pub(crate) fn query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut out = path.to_owned();
    for (key, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        out.push(if out.contains('?') { '&' } else { '?' });
        out.push_str(key);
        out.push('=');
        out.push_str(&encode(value));
    }
    out
}

/// The full address of a route.
pub(crate) fn url(path: &str) -> String {
    format!("{BASE}{path}")
}

/// Sends a request and turns an error response into an [`ApiFailure`]. Not generic, so that it is compiled once.
fn send(
    request: std::result::Result<Request, gloo_net::Error>,
) -> LocalBoxFuture<'static, ApiResult<Response>> {
    Box::pin(async move {
        let request = request.map_err(|e| ApiFailure::Unreadable(e.to_string()))?;
        let response = request.send().await.map_err(|_| ApiFailure::Unreachable)?;
        if response.ok() {
            return Ok(response);
        }
        let status = response.status();
        match response.text().await {
            Ok(text) => Err(problem(status, &text)),
            Err(error) => {
                dom::warn(&error.to_string());
                Err(problem(status, ""))
            }
        }
    })
}

/// The failure of an error response. A body that is not a `Problem` goes to the console.
pub(crate) fn problem(status: u16, text: &str) -> ApiFailure {
    match json::read::<Problem>(text) {
        Ok(problem) => ApiFailure::Refused(Box::new(problem)),
        Err(_) if status == 0 || status >= 502 => ApiFailure::Unreachable,
        Err(_) => {
            dom::warn(text);
            ApiFailure::Refused(Box::new(Problem {
                kind: String::new(),
                title: words::answered_with(status),
                status,
                code: String::new(),
                detail: String::new(),
                conflicts: Vec::new(),
                current: None,
            }))
        }
    }
}

/// Reads JSON from the server. The caller shows an error; the console has the details.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> ApiResult<T> {
    json::read(text).map_err(|error| unreadable(&error.to_string()))
}

/// The failure of a message that cannot be read.
pub(crate) fn unreadable(reason: &str) -> ApiFailure {
    dom::warn(reason);
    ApiFailure::Unreadable(reason.to_owned())
}

/// Sends a request and returns the text of the answer. Not generic, so that it is compiled once.
fn send_for_text(
    request: std::result::Result<Request, gloo_net::Error>,
) -> LocalBoxFuture<'static, ApiResult<String>> {
    Box::pin(async move { send(request).await?.text().await.map_err(|_| ApiFailure::Unreachable) })
}

pub(crate) async fn get<T: DeserializeOwned>(path: &str) -> ApiResult<T> {
    read(&send_for_text(Request::get(&url(path)).build()).await?)
}

pub(crate) async fn post<T: DeserializeOwned>(path: &str, body: &impl Serialize) -> ApiResult<T> {
    read(&with_json(Method::Post, Delivery::Resent, path, serde_json::to_string(body)).await?)
}

/// Like [`post`], but the request is sent once only. For routes that are called before sign-in: the server remembers
/// no ids for them, so a second request would use a link or a code twice.
pub(crate) async fn post_once<T: DeserializeOwned>(path: &str, body: &impl Serialize) -> ApiResult<T> {
    read(&with_json(Method::Post, Delivery::Once, path, serde_json::to_string(body)).await?)
}

/// Like [`post_once`]; the body of the answer is ignored.
pub(crate) async fn send_once(path: &str, body: &impl Serialize) -> ApiResult<()> {
    with_json(Method::Post, Delivery::Once, path, serde_json::to_string(body)).await.map(drop)
}

/// The method of a request that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Post,
    Put,
}

/// Whether a request that gets no answer is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Once,
    /// Once more, under the same id: the server returns the first answer again.
    Resent,
}

fn with_json(
    method: Method,
    delivery: Delivery,
    path: &str,
    body: serde_json::Result<String>,
) -> LocalBoxFuture<'static, ApiResult<String>> {
    let address = url(path);
    let request = move |body: &String| {
        let request = match method {
            Method::Post => Request::post(&address),
            Method::Put => Request::put(&address),
        };
        (request.header("content-type", "application/json"), JsValue::from_str(body))
    };
    match body {
        Ok(body) => send_change(delivery, Box::new(move || request(&body))),
        Err(error) => Box::pin(std::future::ready(Err(ApiFailure::Unreadable(error.to_string())))),
    }
}

/// The header with the id of a request.
pub(crate) const COMMAND: &str = "choir-command";
/// Milliseconds until a request without an answer is sent again.
const RESEND_MS: u32 = 400;

/// Sends a request that changes something, under an id of its own.
fn send_change(
    delivery: Delivery,
    make: Box<dyn Fn() -> (RequestBuilder, JsValue)>,
) -> LocalBoxFuture<'static, ApiResult<String>> {
    send_change_as(ids::command(), delivery, make)
}

fn send_change_as(
    command: CommandId,
    delivery: Delivery,
    make: Box<dyn Fn() -> (RequestBuilder, JsValue)>,
) -> LocalBoxFuture<'static, ApiResult<String>> {
    let command = command.to_string();
    Box::pin(async move {
        let send = || {
            let (request, body) = make();
            send_for_text(request.header(COMMAND, &command).body(body))
        };
        match send().await {
            Err(ApiFailure::Unreachable) if delivery == Delivery::Resent => {
                TimeoutFuture::new(RESEND_MS).await;
                send().await
            }
            answer => answer,
        }
    })
}

/// Sends JSON; the body of the answer is ignored.
pub(crate) fn send_json(
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> LocalBoxFuture<'static, ApiResult<()>> {
    let answer = with_json(method, Delivery::Resent, path, serde_json::to_string(body));
    Box::pin(async move { answer.await.map(drop) })
}

/// The empty body `{}`.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Empty {}

pub(crate) fn delete(path: &str) -> LocalBoxFuture<'static, ApiResult<()>> {
    let address = url(path);
    let answer =
        send_change(Delivery::Resent, Box::new(move || (Request::delete(&address), JsValue::UNDEFINED)));
    Box::pin(async move { answer.await.map(drop) })
}

/// The bytes that a route returns, and their hash by its header.
pub(crate) async fn bytes(path: &str) -> ApiResult<(Vec<u8>, Option<ContentHash>)> {
    let response = send(Request::get(&url(path)).build()).await?;
    let hash = content_hash(&response)?;
    let bytes = response.binary().await.map_err(|_| ApiFailure::Unreachable)?;
    Ok((bytes, hash))
}

/// The hash in the header of a response that has one.
pub(crate) fn content_hash(response: &Response) -> ApiResult<Option<ContentHash>> {
    let hash = response.headers().get("x-choir-hash");
    hash.map(|hash| ContentHash::parse(&hash)).transpose().map_err(|error| unreadable(&error.to_string()))
}

/// Sends bytes as the body.
pub(crate) async fn put_bytes<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> ApiResult<T> {
    put_bytes_as(ids::command(), path, bytes).await
}

/// Like [`put_bytes`], under an id of the caller, who may send the same bytes again later.
pub(crate) async fn put_bytes_as<T: DeserializeOwned>(
    command: CommandId,
    path: &str,
    bytes: &[u8],
) -> ApiResult<T> {
    let (address, body) = (url(path), js_sys::Uint8Array::from(bytes));
    let request = move || {
        let request = Request::put(&address).header("content-type", "application/octet-stream");
        (request, body.clone().into())
    };
    read(&send_change_as(command, Delivery::Resent, Box::new(request)).await?)
}

/// Sends a file as the body.
pub(crate) async fn post_file<T: DeserializeOwned>(
    path: &str,
    kind: &str,
    file: web_sys::File,
) -> ApiResult<T> {
    let (address, kind) = (url(path), kind.to_owned());
    let request = move || (Request::post(&address).header("content-type", &kind), file.clone().into());
    read(&send_change(Delivery::Resent, Box::new(request)).await?)
}

/// Text from outside the API, such as `/health`.
pub(crate) async fn plain(path: &str) -> ApiResult<String> {
    let response = Request::get(path).send().await.map_err(|_| ApiFailure::Unreachable)?;
    response.text().await.map_err(|_| ApiFailure::Unreachable)
}

/// Runs a future to its end, even if the component that started it is removed.
pub(crate) fn run(future: impl Future<Output = ()> + 'static) {
    dioxus::core::spawn_forever(future);
}

/// Changes a signal of a window, unless the window was closed in the meantime.
pub(crate) fn update_if_open<T: 'static>(mut signal: Signal<T>, with: impl FnOnce(&mut T)) {
    if let Ok(mut value) = signal.try_write() {
        with(&mut value);
    }
}

/// Fetches a path, again whenever a signal that the closure reads changes. The old value stays until the new one
/// arrives.
pub(crate) fn use_fetched<T: DeserializeOwned + 'static>(
    path: impl FnMut() -> String + 'static,
) -> Signal<Option<ApiResult<T>>> {
    let value = use_signal(|| None);
    use_text(
        Box::new(path),
        Rc::new(move |answer| {
            let mut value = value;
            value.set(Some(answer.and_then(|text| read(&text))));
        }),
    );
    value
}

/// The part of [`use_fetched`] that is not generic, so that it is compiled once.
fn use_text(mut path: Box<dyn FnMut() -> String>, on_answer: Rc<dyn Fn(ApiResult<String>)>) {
    let mut generation = use_signal(|| 0u64);
    use_effect(move || {
        let path = path();
        let mine = *generation.peek() + 1;
        generation.set(mine);
        let on_answer = Rc::clone(&on_answer);
        spawn(async move {
            let answer = send_for_text(Request::get(&url(&path)).build()).await;
            if *generation.peek() == mine {
                on_answer(answer);
            }
        });
    });
}
