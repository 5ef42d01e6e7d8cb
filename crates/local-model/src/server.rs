//! The model as a provider: OpenAI's chat completions over HTTP on loopback, protected by a bearer token.

mod reply;

use std::time::Duration;

use axum::extract::{DefaultBodyLimit, Request as HttpRequest, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::json;
use tokio::sync::mpsc;

use crate::engine::EngineError;
use crate::wire::{self, CompletionRequest};
use crate::worker::{AnswerError, AnswerEvent, Worker, WorkerUnavailable};
use reply::Reply;

/// Far larger than any conversation that a small model can read.
const LARGEST_BODY: usize = 4 << 20;

#[derive(Clone)]
struct Service {
    worker: Worker,
    bearer: String,
    model: String,
}

/// All routes. `/health` needs no token; everything else does.
pub(crate) fn router(worker: Worker, bearer: String, model: String) -> Router {
    let service = Service { worker, bearer, model };
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .route("/speed", post(speed))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(middleware::from_fn_with_state(service.clone(), authorize))
        .route("/health", get(async || Json(json!({ "status": "ok" }))))
        .with_state(service)
}

async fn authorize(State(service): State<Service>, request: HttpRequest, next: Next) -> Response {
    let given = request.headers().get(header::AUTHORIZATION).map(|value| value.as_bytes());
    let expected = format!("Bearer {}", service.bearer);
    if given.is_some_and(|given| same(given, expected.as_bytes())) {
        return next.run(request).await;
    }
    failure(
        StatusCode::UNAUTHORIZED,
        "authentication_error",
        "invalid_api_key",
        "the token is missing or wrong",
    )
}

/// Compares in constant time.
fn same(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}

async fn models(State(service): State<Service>) -> Response {
    let model = json!({ "id": service.model, "object": "model", "owned_by": "local" });
    Json(json!({ "object": "list", "data": [model] })).into_response()
}

/// Measures the speed of the model; takes a few seconds.
async fn speed(State(service): State<Service>) -> Response {
    match service.worker.measure().await {
        Ok(speed) => Json(speed).into_response(),
        Err(why) => unavailable(why),
    }
}

async fn complete(
    State(service): State<Service>,
    body: Result<Json<CompletionRequest>, axum::extract::rejection::JsonRejection>,
) -> Response {
    let request = match body {
        Ok(Json(request)) => request,
        Err(error) => return bad_request("invalid_json", &error.body_text()),
    };
    let is_stream = request.stream;
    let model = if request.model.is_empty() { service.model.clone() } else { request.model.clone() };
    let mut events = match service.worker.answer(request) {
        Ok(events) => events,
        Err(why) => return unavailable(why),
    };
    // Wait for the first event, so that an invalid request gets an error status.
    match events.recv().await {
        Some(AnswerEvent::Failed(error)) => return failed(&error),
        Some(AnswerEvent::Accepted | AnswerEvent::Delta(_) | AnswerEvent::Done(_)) => {}
        None => return unavailable(WorkerUnavailable::Stopped),
    }
    let reply = Reply::new(model);
    if is_stream { streamed(reply, events) } else { whole(reply, events).await }
}

/// Streams server-sent events. When the client disconnects, `events` is dropped and the model stops.
fn streamed(mut reply: Reply, events: mpsc::Receiver<AnswerEvent>) -> Response {
    let first = vec![reply.opening()];
    let chunks =
        stream::unfold((reply, events, first, false), async |(mut reply, mut events, mut ready, is_over)| {
            loop {
                if !ready.is_empty() {
                    let chunk = ready.remove(0);
                    return Some((chunk, (reply, events, ready, is_over)));
                }
                if is_over {
                    return None;
                }
                let (chunks, is_last) = reply.chunks(events.recv().await);
                if is_last {
                    events.close();
                    return chunks
                        .first()
                        .cloned()
                        .map(|first| (first, (reply, events, chunks[1..].to_vec(), true)));
                }
                ready = chunks;
            }
        });
    let chunks =
        futures_util::StreamExt::map(chunks, |chunk| Ok::<_, axum::Error>(sse::Event::default().data(chunk)));
    Sse::new(chunks).keep_alive(KeepAlive::new().interval(Duration::from_secs(5))).into_response()
}

async fn whole(mut reply: Reply, mut events: mpsc::Receiver<AnswerEvent>) -> Response {
    loop {
        match events.recv().await {
            Some(AnswerEvent::Accepted) => {}
            Some(AnswerEvent::Delta(delta)) => reply.collect(delta),
            Some(AnswerEvent::Done(outcome)) => return Json(reply.whole(&outcome)).into_response(),
            Some(AnswerEvent::Failed(error)) => return failed(&error),
            None => return unavailable(WorkerUnavailable::Stopped),
        }
    }
}

fn failed(error: &AnswerError) -> Response {
    match error {
        AnswerError::Refused(refusal) => bad_request("invalid_request", &refusal.to_string()),
        AnswerError::Engine(error @ EngineError::TooLong { .. }) => {
            bad_request("context_length_exceeded", &error.to_string())
        }
        AnswerError::Engine(error) => {
            let message = reply::with_causes(error);
            failure(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "model_failed", &message)
        }
    }
}

fn bad_request(code: &str, message: &str) -> Response {
    failure(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
}

fn unavailable(why: WorkerUnavailable) -> Response {
    let code = match why {
        WorkerUnavailable::Busy => "overloaded",
        WorkerUnavailable::Stopped => "model_stopped",
    };
    failure(StatusCode::SERVICE_UNAVAILABLE, "server_error", code, &why.to_string())
}

fn failure(status: StatusCode, kind: &str, code: &str, message: &str) -> Response {
    (status, Json(wire::error(kind, code, message))).into_response()
}

#[cfg(test)]
mod tests;
