//! Requests made from a schema: some fit it, most do not. The same dice give the same requests.

use serde_json::{Map, Value, json};

use crate::test_machine::RequestBody;

/// A small generator of numbers, as `splitmix64` has it.
pub(crate) struct Rng(u64);

const STRINGS: &[&str] = &[
    "",
    "a",
    "Welcome.md",
    "notes",
    "notes/a.txt",
    "new/b.txt",
    "..",
    "../x",
    "/etc/passwd",
    ".choir/state.sqlite",
    "a\0b",
    "a/",
    "\u{202e}\u{1f9a2}e\u{301}",
    "%",
    "\"'; DROP TABLE files; --",
    "{\"a\":1}",
    "*",
    "NEAR(\"",
    "-1",
    "1e400",
    "null",
    "18446744073709551616",
    "018f3c00-0000-7000-8000-0000000000aa",
    "00000000-0000-0000-0000-000000000000",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "line\r\nbreak",
];

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.next() as usize % from.len()].clone()
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }

    /// A request for an operation of the document: its address and its body.
    pub(crate) fn request(&mut self, path: &str, operation: &Value) -> (String, RequestBody) {
        let mut address = path.to_owned();
        let mut query = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap_or_default();
            let value = plain(&self.value(&parameter["schema"]));
            match parameter["in"].as_str() {
                Some("path") => address = address.replace(&format!("{{{name}}}"), &escape(&value)),
                Some("query") if parameter["required"] == true && !self.one_in(8) || self.one_in(2) => {
                    query.push(format!("{name}={}", escape(&value)));
                }
                _ => {}
            }
        }
        if self.one_in(10) {
            query.push(format!("{}={}", escape(self.pick(STRINGS)), escape(self.pick(STRINGS))));
        }
        if !query.is_empty() {
            address = format!("{address}?{}", query.join("&"));
        }
        (address, self.body(&operation["requestBody"]["content"]))
    }

    fn body(&mut self, content: &Value) -> RequestBody {
        let Some(schema) = content["application/json"].get("schema") else {
            return match (content.is_null(), self.next() % 3) {
                (false, 0) => {
                    RequestBody::Bytes("application/octet-stream", self.next().to_le_bytes().to_vec())
                }
                (false, 1) => RequestBody::Bytes("text/html", b"<script>".to_vec()),
                _ => RequestBody::Empty,
            };
        };
        let value = self.value(schema);
        match self.next() % 16 {
            0 => RequestBody::Empty,
            1 => RequestBody::Bytes("text/plain", value.to_string().into_bytes()),
            2 => RequestBody::Bytes("application/json", value.to_string().into_bytes().split_off(1)),
            3 => RequestBody::Bytes("application/json; charset=utf-16", value.to_string().into_bytes()),
            4 => RequestBody::Bytes("application/json", [b"[".repeat(200), b"]".repeat(200)].concat()),
            5 => RequestBody::Bytes("application/json", vec![0xff, 0x00, b'{']),
            6 => RequestBody::Bytes("multipart/form-data; boundary=x", b"--x--".to_vec()),
            _ => RequestBody::Json(value),
        }
    }

    /// A value that fits a schema, or in one of eight cases one that is unlikely to.
    fn value(&mut self, schema: &Value) -> Value {
        if self.one_in(8) {
            return self.anything();
        }
        for choices in ["oneOf", "anyOf"] {
            if let Some(choices) = schema[choices].as_array() {
                let choice = self.pick(choices);
                return self.value(&choice);
            }
        }
        if let Some(values) = schema["enum"].as_array() {
            return self.pick(values);
        }
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        let kind = match schema["type"].as_array() {
            Some(kinds) => self.pick(kinds),
            None => schema["type"].clone(),
        };
        match kind.as_str() {
            Some("object") => self.object(schema),
            Some("array") => self.array(schema),
            Some("integer") => self.integer(),
            Some("number") => json!(self.next() as f64 / 3.0),
            Some("boolean") => json!(self.one_in(2)),
            Some("string") => self.string(schema),
            Some("null") => Value::Null,
            _ => self.anything(),
        }
    }

    fn object(&mut self, schema: &Value) -> Value {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let mut made = Map::new();
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let needed = required.iter().any(|field| field == name);
            if if needed { !self.one_in(20) } else { self.one_in(2) } {
                made.insert(name.clone(), self.value(schema));
            }
        }
        if self.one_in(20) {
            made.insert(self.pick(STRINGS).to_owned(), self.anything());
        }
        made.into()
    }

    fn array(&mut self, schema: &Value) -> Value {
        if let Some(items) = schema["prefixItems"].as_array() {
            return items.iter().map(|item| self.value(item)).collect();
        }
        (0..self.next() % 4).map(|_| self.value(&schema["items"])).collect()
    }

    fn integer(&mut self) -> Value {
        let any = self.next();
        self.pick(&[
            json!(0),
            json!(1),
            json!(2),
            json!(80),
            json!(-1),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(any),
        ])
    }

    fn string(&mut self, schema: &Value) -> Value {
        match (schema["format"].as_str(), self.next() % 8) {
            (Some("uuid"), 1..) => {
                let (high, low) = (self.next(), self.next());
                let digits = format!("{high:016x}{low:016x}");
                let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
                json!(parts.join("-"))
            }
            (_, 0) => json!("x".repeat(self.next() as usize % 5000)),
            _ => json!(self.pick(STRINGS)),
        }
    }

    fn anything(&mut self) -> Value {
        let text = self.pick(STRINGS);
        let number = self.integer();
        self.pick(&[
            Value::Null,
            json!(true),
            json!(text),
            number,
            json!(1.5e300),
            json!([]),
            json!({}),
            json!([[text], { text: text }]),
        ])
    }
}

/// A value as it stands in an address.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn escape(text: &str) -> String {
    let one = |byte: u8| {
        if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}
