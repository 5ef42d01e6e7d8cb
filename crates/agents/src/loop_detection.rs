//! Detects agents that repeat the same turns.

use shared_types::payload::tool::ToolStatus;

use crate::history::HistoryEntry;

/// Turns of the longest round that is detected.
const LONGEST_ROUND: usize = 4;

/// How often in a row, up to now, an agent repeated the same round of turns: the same calls with the same results.
pub(crate) fn repeated_rounds(entries: &[HistoryEntry]) -> usize {
    let mut turns: Vec<Vec<_>> = Vec::new();
    for entry in entries {
        match entry {
            HistoryEntry::ModelReply { .. } => turns.push(Vec::new()),
            // The person decides whether an interrupted call is repeated.
            HistoryEntry::ToolResult { status: ToolStatus::Interrupted { .. }, .. } => turns.clear(),
            HistoryEntry::ToolResult { tool, input, status, report, .. } => {
                if let Some(turn) = turns.last_mut() {
                    turn.push((tool, *input, report.output, status));
                }
            }
            HistoryEntry::Message { .. } => turns.clear(),
        }
    }
    for turn in &mut turns {
        // Calls of one turn run concurrently and end in any order.
        turn.sort_by_key(|(tool, input, ..)| (*tool, input.map(|input| input.hash)));
    }
    let counts = (1..=LONGEST_ROUND).map(|length| {
        let last_round = turns.iter().rev().take(length);
        if turns.len() < length || last_round.clone().any(Vec::is_empty) {
            return 0;
        }
        let repeated = turns.iter().rev().skip(length).zip(turns.iter().rev()).take_while(|(a, b)| a == b);
        1 + repeated.count() / length
    });
    counts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use shared_types::payload::llm::{ReplyEnd, RequestedCall};
    use shared_types::payload::tool::ToolReport;
    use shared_types::{ContentRef, OpId, Seq};

    use super::*;
    use crate::history::MessageSender;

    fn model_reply(number: u8) -> HistoryEntry {
        HistoryEntry::ModelReply {
            seq: Seq(1),
            seen: Seq::ZERO,
            reply: ContentRef::of(&[number]),
            ended: ReplyEnd::Whole,
            calls: vec![RequestedCall { call: OpId::from_bytes([number; 16]), tool: "fetch".into() }],
            is_untainted: true,
        }
    }

    /// A turn with one call, identified by its input.
    fn turn_with_call(number: u8, input: u8, status: ToolStatus) -> [HistoryEntry; 2] {
        let (call, tool) = (OpId::from_bytes([number; 16]), "fetch".into());
        let (input, report) = (Some(ContentRef::of(&[input])), ToolReport::default());
        [
            model_reply(number),
            HistoryEntry::ToolResult { call, tool, input, status, report, is_untainted: true },
        ]
    }

    /// Turns with one call each, identified by their inputs.
    fn turns_with_inputs(inputs: &[u8]) -> Vec<HistoryEntry> {
        let fine = ToolStatus::Exited { code: 0 };
        (1..).zip(inputs).flat_map(|(number, input)| turn_with_call(number, *input, fine.clone())).collect()
    }

    #[test]
    fn rounds_of_one_turn_and_of_several_are_counted() {
        assert_eq!(repeated_rounds(&turns_with_inputs(&[])), 0);
        assert_eq!(repeated_rounds(&turns_with_inputs(&[1])), 1);
        assert_eq!(repeated_rounds(&turns_with_inputs(&[1, 2, 3, 4])), 1);
        assert_eq!(repeated_rounds(&turns_with_inputs(&[2, 1, 1, 1])), 3);
        assert_eq!(repeated_rounds(&turns_with_inputs(&[9, 1, 2, 1, 2, 1, 2])), 3);
        assert_eq!(repeated_rounds(&turns_with_inputs(&[1, 2, 1, 2, 1])), 2, "half a round does not count");
        assert_eq!(repeated_rounds(&turns_with_inputs(&[1, 2, 3, 4, 1, 2, 3, 4])), 2);
        assert_eq!(
            repeated_rounds(&turns_with_inputs(&[1, 2, 3, 4, 5, 1, 2, 3, 4, 5])),
            1,
            "longer than the longest round"
        );
    }

    #[test]
    fn a_different_reply_or_a_new_message_ends_a_loop() {
        let mut entries = turns_with_inputs(&[1, 1, 1]);
        entries.push(model_reply(4));
        assert_eq!(repeated_rounds(&entries), 0, "the last turn has no result yet");
        let mut entries = turns_with_inputs(&[1, 1, 1]);
        let words = ContentRef::of(b"words");
        entries.push(HistoryEntry::Message {
            seq: Seq(9),
            from: MessageSender::Person,
            words,
            is_untainted: true,
        });
        entries.extend(turns_with_inputs(&[1]));
        assert_eq!(repeated_rounds(&entries), 1);
    }

    #[test]
    fn concurrent_calls_are_equal_in_any_order() {
        let both = |first, second| {
            let fine = ToolStatus::Exited { code: 0 };
            let [reply, one] = turn_with_call(1, first, fine.clone());
            let [_, other] = turn_with_call(2, second, fine);
            [reply, one, other]
        };
        assert_eq!(repeated_rounds(&[both(1, 2), both(2, 1), both(1, 2)].concat()), 3);
    }

    #[test]
    fn a_call_that_is_interrupted_repeatedly_is_not_a_loop() {
        let turns = |status: ToolStatus| {
            (1..=4).flat_map(|number| turn_with_call(number, 1, status.clone())).collect::<Vec<_>>()
        };
        assert_eq!(repeated_rounds(&turns(ToolStatus::Exited { code: 1 })), 4);
        assert_eq!(repeated_rounds(&turns(ToolStatus::Interrupted { reason: "it stopped".into() })), 0);
    }
}
