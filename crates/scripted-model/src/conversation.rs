//! The parts of a request that decide which step is played, independent of the protocol.

use std::collections::BTreeSet;

/// A request that passed the checks of its protocol.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    pub(crate) system: String,
    /// The text before the first assistant turn.
    pub(crate) first: String,
    /// Number of assistant turns.
    pub(crate) assistant_turns: usize,
    /// User text and tool results since the last assistant turn.
    pub(crate) latest: Vec<String>,
    /// The same for every earlier turn, with the number of the turn; the first is 1.
    earlier: Vec<(usize, String)>,
    /// Whether the last message came from the assistant.
    assistant_is_last: bool,
    bytes: usize,
    /// OpenAI's `stream_options.include_usage`.
    pub(crate) wants_usage: bool,
}

impl Conversation {
    pub(crate) fn add_system_text(&mut self, text: &str) {
        separate(&mut self.system);
        self.system.push_str(text);
        self.bytes += text.len();
    }

    /// Adds user text or a tool result.
    pub(crate) fn add_user_text(&mut self, text: &str) {
        if self.assistant_is_last {
            let turn = self.assistant_turns - 1;
            self.earlier.extend(self.latest.drain(..).map(|text| (turn, text)));
            self.assistant_is_last = false;
        }
        if self.assistant_turns == 0 {
            separate(&mut self.first);
            self.first.push_str(text);
        }
        self.latest.push(text.into());
        self.bytes += text.len();
    }

    /// Adds assistant text. Consecutive assistant messages are one turn.
    pub(crate) fn add_assistant_text(&mut self, text: &str) {
        if !self.assistant_is_last {
            self.assistant_is_last = true;
            self.assistant_turns += 1;
        }
        self.bytes += text.len();
    }

    /// How many turns the assistant was asked to repeat, by messages that contain `marker`.
    pub(crate) fn repeated_turns(&self, marker: &str) -> usize {
        let latest = self.latest.iter().map(|text| (self.assistant_turns, text));
        let all = self.earlier.iter().map(|(turn, text)| (*turn, text)).chain(latest);
        let turns: BTreeSet<usize> =
            all.filter(|(turn, text)| *turn > 0 && text.contains(marker)).map(|(turn, _)| turn).collect();
        turns.len()
    }

    /// The number before `marker` in the first message: how many turns were omitted.
    pub(crate) fn omitted_turns(&self, marker: &str) -> usize {
        let before = self.first.split(marker).next().filter(|before| before.len() < self.first.len());
        let number = before.and_then(|before| before.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next());
        number.and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// Estimated tokens, the same in every protocol.
    pub(crate) fn tokens(&self) -> u64 {
        tokens(self.bytes)
    }
}

/// Four bytes per token, at least one token.
pub(crate) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
}
