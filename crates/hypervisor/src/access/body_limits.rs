//! How large a request may be: uploads and imports up to a file's limit, all others up to the default.

use axum::RequestExt;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;

use crate::problem::ApiError;

/// The default limit for request bodies. [`Route::accepts_file`] raises it.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// The limit for request bodies that are files.
pub(super) const MAX_FILE_BYTES: usize = 4 << 30;

/// Refuses a file that is too large before its bytes are sent, if the client sends `Content-Length`.
pub(super) async fn check_content_length(request: Request) -> Result<Request, ApiError> {
    let length =
        request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if length.is_some_and(|length| length > MAX_FILE_BYTES) {
        return Err(ApiError::too_large(format!(
            "At most {} GiB can be sent at once.",
            MAX_FILE_BYTES >> 30
        )));
    }
    Ok(request)
}

pub(super) async fn limit_body(request: Request) -> Request {
    request.with_limited_body()
}
