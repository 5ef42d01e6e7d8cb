//! Checks a value against a JSON Schema, for the keywords that tools use.
//!
//! Unknown keywords (`format`, `pattern`, `description`) are ignored: a check that is too lenient costs one failed call,
//! one that is too strict would reject every call. For the same reason a schema that branches too deeply or too often
//! is accepted unchecked; it may come from an MCP server.

use std::cell::Cell;

use serde_json::{Map, Value};

/// Deeper than any schema without recursion.
const MAX_DEPTH: usize = 64;
/// More steps than any reasonable value and schema need.
const MAX_STEPS: usize = 100_000;

/// The error tells the model where its value is wrong, and why.
pub(crate) fn check(value: &Value, schema: &Value) -> Result<(), String> {
    SchemaCheck { root: schema, steps: Cell::new(0) }.value(value, schema, "", 0)
}

struct SchemaCheck<'a> {
    root: &'a Value,
    steps: Cell<usize>,
}

impl<'a> SchemaCheck<'a> {
    fn value(&self, value: &Value, schema: &'a Value, path: &str, depth: usize) -> Result<(), String> {
        self.steps.set(self.steps.get() + 1);
        let is_within_limits = depth <= MAX_DEPTH && self.steps.get() <= MAX_STEPS;
        let schema = match schema {
            Value::Bool(false) => return Err(format!("{} must not be there", at(path))),
            Value::Object(schema) if is_within_limits => schema,
            Value::Object(_)
            | Value::Bool(true)
            | Value::Null
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => {
                return Ok(());
            }
        };
        if let Some(target) = schema.get("$ref").and_then(|reference| self.resolve(reference)) {
            self.value(value, target, path, depth + 1)?;
        }
        self.type_keyword(value, schema, path)?;
        self.alternatives(value, schema, path, depth)?;
        match value {
            Value::Object(fields) => self.object(fields, schema, path, depth),
            Value::Array(items) => self.array(items, schema, path, depth),
            Value::Number(number) => range(number.as_f64(), schema, path),
            Value::String(text) => {
                let length = Some(text.chars().count());
                bounds(length, schema, ("minLength", "maxLength"), &format!("{} in characters", at(path)))
            }
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn resolve(&self, reference: &Value) -> Option<&'a Value> {
        let path = reference.as_str()?.strip_prefix('#')?;
        self.root.pointer(path)
    }

    fn type_keyword(&self, value: &Value, schema: &Map<String, Value>, path: &str) -> Result<(), String> {
        let types: Vec<&str> = match schema.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => return Ok(()),
        };
        if types.iter().any(|name| is_type(value, name)) {
            return Ok(());
        }
        Err(format!("{} must be of type {}", at(path), types.join(" or ")))
    }

    fn alternatives(
        &self,
        value: &Value,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), String> {
        if let Some(options) = schema.get("enum").and_then(Value::as_array)
            && !options.contains(value)
        {
            let options: Vec<String> = options.iter().map(Value::to_string).collect();
            return Err(format!("{} must be one of {}", at(path), options.join(", ")));
        }
        if let Some(only) = schema.get("const")
            && only != value
        {
            return Err(format!("{} must be {only}", at(path)));
        }
        let list =
            |key: &str| schema.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for part in list("allOf") {
            self.value(value, part, path, depth + 1)?;
        }
        for key in ["anyOf", "oneOf"] {
            let options = list(key);
            // `oneOf` is treated like `anyOf`: models rarely match two options, but often match none.
            let errors: Vec<String> =
                options.iter().map_while(|option| self.value(value, option, path, depth + 1).err()).collect();
            if !options.is_empty() && errors.len() == options.len() {
                return Err(errors.join(", or "));
            }
        }
        Ok(())
    }

    fn object(
        &self,
        fields: &Map<String, Value>,
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), String> {
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !fields.contains_key(name) {
                return Err(format!("{} is missing", at(&inside(path, name))));
            }
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        for (name, value) in fields {
            let path = inside(path, name);
            match (properties.and_then(|properties| properties.get(name)), others) {
                (Some(schema), _) => self.value(value, schema, &path, depth + 1)?,
                // Unknown fields do no harm.
                (None, Some(Value::Bool(_)) | None) => {}
                (None, Some(schema)) => self.value(value, schema, &path, depth + 1)?,
            }
        }
        Ok(())
    }

    fn array(
        &self,
        items: &[Value],
        schema: &'a Map<String, Value>,
        path: &str,
        depth: usize,
    ) -> Result<(), String> {
        bounds(Some(items.len()), schema, ("minItems", "maxItems"), &format!("{} in items", at(path)))?;
        let first =
            schema.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (index, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(index).or_else(|| schema.get("items")) {
                self.value(item, schema, &format!("{path}[{index}]"), depth + 1)?;
            }
        }
        Ok(())
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        // An unknown type is the schema's mistake, not the model's.
        _ => true,
    }
}

fn range(number: Option<f64>, schema: &Map<String, Value>, path: &str) -> Result<(), String> {
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    let Some(number) = number else { return Ok(()) };
    match (limit("minimum"), limit("maximum")) {
        (Some(least), _) if number < least => Err(format!("{} must be at least {least}", at(path))),
        (_, Some(most)) if number > most => Err(format!("{} must be at most {most}", at(path))),
        (_, _) => Ok(()),
    }
}

fn bounds(
    length: Option<usize>,
    schema: &Map<String, Value>,
    (least, most): (&str, &str),
    what: &str,
) -> Result<(), String> {
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
    let length = length.unwrap_or_default() as u64;
    match (limit(least), limit(most)) {
        (Some(least), _) if length < least => Err(format!("{what} must be at least {least}")),
        (_, Some(most)) if length > most => Err(format!("{what} must be at most {most}")),
        (_, _) => Ok(()),
    }
}

fn at(path: &str) -> String {
    if path.is_empty() { "the value".into() } else { format!("`{path}`") }
}

fn inside(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_checked_against_the_supported_keywords() {
        let schema = json!({
            "type": "object",
            "required": ["path", "mode"],
            "properties": {
                "path": {"type": "string", "minLength": 1},
                "mode": {"enum": ["read", "write"]},
                "lines": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                "to": {"oneOf": [{"const": "all"}, {"type": "object", "required": ["id"]}]}
            }
        });
        let cases = [
            (json!({"path": "a", "mode": "read"}), ""),
            (json!({"path": "a", "mode": "read", "unknown": 1, "lines": null}), ""),
            (json!({"path": "a", "mode": "read", "lines": 2.0, "tags": ["x"], "to": {"id": 1}}), ""),
            (json!([1]), "the value must be of type object"),
            (json!({"mode": "read"}), "`path` is missing"),
            (json!({"path": 1, "mode": "read"}), "`path` must be of type string"),
            (json!({"path": "", "mode": "read"}), "`path` in characters must be at least 1"),
            (json!({"path": "a", "mode": "x"}), "`mode` must be one of \"read\", \"write\""),
            (json!({"path": "a", "mode": "read", "lines": 1.5}), "`lines` must be of type integer or null"),
            (json!({"path": "a", "mode": "read", "lines": 10}), "`lines` must be at most 9"),
            (json!({"path": "a", "mode": "read", "tags": ["x", 2]}), "`tags[1]` must be of type string"),
            (
                json!({"path": "a", "mode": "read", "tags": ["x", "y", "z"]}),
                "`tags` in items must be at most 2",
            ),
            (json!({"path": "a", "mode": "read", "to": {}}), "`to` must be \"all\", or `to.id` is missing"),
        ];
        for (value, expected) in cases {
            assert_eq!(check(&value, &schema).err().unwrap_or_default(), expected, "{value}");
        }
    }

    #[test]
    fn schemas_generated_by_schemars_are_supported() {
        #[derive(JsonSchema)]
        #[allow(dead_code)]
        struct Outer {
            inner: Vec<Inner>,
            note: Option<String>,
        }
        #[derive(JsonSchema)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        #[allow(dead_code)]
        enum Inner {
            Number { value: u8 },
            Nothing,
        }
        let schema = schemars::schema_for!(Outer).to_value();
        let good = json!({"inner": [{"kind": "number", "value": 3}, {"kind": "nothing"}], "note": null});
        assert_eq!(check(&good, &schema), Ok(()));
        assert!(check(&json!({"inner": [{"kind": "number", "value": 300}]}), &schema).is_err());
        assert!(check(&json!({"inner": [{"kind": "other"}]}), &schema).is_err());
        assert!(check(&json!({"note": "x"}), &schema).is_err());
    }

    #[test]
    fn checking_a_recursive_schema_terminates() {
        let schema = json!({"$ref": "#"});
        assert_eq!(check(&json!(1), &schema), Ok(()));
    }

    #[test]
    fn checking_a_schema_that_branches_into_itself_terminates() {
        let many = |keyword: &str| {
            let parts = vec![json!({"$ref": "#/$defs/a"}); 10];
            json!({"properties": {"x": {"$ref": "#/$defs/a"}}, "$defs": {"a": {keyword: parts}}})
        };
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(check(&json!({"x": 1}), &many(keyword)), Ok(()), "{keyword}");
        }
        // Every branch succeeds at the depth limit, and fails `maximum` on the way back.
        let wrong = json!({"maximum": 0, "anyOf": vec![json!({"$ref": "#"}); 10]});
        assert!(check(&json!(1), &wrong).is_err());
    }
}
