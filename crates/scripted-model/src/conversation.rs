//! What a request says, whoever's protocol it came in: only what is needed to find the step to play.

use std::collections::BTreeSet;

/// A request that passed the checks of its protocol.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    pub(crate) system: String,
    /// What was said before the first assistant turn.
    pub(crate) first: String,
    /// How many turns the assistant has taken.
    pub(crate) taken: usize,
    /// What was said, and what tools answered, since the last assistant turn.
    pub(crate) latest: Vec<String>,
    /// The same for every turn before, with its number; the first is 1.
    earlier: Vec<(usize, String)>,
    /// Whether the last thing that was said came from the assistant.
    speaking: bool,
    bytes: usize,
    /// OpenAI's `stream_options.include_usage`.
    pub(crate) wants_usage: bool,
}

impl Conversation {
    pub(crate) fn system(&mut self, text: &str) {
        separate(&mut self.system);
        self.system.push_str(text);
        self.bytes += text.len();
    }

    /// Words of the person, or the result of a tool.
    pub(crate) fn said(&mut self, text: &str) {
        if self.speaking {
            let turn = self.taken - 1;
            self.earlier.extend(self.latest.drain(..).map(|text| (turn, text)));
            self.speaking = false;
        }
        if self.taken == 0 {
            separate(&mut self.first);
            self.first.push_str(text);
        }
        self.latest.push(text.into());
        self.bytes += text.len();
    }

    /// A part of what the assistant said. Messages that follow each other are one turn.
    pub(crate) fn answered(&mut self, text: &str) {
        if !self.speaking {
            self.speaking = true;
            self.taken += 1;
        }
        self.bytes += text.len();
    }

    /// How many turns it was told to take again.
    pub(crate) fn taken_again(&self, told: &str) -> usize {
        let latest = self.latest.iter().map(|text| (self.taken, text));
        let all = self.earlier.iter().map(|(turn, text)| (*turn, text)).chain(latest);
        let turns: BTreeSet<usize> =
            all.filter(|(turn, text)| *turn > 0 && text.contains(told)).map(|(turn, _)| turn).collect();
        turns.len()
    }

    /// How many turns it was told that are left out.
    pub(crate) fn left_out(&self, told: &str) -> usize {
        let before = self.first.split(told).next().filter(|before| before.len() < self.first.len());
        let number = before.and_then(|before| before.trim_end().rsplit(|c: char| !c.is_ascii_digit()).next());
        number.and_then(|number| number.parse().ok()).unwrap_or_default()
    }

    /// As good a guess as any, and the same in every protocol.
    pub(crate) fn tokens(&self) -> u64 {
        tokens(self.bytes)
    }
}

/// Four bytes to the token, and never none.
pub(crate) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4).max(1)
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push('\n');
    }
}
