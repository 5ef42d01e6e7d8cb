//! The OpenAPI document: all routes with their inputs and outputs, from the same table that serves them.
//!
//! Schemas come from the types. Request schemas are inline, because a field that is optional in a request may always be
//! present in a response. Response schemas are in `components`.

use axum::http::Method;
use hypervisor::access::{Access, BodyKind, ResponseKind, Route, SchemaFn};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use shared_types::wire::{FromClient, FromServer, Problem, TokenScope};

const PREFIX: &str = "/api/v1/";

/// Describes the routes of the API, without the page and its files.
pub fn document(routes: &[Route]) -> Value {
    let mut builder = DocumentBuilder::new();
    let mut paths: Map<String, Value> = Map::new();
    for route in routes.iter().filter(|route| is_interface(route)) {
        let operation = builder.operation(route);
        let methods = paths.entry(route.path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "ChoirOS",
            "version": "1",
            "description": "One user's computer. Errors are explained in docs/errors.md.",
            "license": { "name": "MIT", "identifier": "MIT" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": builder.outputs.take_definitions(true),
            "responses": { "Problem": {
                "description": "Why it was not done",
                "content": { "application/problem+json": { "schema": builder.problem } },
            } },
            "securitySchemes": {
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "choir_session_8080",
                    "description": "Set by signing in; the port is in its name. Requests that change something must \
                        come from a page of ours: the Origin is checked.",
                },
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Made in the settings, for scripts. Each has its scopes.",
                },
            },
        },
    });
    add_maximums(&mut document);
    merge_equal_positions(&mut document);
    document
}

/// Whether a route belongs to the API.
pub fn is_interface(route: &Route) -> bool {
    route.path != "/" && !route.path.contains("{*")
}

struct DocumentBuilder {
    inputs: SchemaGenerator,
    outputs: SchemaGenerator,
    problem: Value,
}

impl DocumentBuilder {
    fn new() -> Self {
        let inline = |settings: &mut SchemaSettings| settings.inline_subschemas = true;
        let shared = |settings: &mut SchemaSettings| settings.definitions_path = "/components/schemas".into();
        let inputs = SchemaSettings::draft2020_12().with(inline).into_generator();
        let mut outputs = SchemaSettings::draft2020_12().with(shared).for_serialize().into_generator();
        let problem = outputs.subschema_for::<Problem>().to_value();
        Self { inputs, outputs, problem }
    }

    fn operation(&mut self, route: &Route) -> Value {
        let name = route.path.strip_prefix(PREFIX).unwrap_or(route.path.trim_start_matches('/'));
        let tag = if route.path.starts_with(PREFIX) { name.split('/').next() } else { Some("server") };
        let words: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let method = route.method.as_str().to_ascii_lowercase();
        let mut operation = json!({
            "operationId": format!("{method}_{}", words.replace("__", "_").trim_matches('_')),
            "summary": route.description.summary,
            "tags": [tag],
            "security": security(route.access),
            "x-access": access_name(route.access),
            "responses": self.responses(route.description.response),
        });
        let parameters = self.parameters(route);
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        match route.description.body {
            BodyKind::Empty => {}
            BodyKind::Json(shape) => {
                let schema = self.input_schema(shape);
                operation["requestBody"] =
                    json!({ "required": true, "content": { "application/json": { "schema": schema } } });
            }
            BodyKind::Bytes => {
                operation["requestBody"] = json!({ "content": { "application/octet-stream": {} } });
            }
        }
        if matches!(route.description.response, ResponseKind::WebSocket) {
            operation["x-messages"] = json!({
                "from_server": self.outputs.subschema_for::<FromServer>(),
                "from_client": self.outputs.subschema_for::<FromClient>(),
            });
        }
        operation
    }

    fn input_schema(&mut self, shape: SchemaFn) -> Value {
        shape(&mut self.inputs).to_value()
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let mut parameters = Vec::new();
        let name = route.path.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        if let (Some((name, _)), Some(shape)) = (name, route.description.path) {
            let schema = self.input_schema(shape);
            let in_path = |name: &str, schema: &Value| json!({ "name": name, "in": "path", "required": true, "schema": schema });
            match schema["properties"].as_object() {
                Some(several) => {
                    parameters.extend(several.iter().map(|(name, schema)| in_path(name, schema)))
                }
                None => parameters.push(in_path(name, &schema)),
            }
        }
        let query = route.description.query.map(|shape| self.input_schema(shape)).unwrap_or_default();
        let required = query["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            let required = required.iter().any(|field| field == name);
            let schema = without_null(schema.clone());
            parameters.push(json!({ "name": name, "in": "query", "required": required, "schema": schema }));
        }
        if route.method != Method::GET && !matches!(route.access, Access::Anyone) {
            let resend = if route.description.is_recorded_in_log { "" } else { " within five minutes" };
            parameters.push(json!({
                "name": "Choir-Command",
                "in": "header",
                "description": format!(
                    "The id of this request, minted by the caller; a resend{resend} gets the first answer"
                ),
                "schema": { "type": "string", "format": "uuid" },
            }));
        }
        if matches!(route.description.response, ResponseKind::File) {
            for name in ["If-None-Match", "Range"] {
                parameters.push(json!({ "name": name, "in": "header", "schema": { "type": "string" } }));
            }
        }
        parameters
    }

    fn responses(&mut self, answer: ResponseKind) -> Value {
        let done = |content: Value| json!({ "200": { "description": "Done", "content": content } });
        let mut responses = match answer {
            ResponseKind::Empty => json!({ "204": { "description": "Done" } }),
            ResponseKind::Json(shape) => {
                done(json!({ "application/json": { "schema": shape(&mut self.outputs).to_value() } }))
            }
            ResponseKind::Accepted(shape) => {
                let content =
                    json!({ "application/json": { "schema": shape(&mut self.outputs).to_value() } });
                json!({ "202": { "description": "Begun", "content": content } })
            }
            ResponseKind::Bytes(kind) => done(json!({ kind: {} })),
            ResponseKind::File => json!({
                "200": { "description": "The whole file", "content": { "*/*": {} } },
                "206": { "description": "The requested range", "content": { "*/*": {} } },
                "304": { "description": "Unchanged: it has the tag in If-None-Match" },
            }),
            ResponseKind::WebSocket => {
                json!({ "101": { "description": "The connection becomes a WebSocket" } })
            }
            ResponseKind::Unspecified => json!({}),
        };
        responses["default"] = json!({ "$ref": "#/components/responses/Problem" });
        responses
    }
}

fn security(access: Access) -> Value {
    match access {
        Access::Anyone => json!([]),
        Access::SignedIn(TokenScope::Account) | Access::Owner => json!([{ "session": [] }]),
        Access::SignedIn(scope) => json!([{ "session": [] }, { "token": [scope] }]),
    }
}

fn access_name(access: Access) -> Value {
    match access {
        Access::Anyone => json!("anyone"),
        Access::Owner => json!("owner"),
        Access::SignedIn(scope) => json!(scope),
    }
}

/// A parameter is absent or present, never null.
fn without_null(mut schema: Value) -> Value {
    let null = |value: &Value| value == "null" || value["type"] == "null";
    if let Some(mut choices) = schema.get("anyOf").and_then(Value::as_array).cloned() {
        choices.retain(|choice| !null(choice));
        if let [only] = choices.as_slice() {
            return only.clone();
        }
    }
    if let Some(kinds) = schema["type"].as_array_mut() {
        kinds.retain(|kind| !null(kind));
        if let [only] = kinds.as_slice() {
            schema["type"] = only.clone();
        }
    }
    if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        values.retain(|value| !value.is_null());
    }
    schema
}

/// Adds the limits of each number format.
fn add_maximums(value: &mut Value) {
    let largest = match value.get("format").and_then(Value::as_str) {
        Some("uint32") => Some(u64::from(u32::MAX)),
        Some("uint64") => Some(u64::MAX),
        Some(_) | None => None,
    };
    if let (Some(largest), Some(schema)) = (largest, value.as_object_mut()) {
        schema.entry("maximum").or_insert_with(|| largest.into());
    }
    if value.get("format").and_then(Value::as_str) == Some("int32") {
        value["minimum"] = i32::MIN.into();
        value["maximum"] = i32::MAX.into();
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(add_maximums),
        Value::Array(items) => items.iter_mut().for_each(add_maximums),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Writes a tuple whose members share one schema as an array of fixed length. It accepts the same values, and readers
/// that rewrite `prefixItems` for older drafts (schemathesis 4.32 does, and then refuses the result) can read it.
fn merge_equal_positions(value: &mut Value) {
    if let Some(schema) = value.as_object_mut()
        && !schema.contains_key("items")
        && let Some([first, rest @ ..]) =
            schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice)
        && rest.iter().all(|other| other == first)
        && schema.get("minItems") == schema.get("maxItems")
    {
        let shared = first.clone();
        schema.remove("prefixItems");
        schema.insert("items".to_owned(), shared);
    }
    match value {
        Value::Object(fields) => fields.values_mut().for_each(merge_equal_positions),
        Value::Array(items) => items.iter_mut().for_each(merge_equal_positions),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
