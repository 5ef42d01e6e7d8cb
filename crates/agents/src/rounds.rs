//! Whether an agent goes in circles.

use shared_types::payload::tool::ToolStatus;

use crate::history::Entry;

/// Turns of the longest round in which an agent is seen to go.
const LONGEST_ROUND: usize = 4;

/// How often in a row, up to now, an agent went through the very same turns: the same calls with the same results.
pub(crate) fn rounds(entries: &[Entry]) -> usize {
    let mut turns: Vec<Vec<_>> = Vec::new();
    for entry in entries {
        match entry {
            Entry::Said { .. } => turns.push(Vec::new()),
            // The person says whether it is made again.
            Entry::Got { status: ToolStatus::Interrupted { .. }, .. } => turns.clear(),
            Entry::Got { tool, input, status, report, .. } => {
                if let Some(turn) = turns.last_mut() {
                    turn.push((tool, *input, report.output, status));
                }
            }
            Entry::Heard { .. } => turns.clear(),
        }
    }
    for turn in &mut turns {
        // Calls that are made at once end in any order.
        turn.sort_by_key(|(tool, input, ..)| (*tool, input.map(|input| input.hash)));
    }
    let times = (1..=LONGEST_ROUND).map(|length| {
        let of_one_round = turns.iter().rev().take(length);
        if turns.len() < length || of_one_round.clone().any(Vec::is_empty) {
            return 0;
        }
        let again = turns.iter().rev().skip(length).zip(turns.iter().rev()).take_while(|(a, b)| a == b);
        1 + again.count() / length
    });
    times.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use shared_types::payload::llm::{ReplyEnd, RequestedCall};
    use shared_types::payload::tool::ToolReport;
    use shared_types::{ContentRef, OpId, Seq};

    use super::*;
    use crate::history::Speaker;

    fn said(number: u8) -> Entry {
        Entry::Said {
            seq: Seq(1),
            seen: Seq::ZERO,
            reply: ContentRef::of(&[number]),
            ended: ReplyEnd::Whole,
            calls: vec![RequestedCall { call: OpId::from_bytes([number; 16]), tool: "fetch".into() }],
            is_clean: true,
        }
    }

    /// A turn with one call, which is told from others by what it was given.
    fn did(number: u8, input: u8, status: ToolStatus) -> [Entry; 2] {
        let (call, tool) = (OpId::from_bytes([number; 16]), "fetch".into());
        let (input, report) = (Some(ContentRef::of(&[input])), ToolReport::default());
        [said(number), Entry::Got { call, tool, input, status, report, is_clean: true }]
    }

    /// Turns with one call each, which are told apart by what they were given.
    fn did_all(inputs: &[u8]) -> Vec<Entry> {
        let fine = ToolStatus::Exited { code: 0 };
        (1..).zip(inputs).flat_map(|(number, input)| did(number, *input, fine.clone())).collect()
    }

    #[test]
    fn rounds_of_one_turn_and_of_several_are_counted() {
        assert_eq!(rounds(&did_all(&[])), 0);
        assert_eq!(rounds(&did_all(&[1])), 1);
        assert_eq!(rounds(&did_all(&[1, 2, 3, 4])), 1);
        assert_eq!(rounds(&did_all(&[2, 1, 1, 1])), 3);
        assert_eq!(rounds(&did_all(&[9, 1, 2, 1, 2, 1, 2])), 3);
        assert_eq!(rounds(&did_all(&[1, 2, 1, 2, 1])), 2, "half a round is none");
        assert_eq!(rounds(&did_all(&[1, 2, 3, 4, 1, 2, 3, 4])), 2);
        assert_eq!(rounds(&did_all(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5])), 1, "longer than a round can be");
    }

    #[test]
    fn whoever_says_something_else_or_is_told_something_goes_in_no_round() {
        let mut entries = did_all(&[1, 1, 1]);
        entries.push(said(4));
        assert_eq!(rounds(&entries), 0, "nothing has come of the last turn yet");
        let mut entries = did_all(&[1, 1, 1]);
        let words = ContentRef::of(b"words");
        entries.push(Entry::Heard { seq: Seq(9), from: Speaker::Person, words, is_clean: true });
        entries.extend(did_all(&[1]));
        assert_eq!(rounds(&entries), 1);
    }

    #[test]
    fn calls_made_at_once_are_the_same_in_any_order() {
        let both = |first, second| {
            let fine = ToolStatus::Exited { code: 0 };
            let [said, one] = did(1, first, fine.clone());
            let [_, other] = did(2, second, fine);
            [said, one, other]
        };
        assert_eq!(rounds(&[both(1, 2), both(2, 1), both(1, 2)].concat()), 3);
    }

    #[test]
    fn a_call_that_is_cut_off_again_and_again_is_no_loop() {
        let turns = |status: ToolStatus| {
            (1..=4).flat_map(|number| did(number, 1, status.clone())).collect::<Vec<_>>()
        };
        assert_eq!(rounds(&turns(ToolStatus::Exited { code: 1 })), 4);
        assert_eq!(rounds(&turns(ToolStatus::Interrupted { reason: "it stopped".into() })), 0);
    }
}
