//! A grammar over bytes, and the position of a text in it.
//!
//! A [`GrammarState`] is the set of all possible parses of the text so far; each is a stack of expected items. A
//! token is allowed if its bytes continue at least one of them. The model's first choice is nearly always allowed, so
//! tokens are tried in order of likelihood, and no mask over the whole vocabulary is computed.
//!
//! `llguidance` does this and more, but it changes the key order of `serde_json` for the whole workspace, and the log
//! and the browser must agree on that order.

mod schema;

use std::rc::Rc;

pub(crate) use schema::{call_or_say_grammar, schema_grammar};

/// A set of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ByteSet([u64; 4]);

impl ByteSet {
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        bytes.iter().fold(Self::default(), |set, byte| set.with(*byte, *byte))
    }

    pub(crate) fn range(from: u8, to: u8) -> Self {
        Self::default().with(from, to)
    }

    /// Adds all bytes from `from` to `to`.
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

    /// The only byte of the set, if it has exactly one.
    fn only(&self) -> Option<u8> {
        let count: u32 = self.0.iter().map(|part| part.count_ones()).sum();
        (count == 1).then(|| (0..=u8::MAX).find(|byte| self.has(*byte))).flatten()
    }
}

/// A rule of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RuleId(u32);

/// One element of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Item {
    Byte(ByteSet),
    Rule(RuleId),
}

/// The rules; each is a choice between sequences.
#[derive(Debug, Default)]
pub(crate) struct Grammar {
    rules: Vec<Vec<Vec<Item>>>,
}

impl Grammar {
    /// Creates a rule that is defined later, so that it can refer to itself.
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

/// The expected items, innermost first.
#[derive(Debug)]
struct Pending {
    rule: RuleId,
    choice: usize,
    at: usize,
    then: Stack,
}

type Stack = Option<Rc<Pending>>;

/// The position of a text in a grammar.
#[derive(Debug, Clone)]
pub(crate) struct GrammarState {
    grammar: Rc<Grammar>,
    /// All possible parses. Each starts with an expected byte, or is `None` if the text may end.
    stacks: Vec<Stack>,
}

impl GrammarState {
    pub(crate) fn start(grammar: Rc<Grammar>, root: RuleId) -> Self {
        let mut stacks = Vec::new();
        for choice in 0..grammar.choices(root).len() {
            let pending = Pending { rule: root, choice, at: 0, then: None };
            expand(&grammar, Some(Rc::new(pending)), &mut stacks);
        }
        Self { grammar, stacks }
    }

    /// Whether the text may end here.
    pub(crate) fn may_end(&self) -> bool {
        self.stacks.iter().any(Option::is_none)
    }

    /// Whether the text must end here.
    pub(crate) fn is_complete(&self) -> bool {
        self.stacks.iter().all(Option::is_none)
    }

    /// The state after these bytes, or `None` if they are not allowed.
    pub(crate) fn advance(&self, bytes: &[u8]) -> Option<Self> {
        let mut stacks = self.stacks.clone();
        for byte in bytes {
            let mut next = Vec::with_capacity(stacks.len());
            for pending in stacks.iter().flatten() {
                if self.next_bytes(pending).is_some_and(|set| set.has(*byte)) {
                    expand(&self.grammar, rest_after(&self.grammar, pending), &mut next);
                }
            }
            if next.is_empty() {
                return None;
            }
            stacks = next;
        }
        Some(Self { grammar: self.grammar.clone(), stacks })
    }

    /// The bytes that have to follow, because the grammar leaves no choice.
    pub(crate) fn forced_bytes(&self) -> Vec<u8> {
        let (mut state, mut bytes) = (self.clone(), Vec::new());
        while let Some(byte) = state.only_byte() {
            let Some(next) = state.advance(&[byte]) else { break };
            state = next;
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

    fn next_bytes(&self, pending: &Pending) -> Option<ByteSet> {
        match item(&self.grammar, pending) {
            Some(Item::Byte(set)) => Some(set),
            Some(Item::Rule(_)) | None => None,
        }
    }
}

fn item(grammar: &Grammar, pending: &Pending) -> Option<Item> {
    grammar.choices(pending.rule)[pending.choice].get(pending.at).copied()
}

/// The expected items after the current one. A finished sequence is removed from the stack, so that tail recursion
/// needs no space.
fn rest_after(grammar: &Grammar, pending: &Pending) -> Stack {
    let at = pending.at + 1;
    if at == grammar.choices(pending.rule)[pending.choice].len() {
        return pending.then.clone();
    }
    Some(Rc::new(Pending { rule: pending.rule, choice: pending.choice, at, then: pending.then.clone() }))
}

/// Expands rules until every stack starts with a byte.
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
            let then = rest_after(grammar, &pending);
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
