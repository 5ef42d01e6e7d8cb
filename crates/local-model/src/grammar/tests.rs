//! Texts that grammars accept and reject.

use serde_json::{Value, json};

use super::*;

/// Whether the grammar accepts this text, fed byte by byte as well as at once.
fn takes(state: &GrammarState, text: &str) -> bool {
    let mut slowly = Some(state.clone());
    for byte in text.bytes() {
        slowly = slowly.and_then(|state| state.advance(&[byte]));
    }
    let at_once = state.advance(text.as_bytes()).is_some_and(|state| state.may_end());
    assert_eq!(slowly.is_some_and(|state| state.may_end()), at_once, "{text}");
    at_once
}

fn check(schema: &Value, good: &[&str], bad: &[&str]) {
    let state = schema_grammar(schema);
    for text in good {
        assert!(takes(&state, text), "{schema} refuses {text}");
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
    for text in bad {
        assert!(!takes(&state, text), "{schema} takes {text}");
    }
}

#[test]
fn objects_have_only_their_own_properties() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "integer" }, "c": { "type": "boolean" } },
        "required": ["b"],
    });
    check(
        &schema,
        &[
            r#"{"b": 1}"#,
            r#"{"a": "x", "b": -20}"#,
            r#"{"b": 0, "c": true}"#,
            r#"{"a": "", "b": 7, "c": false}"#,
        ],
        &[
            "{}",
            r#"{"a": "x"}"#,
            r#"{"b": 1, "d": 2}"#,
            r#"{"b":1}"#,
            r#"{"b": 01}"#,
            r#"{"b": 1.5}"#,
            r#"{, "b": 1}"#,
        ],
    );
}

#[test]
fn strings_are_json_strings_within_their_length_limits() {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": 3 });
    check(
        &schema,
        &[r#""a""#, r#""äöü""#, r#""\n\"\u00e4""#, r#""🎵""#],
        &[r#""""#, r#""abcd""#, "\"\n\"", r#""\x""#, r#"""#],
    );
}

#[test]
fn arrays_keep_their_length_limits() {
    let items = json!({ "type": "number" });
    let between = json!({ "type": "array", "items": items, "minItems": 1, "maxItems": 2 });
    check(&between, &["[1]", "[1.5, -2]"], &["[]", "[1, 2, 3]", "[1,2]", "[1, ]"]);
    check(&json!({ "type": "array", "items": items }), &["[]", "[1, 2, 3, 4]"], &["[true]", "["]);
    check(&json!({ "type": "array", "items": items, "minItems": 2 }), &["[1, 2]", "[1, 2, 3]"], &["[1]"]);
}

#[test]
fn enums_and_constants_are_literal() {
    check(&json!({ "enum": ["low", "high", 3, null] }), &[r#""low""#, "3", "null"], &[r#""mid""#, "4"]);
    check(&json!({ "const": { "a": [1, 2] } }), &[r#"{"a": [1, 2]}"#], &["{}"]);
    let either = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    check(&either, &[r#""x""#, "null"], &["1"]);
    check(&json!({ "type": ["integer", "null"] }), &["1", "null"], &[r#""x""#]);
}

#[test]
fn recursive_references_are_followed() {
    let schema = json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/Tree" } },
        "required": ["tree"],
        "$defs": { "Tree": {
            "type": "object",
            "properties": { "name": { "type": "string" }, "under": { "$ref": "#/$defs/Tree" } },
            "required": ["name"],
        } },
    });
    check(&schema, &[r#"{"tree": {"name": "a", "under": {"name": "b"}}}"#], &[r#"{"tree": {"under": 1}}"#]);
}

#[test]
fn a_schema_that_branches_into_itself_ends_in_any_json() {
    let properties: serde_json::Map<String, Value> =
        (0..20).map(|number| (format!("p{number}"), json!({ "$ref": "#" }))).collect();
    check(
        &json!({ "type": "object", "properties": properties }),
        &[r#"{"p0": {"p1": {}}}"#, r#"{"p3": {"p4": {"p5": {}}}, "p9": {}}"#],
        &[r#"{"p20": {}}"#, "[]"],
    );
}

#[test]
fn a_missing_schema_allows_any_json() {
    let good = [r#"{"a": [1, {"b": null}], "c": "d"}"#, "[]", "{}", "true", "-0.25"];
    check(&json!({}), &good, &["{a: 1}", "[1,2]", "nul"]);
    check(&json!({ "type": "object" }), &[r#"{"x": {"y": []}}"#, "{}"], &["[]"]);
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    check(&counts, &[r#"{"a": 1, "b": 2}"#], &[r#"{"a": "b"}"#]);
}

#[test]
fn a_call_has_a_known_tool_and_matches_its_schema() {
    let read =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let none = json!({ "type": "object", "properties": {} });
    let state = call_or_say_grammar([("read", &read), ("ready", &none)], true);
    assert!(takes(&state, r#"{"name": "read", "arguments": {"path": "a"}}"#));
    assert!(takes(&state, r#"{"name": "ready", "arguments": {}}"#));
    assert!(takes(&state, r#"{"say": "done"}"#));
    assert!(!takes(&state, r#"{"name": "ready", "arguments": {"path": "a"}}"#));
    assert!(!takes(&state, r#"{"name": "write", "arguments": {}}"#));
    let only = call_or_say_grammar([("read", &read), ("ready", &none)], false);
    assert!(!takes(&only, r#"{"say": "done"}"#));
}

#[test]
fn forced_bytes_are_known() {
    let read =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let state = call_or_say_grammar([("read", &read)], false);
    assert_eq!(state.forced_bytes(), br#"{"name": "read", "arguments": {"path": ""#);
    let inside = state.advance(br#"{"name": "read", "arguments": {"path": "a"#).unwrap();
    assert_eq!(inside.forced_bytes(), b"");
    let closed = inside.advance(b"\"").unwrap();
    assert_eq!(closed.forced_bytes(), b"}}");
    assert!(closed.advance(b"}}").unwrap().is_complete());
    assert_eq!(call_or_say_grammar([("read", &read)], true).forced_bytes(), b"{\"");
}

#[test]
fn a_long_string_needs_no_more_space_than_a_short_one() {
    let state = schema_grammar(&json!({ "type": "string" }));
    let long = state.advance(format!("\"{}", "word ".repeat(2000)).as_bytes()).unwrap();
    assert!(long.stacks.len() < 20);
}
