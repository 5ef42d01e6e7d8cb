//! What a history says of calls and messages.

use super::*;

fn call(number: u8) -> OpId {
    OpId::from_bytes([number; 16])
}

fn content() -> ContentRef {
    ContentRef::of(b"words")
}

fn reply(number: u8, is_untainted: bool) -> HistoryEntry {
    HistoryEntry::ModelReply {
        seq: Seq(1),
        seen: Seq::ZERO,
        reply: ContentRef::of(&[number]),
        ended: ReplyEnd::Whole,
        calls: vec![RequestedCall { call: call(number), tool: "fetch".into() }],
        is_untainted,
    }
}

fn result(number: u8, status: ToolStatus) -> HistoryEntry {
    HistoryEntry::ToolResult {
        call: call(number),
        tool: "fetch".into(),
        input: Some(content()),
        status,
        report: ToolReport::default(),
        is_untainted: false,
    }
}

fn task(entries: Vec<HistoryEntry>) -> TaskHistory {
    TaskHistory {
        newest: EventId::from_bytes([0; 16]),
        id: TaskId::from_bytes([9; 16]),
        parent: None,
        role: "researcher".into(),
        instruction: content(),
        is_untainted: true,
        entries,
        outcome: None,
        permanent_failure: None,
    }
}

#[test]
fn a_call_is_untainted_if_the_turn_that_requested_it_was() {
    let fine = ToolStatus::Exited { code: 0 };
    let task = task(vec![reply(1, true), result(2, fine), reply(3, false)]);
    assert!(task.was_requested_untainted(call(1)));
    assert!(!task.was_requested_untainted(call(3)));
    assert!(!task.was_requested_untainted(call(4)), "no turn requested it");
}

#[test]
fn only_the_next_call_can_repeat_an_interrupted_one() {
    let interrupted = || result(2, ToolStatus::Interrupted { reason: "it stopped".into() });
    let fine = |number| result(number, ToolStatus::Exited { code: 0 });
    let found = |entries: Vec<HistoryEntry>, number| task(entries).interrupted_before(call(number));
    let past = [reply(1, true), fine(1), reply(2, true), interrupted()];
    let with = |more: Vec<HistoryEntry>| past.iter().cloned().chain(more).collect::<Vec<_>>();
    let second_reply = match &past[2] {
        HistoryEntry::ModelReply { reply, .. } => *reply,
        HistoryEntry::ToolResult { .. } | HistoryEntry::Message { .. } => panic!("not a reply"),
    };
    assert_eq!(
        found(with(vec![reply(3, true)]), 3),
        [InterruptedCall { call: call(2), reply: second_reply, index: 0 }]
    );
    assert_eq!(found(with(vec![reply(3, true)]), 4), [], "it belongs to another turn");
    assert_eq!(
        found(with(vec![reply(3, true), fine(3), reply(4, true)]), 4),
        [],
        "another call was made in between"
    );
    let mut both = reply(3, true);
    if let HistoryEntry::ModelReply { calls, .. } = &mut both {
        calls.push(RequestedCall { call: call(4), tool: "fetch".into() });
    }
    assert_eq!(found(with(vec![both]), 3), [], "the turn requests two calls");
    assert_eq!(found(vec![reply(1, true), fine(1), reply(2, true)], 2), [], "no call was interrupted");
}
