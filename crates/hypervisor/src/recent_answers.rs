//! Answers to the latest requests that change something, so that a request that is sent again gets the first answer.
//!
//! The caller mints the id of a request and sends it in the header `Choir-Command`. Changes in a user's log are recorded
//! under that id and recognised for ever; what is kept here covers all other routes (terminals, tokens, keys), and lasts
//! some minutes. A request whose connection breaks is carried out to its end, and its answer is kept as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use shared_types::{CommandId, UserId};
use tokio::sync::{oneshot, watch};

use crate::problem::ApiError;

/// The header with the id of a request.
pub const COMMAND_HEADER: &str = "choir-command";
/// How long an answer is kept. Clients send a request again within seconds.
const KEPT_FOR: Duration = Duration::from_secs(300);
/// The most answers that are kept for one user. The oldest go first.
const MAX_PER_USER: usize = 64;
/// Longer answers are not kept.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// A request with a longer body is a file, which the log recognises.
const MAX_REQUEST_BYTES: u64 = 1 << 20;

/// Which request an answer belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RequestKey {
    command: CommandId,
    method: Method,
    target: String,
}

/// The answers that are kept, by user.
#[derive(Debug, Default)]
pub struct RecentAnswers {
    users: Mutex<HashMap<UserId, HashMap<RequestKey, Entry>>>,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    state: watch::Receiver<AnswerState>,
}

impl Entry {
    fn is_fresh(&self) -> bool {
        self.since.elapsed() < KEPT_FOR
    }
}

#[derive(Debug, Clone)]
enum AnswerState {
    Pending,
    Kept(KeptAnswer),
    /// The request failed or its answer is long: a resend is carried out again.
    NotKept,
}

#[derive(Debug, Clone)]
struct KeptAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl IntoResponse for KeptAnswer {
    fn into_response(self) -> Response {
        (self.status, self.headers, self.body).into_response()
    }
}

impl RecentAnswers {
    /// Carries out a request of a user, or answers it as the first time if it is a resend.
    pub(crate) async fn answer(self: &Arc<Self>, user: &UserId, request: Request, next: Next) -> Response {
        let key = match key_of(&request) {
            Ok(Some(key)) => key,
            Ok(None) => return next.run(request).await,
            Err(error) => return error.into_response(),
        };
        match self.claim(user, &key) {
            Claim::First(sender) => self.carry_out(user.clone(), key, sender, request, next).await,
            Claim::Resend(mut state) => {
                let settled = state.wait_for(|state| !matches!(state, AnswerState::Pending)).await;
                match settled.map(|state| state.clone()) {
                    Ok(AnswerState::Kept(answer)) => answer.into_response(),
                    Ok(AnswerState::Pending | AnswerState::NotKept) | Err(_) => next.run(request).await,
                }
            }
        }
    }

    /// The request gets a task of its own, because the client of a request that is sent again has usually gone.
    async fn carry_out(
        self: &Arc<Self>,
        user: UserId,
        key: RequestKey,
        sender: watch::Sender<AnswerState>,
        request: Request,
        next: Next,
    ) -> Response {
        let (to_client, from_task) = oneshot::channel();
        let answers = Arc::clone(self);
        tokio::spawn(async move {
            let (state, response) = keep(next.run(request).await).await;
            if !matches!(state, AnswerState::Kept(_)) {
                answers.forget(&user, &key);
            }
            sender.send_replace(state);
            let _ = to_client.send(response);
        });
        from_task.await.unwrap_or_else(|_| ApiError::internal().into_response())
    }

    fn claim(&self, user: &UserId, key: &RequestKey) -> Claim {
        let mut users = self.users();
        if !users.contains_key(user) {
            users.retain(|_, answers| answers.values().any(Entry::is_fresh));
        }
        let answers = users.entry(user.clone()).or_default();
        answers.retain(|_, entry| entry.is_fresh());
        if let Some(entry) = answers.get(key) {
            return Claim::Resend(entry.state.clone());
        }
        if answers.len() >= MAX_PER_USER
            && let Some(oldest) =
                answers.iter().min_by_key(|(_, entry)| entry.since).map(|(key, _)| key.clone())
        {
            answers.remove(&oldest);
        }
        let (sender, state) = watch::channel(AnswerState::Pending);
        answers.insert(key.clone(), Entry { since: Instant::now(), state });
        Claim::First(sender)
    }

    fn forget(&self, user: &UserId, key: &RequestKey) {
        if let Some(answers) = self.users().get_mut(user) {
            answers.remove(key);
        }
    }

    fn users(&self) -> MutexGuard<'_, HashMap<UserId, HashMap<RequestKey, Entry>>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request is the first under its id.
enum Claim {
    First(watch::Sender<AnswerState>),
    Resend(watch::Receiver<AnswerState>),
}

/// The key of a request; `None` if it changes nothing, has no id, or sends a file.
fn key_of(request: &Request) -> Result<Option<RequestKey>, ApiError> {
    let Some(command) = request.headers().get(COMMAND_HEADER) else { return Ok(None) };
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(None);
    }
    let command = command.to_str().ok().and_then(|text| text.parse().ok());
    let command = command.ok_or_else(|| {
        ApiError::new(StatusCode::BAD_REQUEST, "bad_request", "The header Choir-Command is not a UUID.")
    })?;
    let length =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let is_file = length.unwrap_or_else(|| request.body().size_hint().lower()) > MAX_REQUEST_BYTES;
    let key = RequestKey { command, method: request.method().clone(), target: request.uri().to_string() };
    Ok((!is_file).then_some(key))
}

/// Keeps a copy of a short answer to a request that succeeded. One that was refused changed nothing.
async fn keep(response: Response) -> (AnswerState, Response) {
    let is_short = response.body().size_hint().exact().is_some_and(|size| size <= MAX_ANSWER_BYTES as u64);
    if !response.status().is_success() || !is_short {
        return (AnswerState::NotKept, response);
    }
    let (head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, MAX_ANSWER_BYTES).await else {
        return (AnswerState::NotKept, ApiError::internal().into_response());
    };
    let kept = KeptAnswer { status: head.status, headers: head.headers.clone(), body: body.clone() };
    (AnswerState::Kept(kept), Response::from_parts(head, Body::from(body)))
}
