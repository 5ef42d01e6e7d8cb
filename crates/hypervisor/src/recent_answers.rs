//! Answers to the latest requests that change something outside the log, so that a request that is sent again gets the
//! first answer.
//!
//! The caller mints the id of a request and sends it in the header `Choir-Command`. Changes in a user's log are recorded
//! under that id and recognised for ever; what is kept here covers all other routes (terminals, tokens, keys), and lasts
//! some minutes. A request whose connection breaks is carried out to its end, and its answer is kept as well.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, SET_COOKIE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use shared_types::{CommandId, UserId};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

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

/// The sender of a request: a user, by a session or a token.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Sender {
    pub(crate) user: UserId,
    pub(crate) credential: String,
}

/// Which request an answer belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct RequestKey {
    sender: Sender,
    command: CommandId,
    method: Method,
    target: String,
}

type Entries = HashMap<RequestKey, Entry>;

/// The answers that are kept, and the requests that are being carried out.
#[derive(Debug, Default)]
pub struct RecentAnswers {
    entries: Mutex<Entries>,
    requests: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    state: watch::Receiver<AnswerState>,
}

impl Entry {
    fn is_pending(&self) -> bool {
        matches!(*self.state.borrow(), AnswerState::Pending)
    }
}

#[derive(Debug, Clone)]
enum AnswerState {
    Pending,
    Kept(KeptAnswer),
    /// The request failed or its answer is long: a resend is carried out again.
    NotKept,
}

#[derive(Clone)]
struct KeptAnswer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// An answer may hold a secret, such as a new token.
impl fmt::Debug for KeptAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptAnswer").field("status", &self.status).finish_non_exhaustive()
    }
}

impl IntoResponse for KeptAnswer {
    fn into_response(self) -> Response {
        (self.status, self.headers, self.body).into_response()
    }
}

impl RecentAnswers {
    /// Carries out a request, or answers it as the first time if it is a resend.
    pub(crate) async fn answer(self: &Arc<Self>, sender: Sender, request: Request, next: Next) -> Response {
        let key = match key_of(sender, &request) {
            Ok(Some(key)) => key,
            Ok(None) => return next.run(request).await,
            Err(error) => return error.into_response(),
        };
        loop {
            let mut state = match self.claim(&key) {
                Claim::First(state) => {
                    let answer = self.start(key, state, request, next).await;
                    return answer.unwrap_or_else(|_| ApiError::internal().into_response());
                }
                Claim::Resend(state) => state,
            };
            let settled = state.wait_for(|state| !matches!(state, AnswerState::Pending)).await;
            match settled.map(|state| state.clone()) {
                Ok(AnswerState::Kept(answer)) => return answer.into_response(),
                Ok(AnswerState::Pending | AnswerState::NotKept) => {}
                Err(_) => self.forget(&key, &state),
            }
        }
    }

    /// Ends requests that are still being carried out, before their computers are closed.
    pub(crate) fn stop(&self) {
        self.requests().abort_all();
    }

    /// The request gets a task of its own, because the client of a request that is sent again has usually gone. The task
    /// stays until the answer is forgotten.
    fn start(
        self: &Arc<Self>,
        key: RequestKey,
        state: watch::Sender<AnswerState>,
        request: Request,
        next: Next,
    ) -> oneshot::Receiver<Response> {
        let (to_client, from_task) = oneshot::channel();
        let answers = Arc::clone(self);
        let mut requests = self.requests();
        while requests.try_join_next().is_some() {}
        requests.spawn(async move {
            let (settled, response) = keep(next.run(request).await).await;
            let is_kept = matches!(settled, AnswerState::Kept(_));
            if !is_kept {
                answers.forget(&key, &state.subscribe());
            }
            state.send_replace(settled);
            let _ = to_client.send(response);
            if is_kept {
                tokio::time::sleep(KEPT_FOR).await;
                answers.forget(&key, &state.subscribe());
            }
        });
        from_task
    }

    fn claim(&self, key: &RequestKey) -> Claim {
        let mut entries = self.entries();
        if let Some(entry) = entries.get(key) {
            return Claim::Resend(entry.state.clone());
        }
        let own = |(other, entry): &(&RequestKey, &Entry)| {
            other.sender.user == key.sender.user && !entry.is_pending()
        };
        if entries.iter().filter(own).count() >= MAX_PER_USER
            && let Some(oldest) = entries.iter().filter(own).min_by_key(|(_, entry)| entry.since)
        {
            let oldest = oldest.0.clone();
            entries.remove(&oldest);
        }
        let (sender, state) = watch::channel(AnswerState::Pending);
        entries.insert(key.clone(), Entry { since: Instant::now(), state });
        Claim::First(sender)
    }

    /// Removes an entry, unless the request was claimed anew meanwhile.
    fn forget(&self, key: &RequestKey, state: &watch::Receiver<AnswerState>) {
        let mut entries = self.entries();
        if entries.get(key).is_some_and(|entry| entry.state.same_channel(state)) {
            entries.remove(key);
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request is the first under its id.
enum Claim {
    First(watch::Sender<AnswerState>),
    Resend(watch::Receiver<AnswerState>),
}

/// The key of a request; `None` if it changes nothing, has no id, or sends a file.
fn key_of(sender: Sender, request: &Request) -> Result<Option<RequestKey>, ApiError> {
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
    let (method, target) = (request.method().clone(), request.uri().to_string());
    Ok((!is_file).then_some(RequestKey { sender, command, method, target }))
}

/// Keeps a copy of a short answer to a request that succeeded. One that was refused changed nothing, and a cookie is for
/// the client that gets it first.
async fn keep(response: Response) -> (AnswerState, Response) {
    let is_short = response.body().size_hint().exact().is_some_and(|size| size <= MAX_ANSWER_BYTES as u64);
    let sets_cookie = response.headers().contains_key(SET_COOKIE);
    if !response.status().is_success() || !is_short || sets_cookie {
        return (AnswerState::NotKept, response);
    }
    let (head, body) = response.into_parts();
    let Ok(body) = to_bytes(body, MAX_ANSWER_BYTES).await else {
        return (AnswerState::NotKept, ApiError::internal().into_response());
    };
    let kept = KeptAnswer { status: head.status, headers: head.headers.clone(), body: body.clone() };
    (AnswerState::Kept(kept), Response::from_parts(head, Body::from(body)))
}
