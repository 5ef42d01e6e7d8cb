//! The server is stateless: a repeated request gets the same bytes. Recorded requests contain no keys.

use scripted_model::{RequestOutcome, Wire};

use crate::{
    client::{RESEARCHER, TestMessage, ask, body, headers, path, post, researcher, send, serve},
    stream_reader::read_stream,
};

const STEPS: &str = "[[agent.step]]
text = \"I will look.\"
calls = [ { tool = \"read\", input = { path = \"a.md\" } }, { tool = \"read\", input = { path = \"b.md\" } } ]
[[agent.step]]
expect = [\"silicon\"]
text = \"They are silicon.\"";

#[test]
fn the_number_of_assistant_turns_is_the_step() {
    for wire in Wire::ALL {
        let server = researcher(STEPS);
        let first = read_stream(wire, &ask(&server, wire, &[TestMessage::User("panels")]));
        let ids: Vec<String> = first.calls.iter().map(|(id, ..)| id.clone()).collect();
        let calls = ids.iter().map(|id| (id.clone(), "read")).collect();
        let results = vec![(ids[0].clone(), "of silicon"), (ids[1].clone(), "")];
        let messages = [
            TestMessage::User("panels"),
            TestMessage::Model("I will look.", calls),
            TestMessage::Results(results),
        ];
        let second = read_stream(wire, &ask(&server, wire, &messages));
        assert_eq!((second.text.as_str(), second.calls.len()), ("They are silicon.", 0));
        assert_eq!(server.refusals(), [""; 0], "the server accepts its own ids");
        let step = |n: usize| server.requests()[n].outcome.clone();
        let played = |step| RequestOutcome::Played { agent: "researcher".into(), step, fault: None };
        assert_eq!((step(0), step(1)), (played(0), played(1)));
    }
}

#[test]
fn a_repeated_request_gets_the_same_bytes_even_from_another_server() {
    for wire in Wire::ALL {
        let (server, other) = (researcher(STEPS), researcher(STEPS));
        let body =
            |server: &scripted_model::ScriptedServer| ask(server, wire, &[TestMessage::User("panels")]).body;
        let first = body(&server);
        assert_eq!(first, body(&server));
        assert_eq!(first, body(&other));
        let begun_otherwise = ask(&server, wire, &[TestMessage::User("tea")]);
        let id = |body: &[u8]| {
            let answer = crate::client::Answer { body: body.to_vec(), ..begun_otherwise.clone() };
            read_stream(wire, &answer).calls[0].0.clone()
        };
        assert_ne!(id(&first), id(&begun_otherwise.body), "another conversation has other ids");
    }
}

#[test]
fn consecutive_assistant_messages_are_one_turn() {
    let server = researcher("[[agent.step]]\n[[agent.step]]\ntext = \"second\"");
    for wire in Wire::ALL {
        let twice = [TestMessage::Model("One.", Vec::new()), TestMessage::Model("Two.", Vec::new())];
        let messages = [&[TestMessage::User("panels")][..], &twice, &[TestMessage::User("and?")]].concat();
        assert_eq!(read_stream(wire, &ask(&server, wire, &messages)).text, "second");
    }
}

#[test]
fn estimated_tokens_are_the_same_in_every_protocol() {
    let server = researcher(STEPS);
    let counts = Wire::ALL.map(|wire| {
        let call = |id: &str| (id.to_owned(), "read");
        let results = vec![("c1".to_owned(), "of silicon")];
        let messages = [
            TestMessage::User("panels"),
            TestMessage::Model("I look.", vec![call("c1")]),
            TestMessage::Results(results),
        ];
        let reply = read_stream(wire, &ask(&server, wire, &messages));
        (reply.input, reply.output)
    });
    let bytes = RESEARCHER.len() + "panelsI look.{}of silicon".len();
    assert_eq!(counts, [(bytes.div_ceil(4) as u64, "They are silicon.".len().div_ceil(4) as u64); 3]);
}

#[test]
fn recorded_requests_contain_no_keys() {
    let server = serve("[[agent]]\n[[agent.step]]\ntext = \"hello\"");
    for wire in Wire::ALL {
        let mut leaky = body(wire, RESEARCHER, &[TestMessage::User("solar")]);
        leaky["system"] = format!("the key is {}", server.key()).into();
        if wire == Wire::OpenAi {
            leaky.as_object_mut().unwrap().remove("system");
        }
        assert_eq!(send(&server, wire, &leaky).status, 200);
        let wrong = headers(wire, "sk-wrong");
        assert_ne!(post(server.address(), path(wire), &wrong, "{}").status, 200);
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 6);
    let all = format!("{requests:?}");
    assert!(!all.contains(server.key()) && !all.contains("sk-wrong"));
    assert!(requests[0].body.contains("the key is [key]"), "a leaked key is visible as [key]");
    assert_eq!(requests[0].wire, Some(Wire::Anthropic));
    assert_eq!(requests[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(requests[0].json()["messages"][0]["content"], "solar");
    assert!(requests[0].refusal().is_none() && requests[1].refusal().is_some());
    server.forget_requests();
    assert!(server.requests().is_empty());
}
