//! What a route takes and gives, read off the types of its handler, so that it cannot be forgotten or be untrue.
//!
//! Only two things are written by hand: a summary, and what an answer is whose type does not say it.

use axum::body::Body;
use axum::extract::Path;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::{JsonSchema, Schema, SchemaGenerator};

/// Makes the schema of a type.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// The description of a route.
#[derive(Debug, Clone, Copy)]
pub struct About {
    pub summary: &'static str,
    /// The part of the path that is in braces.
    pub path: Option<Shape>,
    pub query: Option<Shape>,
    pub body: Taken,
    pub answer: Given,
}

/// What a body is.
#[derive(Debug, Clone, Copy)]
pub enum Taken {
    Nothing,
    Json(Shape),
    Bytes,
}

/// What an answer is, if all goes well.
#[derive(Debug, Clone, Copy)]
pub enum Given {
    /// Nothing is known. No route of the interface may stay like this.
    Unstated,
    Nothing,
    Json(Shape),
    /// JSON of something that has only begun.
    Accepted(Shape),
    /// Bytes of a media type.
    Bytes(&'static str),
    /// Bytes of a file: whole, in part, or not again.
    File,
    Socket,
}

impl About {
    pub fn of<H: Described<T>, T>(summary: &'static str) -> Self {
        let mut about =
            Self { summary, path: None, query: None, body: Taken::Nothing, answer: Given::Unstated };
        H::describe(&mut about);
        about
    }
}

/// Something that a handler takes.
pub trait Takes {
    fn describe(_: &mut About) {}
}

/// Something that a handler answers with.
pub trait Gives {
    const GIVEN: Given;
}

/// A handler whose parts all say what they are.
pub trait Described<T> {
    fn describe(about: &mut About);
}

impl Takes for HeaderMap {}
impl Takes for Uri {}
impl Takes for Method {}
impl<T> Takes for Extension<T> {}
impl<T> Takes for Option<Extension<T>> {}

impl<T: JsonSchema> Takes for Path<T> {
    fn describe(about: &mut About) {
        about.path = Some(SchemaGenerator::subschema_for::<T>);
    }
}

impl Takes for Body {
    fn describe(about: &mut About) {
        about.body = Taken::Bytes;
    }
}

impl Takes for Result<WebSocketUpgrade, WebSocketUpgradeRejection> {
    fn describe(about: &mut About) {
        about.answer = Given::Socket;
    }
}

impl<T: JsonSchema> Gives for Json<T> {
    const GIVEN: Given = Given::Json(SchemaGenerator::subschema_for::<T>);
}

/// It was taken on and goes on after the answer, which is 202.
#[derive(Debug)]
pub struct Accepted<T>(pub T);

impl<T: JsonSchema> Gives for Accepted<T> {
    const GIVEN: Given = Given::Accepted(SchemaGenerator::subschema_for::<T>);
}

impl<T: serde::Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        (StatusCode::ACCEPTED, Json(self.0)).into_response()
    }
}

/// A status alone: it is done, and there is nothing to say.
impl Gives for StatusCode {
    const GIVEN: Given = Given::Nothing;
}

impl Gives for Response {
    const GIVEN: Given = Given::Unstated;
}

impl Gives for &'static str {
    const GIVEN: Given = Given::Bytes("text/plain");
}

impl<T: Gives, E> Gives for Result<T, E> {
    const GIVEN: Given = T::GIVEN;
}

impl<T: Gives, const N: usize> Gives for ([(HeaderName, &'static str); N], T) {
    const GIVEN: Given = T::GIVEN;
}

impl<F, Fut> Described<((),)> for F
where
    F: FnOnce() -> Fut,
    Fut: Future<Output: Gives>,
{
    fn describe(about: &mut About) {
        about.answer = <Fut::Output as Gives>::GIVEN;
    }
}

macro_rules! described {
    ($($part:ident)*) => {
        impl<F, Fut, M, $($part: Takes),*> Described<(M, $($part,)*)> for F
        where
            F: FnOnce($($part),*) -> Fut,
            Fut: Future<Output: Gives>,
        {
            fn describe(about: &mut About) {
                about.answer = <Fut::Output as Gives>::GIVEN;
                $($part::describe(about);)*
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
