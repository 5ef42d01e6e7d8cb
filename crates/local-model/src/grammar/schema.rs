//! Converts a JSON Schema into a grammar with one fixed formatting: objects, arrays, strings, numbers, alternatives
//! and constants.
//!
//! Properties have the order of the schema and one space after `:` and `,`, as the model was trained to write them
//! and as [`crate::prompt`] writes them. Constraints that a grammar cannot express well (patterns, number ranges,
//! long limits) are left to the schema check of the caller.

use std::rc::Rc;

use serde_json::{Map, Value};

use super::{ByteSet, Grammar, GrammarState, Item, RuleId};

/// Larger limits are ignored: every counted item needs a rule.
const LONGEST_TEXT: u64 = 400;
const LONGEST_LIST: u64 = 64;
/// Depth limit of references; recursive schemas continue as any JSON.
const MAX_DEPTH: usize = 12;
/// Maximum number of rules; the rest of a larger schema is any JSON.
const MAX_RULES: usize = 10_000;

/// The grammar of values that match this schema.
pub(crate) fn schema_grammar(schema: &Value) -> GrammarState {
    let mut builder = Builder::default();
    let root = builder.value(schema, schema, 0);
    let root = builder.grammar.rule(vec![vec![Item::Rule(root)]]);
    GrammarState::start(Rc::new(builder.grammar), root)
}

/// The grammar of one call of these tools (name and schema) or, if `may_say`, of a message to the user.
pub(crate) fn call_or_say_grammar<'a>(
    tools: impl IntoIterator<Item = (&'a str, &'a Value)>,
    may_say: bool,
) -> GrammarState {
    let mut builder = Builder::default();
    let mut choices = Vec::new();
    for (name, schema) in tools {
        let name = Value::from(name);
        let mut items = text(&format!("{{\"name\": {name}, \"arguments\": "));
        items.push(Item::Rule(builder.value(schema, schema, 0)));
        items.extend(text("}"));
        choices.push(items);
    }
    if may_say {
        let mut items = text("{\"say\": ");
        items.push(Item::Rule(builder.string(None, None)));
        items.extend(text("}"));
        choices.push(items);
    }
    let root = builder.grammar.rule(choices);
    GrammarState::start(Rc::new(builder.grammar), root)
}

fn text(text: &str) -> Vec<Item> {
    text.bytes().map(|byte| Item::Byte(ByteSet::from_bytes(&[byte]))).collect()
}

#[derive(Default)]
struct Builder {
    grammar: Grammar,
    character: Option<RuleId>,
    free_text: Option<RuleId>,
    any: Option<RuleId>,
}

impl Builder {
    fn value(&mut self, schema: &Value, root: &Value, depth: usize) -> RuleId {
        let Value::Object(schema) = schema else { return self.any() };
        if depth > MAX_DEPTH || self.grammar.rules.len() > MAX_RULES {
            return self.any();
        }
        if let Some(to) = schema.get("$ref").and_then(Value::as_str) {
            let to = to.strip_prefix('#').and_then(|pointer| root.pointer(pointer));
            return match to {
                Some(to) => self.value(to, root, depth + 1),
                None => self.any(),
            };
        }
        if let Some(constant) = schema.get("const") {
            return self.grammar.rule(vec![text(&crate::spaced_json::spaced(constant))]);
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            let choices = values.iter().map(|value| text(&crate::spaced_json::spaced(value))).collect();
            return self.grammar.rule(choices);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(options)) =
                schema.get(key).filter(|options| options != &&Value::from([0; 0]))
            {
                let choices =
                    options.iter().map(|option| vec![Item::Rule(self.value(option, root, depth + 1))]);
                let choices = choices.collect();
                return self.grammar.rule(choices);
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf")
            && let [only] = parts.as_slice()
        {
            return self.value(only, root, depth + 1);
        }
        match schema.get("type") {
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let choices =
                    kinds.map(|kind| vec![Item::Rule(self.kind(kind, schema, root, depth))]).collect();
                self.grammar.rule(choices)
            }
            Some(Value::String(kind)) => self.kind(kind, schema, root, depth),
            _ if schema.contains_key("properties") => self.object(schema, root, depth),
            _ => self.any(),
        }
    }

    fn kind(&mut self, kind: &str, schema: &Map<String, Value>, root: &Value, depth: usize) -> RuleId {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        match kind {
            "object" => self.object(schema, root, depth),
            "array" => {
                let item = schema.get("items").map(|items| self.value(items, root, depth + 1));
                let item = item.unwrap_or_else(|| self.any());
                self.list(item, count("minItems").unwrap_or(0), count("maxItems"))
            }
            "string" => self.string(count("minLength"), count("maxLength")),
            "integer" => self.number(false),
            "number" => self.number(true),
            "boolean" => self.grammar.rule(vec![text("true"), text("false")]),
            "null" => self.grammar.rule(vec![text("null")]),
            _ => self.any(),
        }
    }

    fn object(&mut self, schema: &Map<String, Value>, root: &Value, depth: usize) -> RuleId {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> = match schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        if properties.is_empty() {
            let value = match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => return self.grammar.rule(vec![text("{}")]),
                Some(schema @ Value::Object(_)) => self.value(schema, root, depth + 1),
                _ if schema.contains_key("properties") => return self.grammar.rule(vec![text("{}")]),
                _ => self.any(),
            };
            return self.dictionary(value);
        }
        // From the last property to the first: the rest of the object if a property precedes it, and if none does.
        let end = self.grammar.rule(vec![text("}")]);
        let (mut rest, mut rest_first) = (end, end);
        for (name, schema) in properties.iter().rev() {
            let value = self.value(schema, root, depth + 1);
            let key = format!("{}: ", Value::from(name.as_str()));
            let written = |lead: &str, rest: RuleId| {
                let mut items = text(lead);
                items.extend(text(&key));
                items.extend([Item::Rule(value), Item::Rule(rest)]);
                items
            };
            let mut later = vec![written(", ", rest)];
            let mut first = vec![written("", rest)];
            if !required.contains(&name.as_str()) {
                later.push(vec![Item::Rule(rest)]);
                first.push(vec![Item::Rule(rest_first)]);
            }
            (rest, rest_first) = (self.grammar.rule(later), self.grammar.rule(first));
        }
        let mut items = text("{");
        items.push(Item::Rule(rest_first));
        self.grammar.rule(vec![items])
    }

    /// An object with arbitrary keys.
    fn dictionary(&mut self, value: RuleId) -> RuleId {
        let key = self.string(None, None);
        let mut pair = vec![Item::Rule(key)];
        pair.extend(text(": "));
        pair.push(Item::Rule(value));
        let pair = self.grammar.rule(vec![pair]);
        self.enclosed("{", pair, "}")
    }

    fn enclosed(&mut self, open: &str, item: RuleId, close: &str) -> RuleId {
        let more = self.grammar.reserve();
        let mut again = text(", ");
        again.extend([Item::Rule(item), Item::Rule(more)]);
        self.grammar.define(more, vec![text(close), again]);
        let mut full = text(open);
        full.extend([Item::Rule(item), Item::Rule(more)]);
        self.grammar.rule(vec![text(&format!("{open}{close}")), full])
    }

    fn list(&mut self, item: RuleId, least: u64, most: Option<u64>) -> RuleId {
        let most = most.filter(|most| *most <= LONGEST_LIST);
        let least = least.min(LONGEST_LIST);
        if least == 0 && most.is_none() {
            return self.enclosed("[", item, "]");
        }
        let end = self.grammar.rule(vec![text("]")]);
        let mut rest = end;
        if most.is_none() {
            rest = self.grammar.reserve();
            let mut again = text(", ");
            again.extend([Item::Rule(item), Item::Rule(rest)]);
            self.grammar.define(rest, vec![text("]"), again]);
        }
        for index in (0..most.unwrap_or(least)).rev() {
            let mut next = if index == 0 { Vec::new() } else { text(", ") };
            next.extend([Item::Rule(item), Item::Rule(rest)]);
            let choices = if index < least { vec![next] } else { vec![next, text("]")] };
            rest = self.grammar.rule(choices);
        }
        let mut items = text("[");
        items.push(Item::Rule(rest));
        self.grammar.rule(vec![items])
    }

    fn string(&mut self, least: Option<u64>, most: Option<u64>) -> RuleId {
        let most = most.filter(|most| *most <= LONGEST_TEXT);
        let least = least.unwrap_or(0).min(LONGEST_TEXT);
        let character = self.character();
        if most.is_none()
            && least == 0
            && let Some(known) = self.free_text
        {
            return known;
        }
        let quote = || text("\"");
        let mut rest = if most.is_some() {
            self.grammar.rule(vec![quote()])
        } else {
            let rest = self.grammar.reserve();
            self.grammar.define(rest, vec![vec![Item::Rule(character), Item::Rule(rest)], quote()]);
            rest
        };
        for index in (0..most.unwrap_or(least)).rev() {
            let next = vec![Item::Rule(character), Item::Rule(rest)];
            rest = self.grammar.rule(if index < least { vec![next] } else { vec![next, quote()] });
        }
        let mut items = quote();
        items.push(Item::Rule(rest));
        let string = self.grammar.rule(vec![items]);
        if most.is_none() && least == 0 {
            self.free_text = Some(string);
        }
        string
    }

    /// One character of a JSON string.
    fn character(&mut self) -> RuleId {
        if let Some(known) = self.character {
            return known;
        }
        let byte = |from, to| Item::Byte(ByteSet::range(from, to));
        let plain = ByteSet::range(0x20, 0x7f).without(b'"').without(b'\\');
        let hex = Item::Byte(ByteSet::range(b'0', b'9').with(b'a', b'f').with(b'A', b'F'));
        let escape = Item::Byte(ByteSet::from_bytes(b"\\"));
        let tail = byte(0x80, 0xbf);
        let character = self.grammar.rule(vec![
            vec![Item::Byte(plain)],
            vec![escape, Item::Byte(ByteSet::from_bytes(b"\"\\/bfnrt"))],
            // Surrogate pairs are not allowed as escapes; such characters are written directly.
            vec![
                escape,
                Item::Byte(ByteSet::from_bytes(b"u")),
                Item::Byte(ByteSet::from_bytes(b"0")),
                hex,
                hex,
                hex,
            ],
            vec![byte(0xc2, 0xdf), tail],
            vec![byte(0xe0, 0xe0), byte(0xa0, 0xbf), tail],
            vec![byte(0xe1, 0xec), tail, tail],
            vec![byte(0xed, 0xed), byte(0x80, 0x9f), tail],
            vec![byte(0xee, 0xef), tail, tail],
            vec![byte(0xf0, 0xf0), byte(0x90, 0xbf), tail, tail],
            vec![byte(0xf1, 0xf3), tail, tail, tail],
            vec![byte(0xf4, 0xf4), byte(0x80, 0x8f), tail, tail],
        ]);
        self.character = Some(character);
        character
    }

    fn number(&mut self, fraction: bool) -> RuleId {
        let digit = Item::Byte(ByteSet::range(b'0', b'9'));
        // Every reader parses fifteen digits exactly, and the limit stops a model that would write digits for ever.
        let digits = |grammar: &mut Grammar, most: usize| {
            (0..most).fold(None, |rest: Option<RuleId>, _| {
                let next = rest.map_or_else(|| vec![digit], |rest| vec![digit, Item::Rule(rest)]);
                Some(grammar.rule(vec![next, Vec::new()]))
            })
        };
        let more = digits(&mut self.grammar, 14).map(Item::Rule);
        let mut some = vec![Item::Byte(ByteSet::range(b'1', b'9'))];
        some.extend(more);
        let whole = self.grammar.rule(vec![text("0"), some]);
        let mut tail = vec![Vec::new()];
        if fraction {
            let mut decimals = text(".");
            decimals.push(digit);
            decimals.extend(digits(&mut self.grammar, 8).map(Item::Rule));
            tail.push(decimals);
        }
        let tail = Item::Rule(self.grammar.rule(tail));
        let mut negative = text("-");
        negative.extend([Item::Rule(whole), tail]);
        self.grammar.rule(vec![vec![Item::Rule(whole), tail], negative])
    }

    /// Any JSON.
    fn any(&mut self) -> RuleId {
        if let Some(known) = self.any {
            return known;
        }
        let any = self.grammar.reserve();
        self.any = Some(any);
        let mut choices = vec![text("true"), text("false"), text("null")];
        let parts =
            [self.string(None, None), self.number(true), self.dictionary(any), self.list(any, 0, None)];
        choices.extend(parts.map(|part| vec![Item::Rule(part)]));
        self.grammar.define(any, choices);
        any
    }
}
