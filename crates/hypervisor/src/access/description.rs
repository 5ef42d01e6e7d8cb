//! Route descriptions for the OpenAPI document. Parameters, bodies and responses are read from the handler's types, so
//! a description cannot be missing or wrong.
//!
//! Two things are written by hand: the summary, and the response of a handler that returns a bare [`Response`].

use axum::body::Body;
use axum::extract::Path;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Generates the JSON schema of a type.
pub type SchemaFn = fn(&mut SchemaGenerator) -> Schema;

/// The description of a route.
#[derive(Debug, Clone, Copy)]
pub struct RouteDescription {
    pub summary: &'static str,
    /// The parameters in the path.
    pub path: Option<SchemaFn>,
    pub query: Option<SchemaFn>,
    pub body: BodyKind,
    pub response: ResponseKind,
    /// Whether the log records the request with its id, so that a resend is recognised for ever.
    pub is_recorded_in_log: bool,
}

/// The format of a request body.
#[derive(Debug, Clone, Copy)]
pub enum BodyKind {
    Empty,
    Json(SchemaFn),
    Bytes,
}

/// The format of a successful response.
#[derive(Debug, Clone, Copy)]
pub enum ResponseKind {
    /// Not described. No route under `/api` may leave it so.
    Unspecified,
    Empty,
    Json(SchemaFn),
    /// JSON with status 202: the work continues after the response.
    Accepted(SchemaFn),
    /// Bytes of this media type.
    Bytes(&'static str),
    /// A file, with support for ranges and `If-None-Match`.
    File,
    WebSocket,
}

impl RouteDescription {
    pub fn of_handler<H: DescribedHandler<T>, T>(summary: &'static str) -> Self {
        let mut description = Self {
            summary,
            path: None,
            query: None,
            body: BodyKind::Empty,
            response: ResponseKind::Unspecified,
            is_recorded_in_log: false,
        };
        H::describe(&mut description);
        description
    }
}

/// An extractor that adds itself to the description of its route.
pub trait DescribedExtractor {
    fn describe(_: &mut RouteDescription) {}
}

/// A response type that states its format.
pub trait DescribedResponse {
    const KIND: ResponseKind;
}

/// A handler whose arguments and return type all describe themselves.
pub trait DescribedHandler<T> {
    fn describe(description: &mut RouteDescription);
}

impl DescribedExtractor for HeaderMap {}
impl DescribedExtractor for Uri {}
impl DescribedExtractor for Method {}
impl<T> DescribedExtractor for Extension<T> {}
impl<T> DescribedExtractor for Option<Extension<T>> {}

impl<T: JsonSchema> DescribedExtractor for Path<T> {
    fn describe(description: &mut RouteDescription) {
        description.path = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl DescribedExtractor for Body {
    fn describe(description: &mut RouteDescription) {
        description.body = BodyKind::Bytes;
    }
}

impl DescribedExtractor for Result<WebSocketUpgrade, WebSocketUpgradeRejection> {
    fn describe(description: &mut RouteDescription) {
        description.response = ResponseKind::WebSocket;
    }
}

impl<T: JsonSchema> DescribedResponse for Json<T> {
    const KIND: ResponseKind = ResponseKind::Json(SchemaGenerator::subschema_for::<T>);
}

/// A response with status 202: the request was accepted, and the work continues.
#[derive(Debug)]
pub struct Accepted<T>(pub T);

impl<T: JsonSchema> DescribedResponse for Accepted<T> {
    const KIND: ResponseKind = ResponseKind::Accepted(SchemaGenerator::subschema_for::<T>);
}

impl<T: serde::Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

/// A status without a body.
impl DescribedResponse for StatusCode {
    const KIND: ResponseKind = ResponseKind::Empty;
}

impl DescribedResponse for Response {
    const KIND: ResponseKind = ResponseKind::Unspecified;
}

impl DescribedResponse for &'static str {
    const KIND: ResponseKind = ResponseKind::Bytes("text/plain");
}

impl<T: DescribedResponse, E> DescribedResponse for Result<T, E> {
    const KIND: ResponseKind = T::KIND;
}

impl<T: DescribedResponse, const N: usize> DescribedResponse for ([(HeaderName, &'static str); N], T) {
    const KIND: ResponseKind = T::KIND;
}

impl<F, Fut> DescribedHandler<((),)> for F
where
    F: FnOnce() -> Fut,
    Fut: Future<Output: DescribedResponse>,
{
    fn describe(description: &mut RouteDescription) {
        description.response = <Fut::Output as DescribedResponse>::KIND;
    }
}

macro_rules! described {
    ($($part:ident)*) => {
        impl<F, Fut, M, $($part: DescribedExtractor),*> DescribedHandler<(M, $($part,)*)> for F
        where
            F: FnOnce($($part),*) -> Fut,
            Fut: Future<Output: DescribedResponse>,
        {
            fn describe(description: &mut RouteDescription) {
                description.response = <Fut::Output as DescribedResponse>::KIND;
                $($part::describe(description);)*
            }
        }
    };
}

described!(A);
described!(A B);
described!(A B C);
described!(A B C D);
described!(A B C D E);
described!(A B C D E G);
