//! Frozen events, broken: what can still be read must survive being written and read again.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::Path;

use kernel::{View, evolve};
use serde_json::{Map, Value, json};
use shared_types::{ChainHash, Event, Payload, StoredEvent};

use crate::random::Random;
use crate::trying;

const TOKENS: &[&str] = &[
    "null",
    "true",
    "{}",
    "[]",
    "\"\"",
    "-1",
    "18446744073709551616",
    "1e999",
    "0.1",
    "-0.0",
    "\\u0000",
    "\\ud800",
    "FILE_WRITE",
    "file.batch",
    "\"v\":65535,",
    "\"v\":0,",
    "\"payload\":",
    "\"taint\":[\"a,b\"],",
    "..",
    "/",
    ".choir",
    "\n",
    "{\"a\":{\"a\":{\"a\":",
    "[[[[[[[[[[[[[[[[",
    "\u{feff}",
    "\"seq\":18446744073709551615,",
    ",",
    ":",
    "\"",
];

/// The frozen events, and the words that occur in them.
pub(crate) struct Fixtures {
    texts: Vec<Vec<u8>>,
    templates: Vec<StoredEvent<'static>>,
    keys: Vec<String>,
    leaves: Vec<Value>,
}

impl Fixtures {
    pub(crate) fn read(folder: &Path) -> Self {
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        let texts: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        let mut fixtures = Self { templates: Vec::new(), keys: Vec::new(), leaves: Vec::new(), texts };
        for text in fixtures.texts.clone() {
            fixtures.templates.push(serde_json::from_slice(&text).unwrap());
            fixtures.gather(&serde_json::from_slice(&text).unwrap());
        }
        fixtures
    }

    fn gather(&mut self, value: &Value) {
        match value {
            Value::Object(map) => map.iter().for_each(|(key, value)| {
                self.keys.push(key.clone());
                self.gather(value);
            }),
            Value::Array(list) => list.iter().for_each(|value| self.gather(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.leaves.push(value.clone())
            }
        }
    }

    pub(crate) fn case(&self, seed: u64, random: &mut Random) -> Result<(), String> {
        match random.below(4) {
            0 => {
                let mut text = random.pick(&self.texts).clone();
                random.mutate(&mut text, TOKENS);
                trying(seed, "event", &text);
                serde_json::from_slice(&text).map_or(Ok(()), |stored| check(&stored))
            }
            1 => {
                // Whole but for its payload, so that what is broken is what the type says.
                let template = random.pick(&self.templates);
                let mut payload = template.payload.clone().into_owned().into_bytes();
                random.mutate(&mut payload, TOKENS);
                trying(seed, "payload", &payload);
                let Ok(payload) = String::from_utf8(payload) else { return Ok(()) };
                let stored = StoredEvent { payload: Cow::Owned(payload), ..template.clone() };
                // A log holds what was appended to it; what cannot travel must say so and no more.
                match serde_json::to_vec(&stored) {
                    Ok(text) => serde_json::from_slice(&text).map_or(Ok(()), |stored| check(&stored)),
                    Err(_) => stored.decode().map_or(Ok(()), |event| check_event(&event)),
                }
            }
            2 => {
                // The right shape, with something else in one place.
                let template = random.pick(&self.templates);
                let mut payload = serde_json::from_str(&template.payload).map_err(|e| e.to_string())?;
                self.replace(&mut payload, random);
                trying(seed, "shaped", payload.to_string().as_bytes());
                let stored = StoredEvent { payload: payload.to_string().into(), ..template.clone() };
                check(&stored)
            }
            _ => {
                let payload = self.invent(random, 4).to_string();
                trying(seed, "invented", payload.as_bytes());
                let families = Payload::families();
                let (_, types) = random.pick(&families);
                let (info, template) = (random.pick(types), random.pick(&self.templates));
                let version = if random.chance(4) { random.next() as u16 } else { info.version };
                let Ok(decoded) = Payload::decode(info.name, version, &payload) else { return Ok(()) };
                expect("the name of a payload", &decoded.name().as_str(), &info.name)?;
                check_event(&Event { payload: decoded, ..template.decode().map_err(|e| e.to_string())? })
            }
        }
    }

    /// Puts something invented in the place of a part.
    fn replace(&self, value: &mut Value, random: &mut Random) {
        let inner = match value {
            Value::Object(map) if !map.is_empty() => {
                let at = random.below(map.len());
                map.iter_mut().nth(at).map(|(_, value)| value)
            }
            Value::Array(list) if !list.is_empty() => {
                let at = random.below(list.len());
                list.get_mut(at)
            }
            Value::Object(_) | Value::Array(_) | Value::Null | Value::Bool(_) => None,
            Value::Number(_) | Value::String(_) => None,
        };
        match inner {
            Some(inner) if !random.chance(6) => self.replace(inner, random),
            _ => *value = self.invent(random, 2),
        }
    }

    /// JSON of words that events use, in places where they do not belong.
    fn invent(&self, random: &mut Random, depth: usize) -> Value {
        match random.below(if depth == 0 { 4 } else { 8 }) {
            0 => json!(random.next()),
            1 => json!(f64::from_bits(random.next())),
            2 | 3 => random.pick(&self.leaves).clone(),
            4 => (0..random.below(4)).map(|_| self.invent(random, depth - 1)).collect(),
            _ => {
                let pairs = (0..random.below(6))
                    .map(|_| (random.pick(&self.keys).clone(), self.invent(random, depth - 1)));
                Value::Object(pairs.collect::<Map<_, _>>())
            }
        }
    }
}

fn check(stored: &StoredEvent<'static>) -> Result<(), String> {
    let text = serde_json::to_vec(stored).map_err(|e| format!("what was read cannot be written: {e}"))?;
    let again: StoredEvent<'static> =
        serde_json::from_slice(&text).map_err(|e| format!("what was written cannot be read: {e}"))?;
    expect("an event read again", &again, stored)?;
    expect("its link", &again.link(&ChainHash::default()), &stored.link(&ChainHash::default()))?;
    stored.decode().map_or(Ok(()), |event| check_event(&event))
}

fn check_event(event: &Event) -> Result<(), String> {
    let stored = event.store(&ChainHash::default());
    let again = stored.decode().map_err(|e| format!("what was stored cannot be understood: {e}"))?;
    expect("an event stored and understood", &again, event)?;
    expect("its stored form", &again.store(&ChainHash::default()), &stored)?;
    let (mut live, mut replayed) = (View::default(), View::default());
    evolve(&mut live, event);
    evolve(&mut replayed, &again);
    expect("the root after replay", &replayed.root(), &live.root())
}

fn expect<T: PartialEq + Debug>(what: &str, found: &T, expected: &T) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?}, expected {expected:?}")) }
}
