//! Conversations of all shapes in little room.

use serde_json::json;

use super::*;

const TASK: &str = "Read everything and tell what it is about.";

/// A turn with calls whose results have these sizes.
fn turn(number: usize, sizes: &[usize]) -> [Message; 2] {
    let id = |n: usize| format!("{number}-{n}");
    let calls = (0..sizes.len()).map(|n| Call {
        id: id(n),
        tool: "read".into(),
        input: json!({ "path": format!("{number}.txt") }),
    });
    let results = sizes.iter().enumerate().map(|(n, size)| CallResult {
        id: id(n),
        tool: "read".into(),
        text: format!("page {number}\n{}", "x".repeat(*size)),
        failed: false,
    });
    [
        Message::Model { text: String::new(), calls: calls.collect() },
        Message::Tools { results: results.collect() },
    ]
}

fn conversation(turns: impl IntoIterator<Item = Vec<usize>>) -> Vec<Message> {
    let turns = turns.into_iter().enumerate().flat_map(|(number, sizes)| turn(number, &sizes));
    std::iter::once(Message::User { text: TASK.into() }).chain(turns).collect()
}

fn size(messages: &[Message]) -> usize {
    messages.iter().map(Message::size).sum()
}

/// Every call is answered right after the turn that made it, as all providers want it.
fn assert_is_whole(messages: &[Message]) {
    assert!(matches!(&messages[0], Message::User { text } if text.starts_with(TASK)));
    for pair in messages[1..].chunks(2) {
        let [Message::Model { calls, .. }, Message::Tools { results }] = pair else { panic!("{pair:?}") };
        let (calls, results): (Vec<_>, Vec<_>) =
            (calls.iter().map(|call| &call.id).collect(), results.iter().map(|result| &result.id).collect());
        assert_eq!(calls, results);
    }
}

fn results(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .filter_map(|message| if let Message::Tools { results } = message { Some(results) } else { None })
        .flatten()
        .map(|result| result.text.as_str())
        .collect()
}

#[test]
fn what_fits_is_left_alone() {
    let messages = conversation([vec![4_000], vec![3_000, 10]]);
    assert_eq!(fit(messages.clone(), size(&messages)), messages);
    assert_eq!(fit(messages.clone(), usize::MAX), messages);
}

#[test]
fn the_oldest_results_go_first_and_those_of_the_last_turn_stay() {
    let messages = conversation([vec![3_000], vec![3_000], vec![3_000], vec![3_000]]);
    let fitted = fit(messages.clone(), 11_000);
    assert!(size(&fitted) <= 11_000);
    assert_is_whole(&fitted);
    let (before, after) = (results(&messages), results(&fitted));
    assert_eq!(after[0], "page 0\n[3001 bytes are left out]");
    assert_eq!(after[1..], before[1..]);
}

#[test]
fn many_small_turns_are_told_in_a_line_for_each_call() {
    let messages = conversation(vec![vec![50]; 300]);
    let fitted = fit(messages, 10_000);
    assert!(size(&fitted) <= 10_000, "{}", size(&fitted));
    assert_is_whole(&fitted);
    let Message::User { text } = &fitted[0] else { panic!() };
    let shown = (fitted.len() - 1) / 2;
    assert!(
        text.contains(&format!("[{} earlier turns of yours are left out. In them:]\n- …\n", 300 - shown))
    );
    let newest = 299 - shown;
    assert!(text.ends_with(&format!("- read {{\"path\":\"{newest}.txt\"}}: page {newest}")), "{text}");
}

#[test]
fn one_turn_with_more_than_all_is_cut_to_its_share_and_small_results_stay_whole() {
    let messages = conversation([vec![100_000, 20, 50_000, 70_000]]);
    let fitted = fit(messages.clone(), 12_000);
    assert!(size(&fitted) <= 12_000);
    assert_is_whole(&fitted);
    let (before, after) = (results(&messages), results(&fitted));
    assert_eq!(after[1], before[1]);
    assert!(after[0].starts_with("page 0\nxxx") && after[0].contains("bytes are left out"), "{}", after[0]);
}

/// What is cached of a conversation is its beginning: it must not change with every turn.
#[test]
fn the_beginning_stays_the_same_while_a_conversation_grows() {
    let (mut changes, mut before) = (0, Vec::new());
    for count in 1..=60 {
        let fitted = fit(conversation(vec![vec![1_000]; count]), 20_000);
        assert!(size(&fitted) <= 20_000);
        assert_is_whole(&fitted);
        changes += usize::from(!fitted.starts_with(&before));
        before = fitted;
    }
    assert!(changes <= 20, "it changed {changes} times");
}

#[test]
fn whatever_the_sizes_it_fits_and_stays_whole() {
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % below) as usize
    };
    for _ in 0..500 {
        let mut sizes = Vec::new();
        for _ in 0..next(40) {
            sizes.push(
                (0..=next(4))
                    .map(|_| {
                        let most = [10, 300, 12_000][next(3)];
                        next(most)
                    })
                    .collect(),
            );
        }
        let room = 4_000 + next(60_000);
        let fitted = fit(conversation(sizes), room);
        assert!(size(&fitted) <= room, "{} of {room}", size(&fitted));
        assert_is_whole(&fitted);
    }
}

#[test]
fn words_that_were_said_between_turns_are_told_in_short() {
    let mut messages = conversation(vec![vec![50]; 100]);
    messages.insert(3, Message::User { text: "The person says: use metres.".into() });
    messages.insert(3, Message::Model { text: "I wait.\nReally.".into(), calls: Vec::new() });
    let fitted = fit(messages, 14_000);
    let Message::User { text } = &fitted[0] else { panic!() };
    assert!(text.contains("In them:]\n- …\n- The person says: use metres.\n- read "), "{text}");
}
