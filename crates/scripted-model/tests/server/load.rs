//! The overhead of the server must be small, because it is used to measure the overhead of others.

use std::{
    thread,
    time::{Duration, Instant},
};

use scripted_model::Wire;

use crate::{
    client::{TestMessage, ask, researcher},
    stream_reader::read_stream,
};

const STEP: &str = "[[agent.step]]
text = \"I will look, and then I will tell you all about it, at some length.\"
calls = [ { tool = \"read\", input = { path = \"a.md\" } } ]";

#[test]
fn a_hundred_conversations_at_once_are_all_answered() {
    let server = researcher(STEP);
    thread::scope(|scope| {
        for number in 0..100 {
            let server = &server;
            scope.spawn(move || {
                let wire = Wire::ALL[number % 3];
                for _ in 0..10 {
                    assert!(read_stream(wire, &ask(server, wire, &[TestMessage::User("solar")])).ended);
                }
            });
        }
    });
    assert_eq!((server.requests().len(), server.refusals().len()), (1000, 0));
}

/// The limit is 1 ms with a new connection for each request. Other tests run at the same time, so the best of many
/// rounds counts.
#[test]
fn a_reply_takes_less_than_a_millisecond() {
    let server = researcher(STEP);
    for wire in Wire::ALL {
        let once = || {
            let begin = Instant::now();
            ask(&server, wire, &[TestMessage::User("solar")]);
            begin.elapsed()
        };
        let best = (0..200).map(|_| once()).min().unwrap();
        assert!(best < Duration::from_millis(1), "{wire:?}: {best:?}");
        println!("{wire:?}: {best:?}");
    }
}
