//! It is used to measure the overhead of others, so its own must not be seen.

use std::{
    thread,
    time::{Duration, Instant},
};

use scripted_model::Wire;

use crate::{
    client::{Said, ask, researcher},
    listening::hear,
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
                    assert!(hear(wire, &ask(server, wire, &[Said::User("solar")])).ended);
                }
            });
        }
    });
    assert_eq!((server.requests().len(), server.refusals().len()), (1000, 0));
}

/// The bar is 1 ms with a connection for each request. Other tests run beside this one, so the best of many rounds
/// counts: it is what the server costs, not what the machine was busy with.
#[test]
fn a_reply_takes_less_than_a_millisecond() {
    let server = researcher(STEP);
    for wire in Wire::ALL {
        let once = || {
            let begin = Instant::now();
            ask(&server, wire, &[Said::User("solar")]);
            begin.elapsed()
        };
        let best = (0..200).map(|_| once()).min().unwrap();
        assert!(best < Duration::from_millis(1), "{wire:?}: {best:?}");
        println!("{wire:?}: {best:?}");
    }
}
