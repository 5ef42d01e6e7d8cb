//! Which bytes may follow: a grammar, and where in it a text stands.
//!
//! A grammar is a list of rules over bytes; a [`Place`] is the set of all ways in which the text so far can be read, each
//! a stack of what is still to come. A token is allowed when its bytes lead somewhere. The model's favourite is nearly
//! always allowed, so tokens are tried in the order in which the model likes them, and no mask over all of them is made.
//!
//! `llguidance` does this and more, but it switches `serde_json` to another order of keys for every crate of the
//! workspace, and the log and the browser must agree on that order.

mod schema;

use std::rc::Rc;

pub(crate) use schema::{call_or_say, of_schema};

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bytes([u64; 4]);

impl Bytes {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        bytes.iter().fold(Self::default(), |set, byte| set.with(*byte, *byte))
    }

    pub(crate) fn range(from: u8, to: u8) -> Self {
        Self::default().with(from, to)
    }

    /// This set and all bytes from one to another.
    pub(crate) fn with(mut self, from: u8, to: u8) -> Self {
        for byte in from..=to {
            self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
        }
        self
    }

    pub(crate) fn without(mut self, byte: u8) -> Self {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
        self
    }

    fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] & (1 << (byte & 63)) != 0
    }

    /// The only byte of the set, if there is but one.
    fn only(&self) -> Option<u8> {
        let count: u32 = self.0.iter().map(|part| part.count_ones()).sum();
        (count == 1).then(|| (0..=u8::MAX).find(|byte| self.has(*byte))).flatten()
    }
}

/// A rule of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RuleId(u32);

/// One thing in a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Byte(Bytes),
    Rule(RuleId),
}

/// Rules, each a choice between sequences.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    rules: Vec<Vec<Vec<Item>>>,
}

impl Grammar {
    /// A rule whose sequences are given later, so that it can name itself.
    pub(crate) fn reserve(&mut self) -> RuleId {
        self.rules.push(Vec::new());
        RuleId(self.rules.len() as u32 - 1)
    }

    pub(crate) fn define(&mut self, id: RuleId, choices: Vec<Vec<Item>>) {
        self.rules[id.0 as usize] = choices;
    }

    pub(crate) fn rule(&mut self, choices: Vec<Vec<Item>>) -> RuleId {
        let id = self.reserve();
        self.define(id, choices);
        id
    }

    fn choices(&self, id: RuleId) -> &[Vec<Item>] {
        &self.rules[id.0 as usize]
    }
}

/// What is still to come, the nearest first.
#[derive(Debug)]
struct Pending {
    rule: RuleId,
    choice: usize,
    at: usize,
    then: Stack,
}

type Stack = Option<Rc<Pending>>;

/// Where a text stands in a grammar.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    grammar: Rc<Grammar>,
    /// Every way to read the text; each begins with a byte to come, or has nothing to come at all.
    stacks: Vec<Stack>,
}

impl Place {
    pub(crate) fn start(grammar: Rc<Grammar>, root: RuleId) -> Self {
        let mut stacks = Vec::new();
        for choice in 0..grammar.choices(root).len() {
            let pending = Pending { rule: root, choice, at: 0, then: None };
            expand(&grammar, Some(Rc::new(pending)), &mut stacks);
        }
        Self { grammar, stacks }
    }

    /// Whether the text could end here.
    pub(crate) fn may_end(&self) -> bool {
        self.stacks.iter().any(Option::is_none)
    }

    /// Whether nothing can follow.
    pub(crate) fn is_over(&self) -> bool {
        self.stacks.iter().all(Option::is_none)
    }

    /// The place after these bytes, if they may follow.
    pub(crate) fn after(&self, bytes: &[u8]) -> Option<Self> {
        let mut stacks = self.stacks.clone();
        for byte in bytes {
            let mut next = Vec::with_capacity(stacks.len());
            for pending in stacks.iter().flatten() {
                if self.next_bytes(pending).is_some_and(|set| set.has(*byte)) {
                    expand(&self.grammar, after(&self.grammar, pending), &mut next);
                }
            }
            if next.is_empty() {
                return None;
            }
            stacks = next;
        }
        Some(Self { grammar: self.grammar.clone(), stacks })
    }

    /// The bytes that must follow whatever the model would like.
    pub(crate) fn forced(&self) -> Vec<u8> {
        let (mut place, mut bytes) = (self.clone(), Vec::new());
        while let Some(byte) = place.only_byte() {
            let Some(next) = place.after(&[byte]) else { break };
            place = next;
            bytes.push(byte);
        }
        bytes
    }

    fn only_byte(&self) -> Option<u8> {
        let mut only = None;
        for stack in &self.stacks {
            let byte = self.next_bytes(stack.as_ref()?)?.only()?;
            if *only.get_or_insert(byte) != byte {
                return None;
            }
        }
        only
    }

    fn next_bytes(&self, pending: &Pending) -> Option<Bytes> {
        match item(&self.grammar, pending) {
            Some(Item::Byte(set)) => Some(set),
            Some(Item::Rule(_)) | None => None,
        }
    }
}

fn item(grammar: &Grammar, pending: &Pending) -> Option<Item> {
    grammar.choices(pending.rule)[pending.choice].get(pending.at).copied()
}

/// What is to come once the nearest item has been read. A sequence that is at its end leaves nothing behind, so that
/// a rule that ends in itself takes no room.
fn after(grammar: &Grammar, pending: &Pending) -> Stack {
    let at = pending.at + 1;
    if at == grammar.choices(pending.rule)[pending.choice].len() {
        return pending.then.clone();
    }
    Some(Rc::new(Pending { rule: pending.rule, choice: pending.choice, at, then: pending.then.clone() }))
}

/// Follows rules until a byte is to come.
fn expand(grammar: &Grammar, stack: Stack, found: &mut Vec<Stack>) {
    let Some(pending) = stack else {
        if !found.iter().any(Option::is_none) {
            found.push(None);
        }
        return;
    };
    match item(grammar, &pending) {
        Some(Item::Byte(_)) => found.push(Some(pending)),
        Some(Item::Rule(rule)) => {
            let then = after(grammar, &pending);
            for (choice, items) in grammar.choices(rule).iter().enumerate() {
                let stack = if items.is_empty() {
                    then.clone()
                } else {
                    Some(Rc::new(Pending { rule, choice, at: 0, then: then.clone() }))
                };
                expand(grammar, stack, found);
            }
        }
        None => expand(grammar, pending.then.clone(), found),
    }
}

#[cfg(test)]
mod tests;
