//! Typed requests to the computer. Every failure is a sentence for the person, with the server's code behind it.

use std::rc::Rc;

use dioxus::prelude::*;
use futures_util::future::LocalBoxFuture;
use gloo_net::http::{Request, Response};
use serde::Serialize;
use serde_json::Value;
use shared_types::wire::Problem;

use crate::dom::encode;
use crate::wire::FromJson;

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

impl Failure {
    /// For the person.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Unreachable => {
                "The computer does not answer. Nothing was lost; try again in a moment.".into()
            }
            Self::Unreadable(reason) => format!("The answer could not be read ({reason}). Reload the page."),
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
    match json(text) {
        Ok(value) if value.get("title").is_some() => Failure::Refused(Box::new(Problem::from_json(&value))),
        _ if status == 0 || status >= 502 => Failure::Unreachable,
        _ => Failure::Refused(Box::new(Problem {
            kind: String::new(),
            title: format!("The computer answered {status}."),
            status,
            code: String::new(),
            detail: String::new(),
            conflicts: Vec::new(),
            current: None,
        })),
    }
}

/// Whatever was said, understood as far as it is JSON.
pub(crate) fn json(text: &str) -> Answer<Value> {
    let text = if text.is_empty() { "null" } else { text };
    serde_json::from_str(text).map_err(|e| Failure::Unreadable(e.to_string()))
}

/// The same for the answer to a request.
fn send_for_json(
    request: std::result::Result<Request, gloo_net::Error>,
) -> LocalBoxFuture<'static, Answer<Value>> {
    Box::pin(async move {
        let text = send(request).await?.text().await.map_err(|_| Failure::Unreachable)?;
        json(&text)
    })
}

pub(crate) async fn get<T: FromJson>(path: &str) -> Answer<T> {
    Ok(T::from_json(&send_for_json(Request::get(&url(path)).build()).await?))
}

pub(crate) async fn post<T: FromJson>(path: &str, body: &impl Serialize) -> Answer<T> {
    let body = serde_json::to_string(body).map_err(|e| Failure::Unreadable(e.to_string()))?;
    Ok(T::from_json(&post_text(path, body).await?))
}

fn post_text(path: &str, body: String) -> LocalBoxFuture<'static, Answer<Value>> {
    send_for_json(Request::post(&url(path)).header("content-type", "application/json").body(body))
}

/// How a [`call`] is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    Post,
    Put,
    Delete,
}

/// A request with JSON for JSON, in the bundle once.
pub(crate) fn call(method: Method, path: String, body: Value) -> LocalBoxFuture<'static, Answer<Value>> {
    let address = url(&path);
    let request = match method {
        Method::Post => Request::post(&address),
        Method::Put => Request::put(&address),
        Method::Delete => Request::delete(&address),
    };
    let request = if body.is_null() {
        request.build()
    } else {
        request.header("content-type", "application/json").body(body.to_string())
    };
    send_for_json(request)
}

pub(crate) async fn delete(path: &str) -> Answer<()> {
    send(Request::delete(&url(path)).build()).await.map(drop)
}

/// The bytes behind a route, and the hash that the server names them by.
pub(crate) async fn bytes(path: &str) -> Answer<(Vec<u8>, Option<String>)> {
    let response = send(Request::get(&url(path)).build()).await?;
    let hash = response.headers().get("x-choir-hash");
    let bytes = response.binary().await.map_err(|_| Failure::Unreachable)?;
    Ok((bytes, hash))
}

/// Sends bytes as they are.
pub(crate) async fn put_bytes<T: FromJson>(path: &str, bytes: &[u8]) -> Answer<T> {
    let body = js_sys::Uint8Array::from(bytes);
    let request = Request::put(&url(path)).header("content-type", "application/octet-stream").body(body);
    Ok(T::from_json(&send_for_json(request).await?))
}

/// Sends a file as it is.
pub(crate) async fn post_file<T: FromJson>(path: &str, kind: &str, file: web_sys::File) -> Answer<T> {
    let request = Request::post(&url(path)).header("content-type", kind).body(file);
    Ok(T::from_json(&send_for_json(request).await?))
}

/// Text from outside the API, such as `/health`.
pub(crate) async fn plain(path: &str) -> Answer<String> {
    let response = Request::get(path).send().await.map_err(|_| Failure::Unreachable)?;
    response.text().await.map_err(|_| Failure::Unreachable)
}

/// Runs something to its end, whatever happens to the component that began it.
pub(crate) fn run(future: impl Future<Output = ()> + 'static) {
    dioxus::core::spawn_forever(future);
}

/// Changes what belongs to a window that may have been closed meanwhile.
pub(crate) fn put<T: 'static>(mut signal: Signal<T>, with: impl FnOnce(&mut T)) {
    if let Ok(mut value) = signal.try_write() {
        with(&mut value);
    }
}

/// A read of a path that repeats when what its closure reads changes. The old value stays until the new one is there.
pub(crate) fn use_fetched<T: FromJson + 'static>(
    path: impl FnMut() -> String + 'static,
) -> Signal<Option<Answer<T>>> {
    let value = use_signal(|| None);
    use_text(
        Box::new(path),
        Rc::new(move |answer| {
            let mut value = value;
            value.set(Some(answer.map(|json| T::from_json(&json))));
        }),
    );
    value
}

/// The same for any kind of answer, so that it is in the bundle once.
fn use_text(mut path: Box<dyn FnMut() -> String>, tell: Rc<dyn Fn(Answer<Value>)>) {
    let mut turn = use_signal(|| 0u64);
    use_effect(move || {
        let path = path();
        let mine = *turn.peek() + 1;
        turn.set(mine);
        let tell = Rc::clone(&tell);
        spawn(async move {
            let answer = send_for_json(Request::get(&url(&path)).build()).await;
            if *turn.peek() == mine {
                tell(answer);
            }
        });
    });
}
