//! What a grammar lets through, by example.

use serde_json::{Value, json};

use super::*;

/// Whether this is a whole text of the grammar, and the same byte by byte as at once.
fn takes(place: &Place, text: &str) -> bool {
    let mut slowly = Some(place.clone());
    for byte in text.bytes() {
        slowly = slowly.and_then(|place| place.after(&[byte]));
    }
    let at_once = place.after(text.as_bytes()).is_some_and(|place| place.may_end());
    assert_eq!(slowly.is_some_and(|place| place.may_end()), at_once, "{text}");
    at_once
}

fn check(schema: &Value, good: &[&str], bad: &[&str]) {
    let place = of_schema(schema);
    for text in good {
        assert!(takes(&place, text), "{schema} refuses {text}");
        assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
    }
    for text in bad {
        assert!(!takes(&place, text), "{schema} takes {text}");
    }
}

#[test]
fn objects_have_their_properties_and_no_others() {
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
fn texts_are_json_strings_within_their_limits() {
    let schema = json!({ "type": "string", "minLength": 1, "maxLength": 3 });
    check(
        &schema,
        &[r#""a""#, r#""äöü""#, r#""\n\"\u00e4""#, r#""🎵""#],
        &[r#""""#, r#""abcd""#, "\"\n\"", r#""\x""#, r#"""#],
    );
}

#[test]
fn lists_have_their_limits() {
    let items = json!({ "type": "number" });
    let between = json!({ "type": "array", "items": items, "minItems": 1, "maxItems": 2 });
    check(&between, &["[1]", "[1.5, -2]"], &["[]", "[1, 2, 3]", "[1,2]", "[1, ]"]);
    check(&json!({ "type": "array", "items": items }), &["[]", "[1, 2, 3, 4]"], &["[true]", "["]);
    check(&json!({ "type": "array", "items": items, "minItems": 2 }), &["[1, 2]", "[1, 2, 3]"], &["[1]"]);
}

#[test]
fn choices_and_constants_are_taken_literally() {
    check(&json!({ "enum": ["low", "high", 3, null] }), &[r#""low""#, "3", "null"], &[r#""mid""#, "4"]);
    check(&json!({ "const": { "a": [1, 2] } }), &[r#"{"a": [1, 2]}"#], &["{}"]);
    let either = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] });
    check(&either, &[r#""x""#, "null"], &["1"]);
    check(&json!({ "type": ["integer", "null"] }), &["1", "null"], &[r#""x""#]);
}

#[test]
fn references_are_followed_even_in_circles() {
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
fn a_schema_that_names_itself_many_times_is_plain_json_from_somewhere_on() {
    let properties: serde_json::Map<String, Value> =
        (0..20).map(|number| (format!("p{number}"), json!({ "$ref": "#" }))).collect();
    check(
        &json!({ "type": "object", "properties": properties }),
        &[r#"{"p0": {"p1": {}}}"#, r#"{"p3": {"p4": {"p5": {}}}, "p9": {}}"#],
        &[r#"{"p20": {}}"#, "[]"],
    );
}

#[test]
fn what_no_schema_says_is_any_json() {
    let good = [r#"{"a": [1, {"b": null}], "c": "d"}"#, "[]", "{}", "true", "-0.25"];
    check(&json!({}), &good, &["{a: 1}", "[1,2]", "nul"]);
    check(&json!({ "type": "object" }), &[r#"{"x": {"y": []}}"#, "{}"], &["[]"]);
    let counts = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    check(&counts, &[r#"{"a": 1, "b": 2}"#], &[r#"{"a": "b"}"#]);
}

#[test]
fn a_call_names_one_of_the_tools_and_keeps_to_its_schema() {
    let read =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let none = json!({ "type": "object", "properties": {} });
    let place = call_or_say([("read", &read), ("ready", &none)], true);
    assert!(takes(&place, r#"{"name": "read", "arguments": {"path": "a"}}"#));
    assert!(takes(&place, r#"{"name": "ready", "arguments": {}}"#));
    assert!(takes(&place, r#"{"say": "done"}"#));
    assert!(!takes(&place, r#"{"name": "ready", "arguments": {"path": "a"}}"#));
    assert!(!takes(&place, r#"{"name": "write", "arguments": {}}"#));
    let only = call_or_say([("read", &read), ("ready", &none)], false);
    assert!(!takes(&only, r#"{"say": "done"}"#));
}

#[test]
fn what_must_come_is_known() {
    let read =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let place = call_or_say([("read", &read)], false);
    assert_eq!(place.forced(), br#"{"name": "read", "arguments": {"path": ""#);
    let inside = place.after(br#"{"name": "read", "arguments": {"path": "a"#).unwrap();
    assert_eq!(inside.forced(), b"");
    let closed = inside.after(b"\"").unwrap();
    assert_eq!(closed.forced(), b"}}");
    assert!(closed.after(b"}}").unwrap().is_over());
    assert_eq!(call_or_say([("read", &read)], true).forced(), b"{\"");
}

#[test]
fn a_long_text_takes_no_more_room_than_a_short_one() {
    let place = of_schema(&json!({ "type": "string" }));
    let long = place.after(format!("\"{}", "word ".repeat(2000)).as_bytes()).unwrap();
    assert!(long.stacks.len() < 20);
}
