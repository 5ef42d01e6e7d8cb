//! Typed requests to the computer. Every failure is a sentence for the person, with the server's code behind it.

use std::rc::Rc;

use dioxus::prelude::*;
use futures_util::future::LocalBoxFuture;
use gloo_net::http::{Request, RequestBuilder, Response};
use gloo_timers::future::TimeoutFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared_types::wire::Problem;
use wasm_bindgen::JsValue;

use crate::dom::{self, encode};
use crate::ids;
use crate::json;
use crate::words;

const BASE: &str = "/api/v1";

/// Why a request was not done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Failure {
    /// The computer did not answer. Nothing is known of what it did.
    Unreachable,
    /// It answered with something that this version does not understand.
    Unreadable(String),
    /// It refused.
    Refused(Box<Problem>),
}

/// The code of the server for a write whose base is not what is there (`docs/errors.md`).
const STALE: &str = "stale";

impl Failure {
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

pub(crate) type Answer<T> = std::result::Result<T, Failure>;

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

/// Sends a request and takes what was refused for what it is. Every kind of answer goes through here, and none of it
/// depends on the kind, so that it is in the bundle once.
fn send(request: std::result::Result<Request, gloo_net::Error>) -> LocalBoxFuture<'static, Answer<Response>> {
    Box::pin(async move {
        let request = request.map_err(|e| Failure::Unreadable(e.to_string()))?;
        let response = request.send().await.map_err(|_| Failure::Unreachable)?;
        if response.ok() {
            return Ok(response);
        }
        let status = response.status();
        let text = response.text().await.unwrap_or_default();
        Err(problem(status, &text))
    })
}

/// The failure behind a status and a body.
pub(crate) fn problem(status: u16, text: &str) -> Failure {
    match json::read::<Problem>(text) {
        Ok(problem) => Failure::Refused(Box::new(problem)),
        Err(_) if status == 0 || status >= 502 => Failure::Unreachable,
        Err(_) => Failure::Refused(Box::new(Problem {
            kind: String::new(),
            title: words::answered_with(status),
            status,
            code: String::new(),
            detail: String::new(),
            conflicts: Vec::new(),
            current: None,
        })),
    }
}

/// Reads JSON of the server. What cannot be read is an error that the caller shows; the console has the details.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Answer<T> {
    json::read(text).map_err(|error| unreadable(&error.to_string()))
}

/// The failure of a message that cannot be read.
pub(crate) fn unreadable(reason: &str) -> Failure {
    dom::warn(reason);
    Failure::Unreadable(reason.to_owned())
}

/// Sends a request and returns the text of the answer. Not generic, so that it is in the bundle once.
fn send_for_text(
    request: std::result::Result<Request, gloo_net::Error>,
) -> LocalBoxFuture<'static, Answer<String>> {
    Box::pin(async move { send(request).await?.text().await.map_err(|_| Failure::Unreachable) })
}

pub(crate) async fn get<T: DeserializeOwned>(path: &str) -> Answer<T> {
    read(&send_for_text(Request::get(&url(path)).build()).await?)
}

pub(crate) async fn post<T: DeserializeOwned>(path: &str, body: &impl Serialize) -> Answer<T> {
    read(&with_json(Method::Post, path, serde_json::to_string(body)).await?)
}

/// How a request changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Post,
    Put,
}

fn with_json(
    method: Method,
    path: &str,
    body: serde_json::Result<String>,
) -> LocalBoxFuture<'static, Answer<String>> {
    let address = url(path);
    let request = move |body: &String| {
        let request = match method {
            Method::Post => Request::post(&address),
            Method::Put => Request::put(&address),
        };
        (request.header("content-type", "application/json"), JsValue::from_str(body))
    };
    match body {
        Ok(body) => send_change(Box::new(move || request(&body))),
        Err(error) => Box::pin(std::future::ready(Err(Failure::Unreadable(error.to_string())))),
    }
}

/// The header with the id of a request.
pub(crate) const COMMAND: &str = "choir-command";
/// How long a request without an answer waits before it is sent again.
const RESEND: u32 = 400;

/// Sends a request that changes something. If no answer arrives it is sent once more under the same id: the computer
/// answers a request that it has carried out already as the first time.
fn send_change(make: Box<dyn Fn() -> (RequestBuilder, JsValue)>) -> LocalBoxFuture<'static, Answer<String>> {
    let command = ids::command().to_string();
    Box::pin(async move {
        let send = || {
            let (request, body) = make();
            send_for_text(request.header(COMMAND, &command).body(body))
        };
        match send().await {
            Err(Failure::Unreachable) => {
                TimeoutFuture::new(RESEND).await;
                send().await
            }
            answer => answer,
        }
    })
}

/// Sends JSON; the body of the answer does not matter.
pub(crate) fn send_json(
    method: Method,
    path: &str,
    body: &impl Serialize,
) -> LocalBoxFuture<'static, Answer<()>> {
    let answer = with_json(method, path, serde_json::to_string(body));
    Box::pin(async move { answer.await.map(drop) })
}

/// A body of routes that need none.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Empty {}

pub(crate) fn delete(path: &str) -> LocalBoxFuture<'static, Answer<()>> {
    let address = url(path);
    let answer = send_change(Box::new(move || (Request::delete(&address), JsValue::UNDEFINED)));
    Box::pin(async move { answer.await.map(drop) })
}

/// The bytes behind a route, and the hash that the server names them by.
pub(crate) async fn bytes(path: &str) -> Answer<(Vec<u8>, Option<String>)> {
    let response = send(Request::get(&url(path)).build()).await?;
    let hash = response.headers().get("x-choir-hash");
    let bytes = response.binary().await.map_err(|_| Failure::Unreachable)?;
    Ok((bytes, hash))
}

/// Sends bytes as they are.
pub(crate) async fn put_bytes<T: DeserializeOwned>(path: &str, bytes: &[u8]) -> Answer<T> {
    let (address, body) = (url(path), js_sys::Uint8Array::from(bytes));
    let request = move || {
        let request = Request::put(&address).header("content-type", "application/octet-stream");
        (request, body.clone().into())
    };
    read(&send_change(Box::new(request)).await?)
}

/// Sends a file as it is.
pub(crate) async fn post_file<T: DeserializeOwned>(path: &str, kind: &str, file: web_sys::File) -> Answer<T> {
    let (address, kind) = (url(path), kind.to_owned());
    let request = move || (Request::post(&address).header("content-type", &kind), file.clone().into());
    read(&send_change(Box::new(request)).await?)
}

/// Text from outside the API, such as `/health`.
pub(crate) async fn plain(path: &str) -> Answer<String> {
    let response = Request::get(path).send().await.map_err(|_| Failure::Unreachable)?;
    response.text().await.map_err(|_| Failure::Unreachable)
}

/// Runs a future to its end, even if the component that began it goes away.
pub(crate) fn run(future: impl Future<Output = ()> + 'static) {
    dioxus::core::spawn_forever(future);
}

/// Changes what belongs to a window that may have been closed meanwhile.
pub(crate) fn update_if_open<T: 'static>(mut signal: Signal<T>, with: impl FnOnce(&mut T)) {
    if let Ok(mut value) = signal.try_write() {
        with(&mut value);
    }
}

/// A read of a path that repeats when what its closure reads changes. The old value stays until the new one is there.
pub(crate) fn use_fetched<T: DeserializeOwned + 'static>(
    path: impl FnMut() -> String + 'static,
) -> Signal<Option<Answer<T>>> {
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

/// The same for any kind of answer, so that it is in the bundle once.
fn use_text(mut path: Box<dyn FnMut() -> String>, tell: Rc<dyn Fn(Answer<String>)>) {
    let mut turn = use_signal(|| 0u64);
    use_effect(move || {
        let path = path();
        let mine = *turn.peek() + 1;
        turn.set(mine);
        let tell = Rc::clone(&tell);
        spawn(async move {
            let answer = send_for_text(Request::get(&url(&path)).build()).await;
            if *turn.peek() == mine {
                tell(answer);
            }
        });
    });
}
