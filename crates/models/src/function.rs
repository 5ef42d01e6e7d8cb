//! Typed functions: a prompt with a type that goes in and a type that comes out. The answer is held to the schema of
//! its type, asked for once more if it does not match, and then given up.

use std::{marker::PhantomData, sync::Arc};

use schemars::{JsonSchema, SchemaGenerator};
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    Chosen, ErrorClass, Gateway, Meter, ModelError, Turn,
    chat::{AnswerForm, Message, Request},
};

/// A question of one kind.
#[derive(Debug, Clone, Copy)]
pub struct Function<I, O> {
    prompt: &'static str,
    max_output: u32,
    types: PhantomData<fn(I) -> O>,
}

/// What came out, and the turn that it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer<O> {
    pub value: O,
    pub turn: Turn,
}

impl<I: Serialize, O: DeserializeOwned + JsonSchema> Function<I, O> {
    pub const fn new(prompt: &'static str, max_output: u32) -> Self {
        Self { prompt, max_output, types: PhantomData }
    }

    /// What is asked, for those who record it or count its worst case.
    pub fn request(&self, input: &I) -> Result<Request, ModelError> {
        let text = serde_json::to_string_pretty(input).map_err(|error| {
            failed("function", ErrorClass::BadRequest, format!("The input is no JSON: {error}"))
        })?;
        let schema = SchemaGenerator::default().into_root_schema_for::<O>().to_value();
        Ok(Request {
            system: self.prompt.into(),
            messages: vec![Message::User { text }],
            tools: Vec::new(),
            max_output: self.max_output,
            answer: AnswerForm::Json { schema },
        })
    }

    pub async fn call(&self, gateway: &Gateway, chosen: &Chosen, input: &I) -> Result<Answer<O>, ModelError> {
        let turn =
            gateway.take_turn(chosen, &self.request(input)?, Arc::new(|_| {}), &Meter::default()).await?;
        let value = serde_json::from_str(&turn.reply.text).map_err(|error| {
            failed(
                &turn.model,
                ErrorClass::Unusable,
                format!("The answer does not have the form asked for: {error}"),
            )
        })?;
        Ok(Answer { value, turn })
    }
}

fn failed(model: &str, class: ErrorClass, message: String) -> ModelError {
    ModelError::new(model, class, message)
}
