//! The server forgets: who asks again gets the same bytes, and what is kept of a request has no key.

use scripted_model::{Outcome, Wire};

use crate::{
    client::{RESEARCHER, Said, ask, body, headers, path, post, researcher, send, serve},
    listening::hear,
};

const STEPS: &str = "[[agent.step]]
text = \"I will look.\"
calls = [ { tool = \"read\", input = { path = \"a.md\" } }, { tool = \"read\", input = { path = \"b.md\" } } ]
[[agent.step]]
expect = [\"silicon\"]
text = \"They are silicon.\"";

#[test]
fn the_number_of_assistant_turns_says_which_step_is_played() {
    for wire in Wire::ALL {
        let server = researcher(STEPS);
        let first = hear(wire, &ask(&server, wire, &[Said::User("panels")]));
        let ids: Vec<String> = first.calls.iter().map(|(id, ..)| id.clone()).collect();
        let calls = ids.iter().map(|id| (id.clone(), "read")).collect();
        let results = vec![(ids[0].clone(), "of silicon"), (ids[1].clone(), "")];
        let said = [Said::User("panels"), Said::Model("I will look.", calls), Said::Results(results)];
        let second = hear(wire, &ask(&server, wire, &said));
        assert_eq!((second.text.as_str(), second.calls.len()), ("They are silicon.", 0));
        assert_eq!(server.refusals(), [""; 0], "its own ids are taken back");
        let step = |n: usize| server.requests()[n].outcome.clone();
        let played = |step| Outcome::Played { agent: "researcher".into(), step, fault: None };
        assert_eq!((step(0), step(1)), (played(0), played(1)));
    }
}

#[test]
fn who_asks_again_gets_the_same_bytes_even_from_another_server() {
    for wire in Wire::ALL {
        let (server, other) = (researcher(STEPS), researcher(STEPS));
        let body = |server: &scripted_model::Server| ask(server, wire, &[Said::User("panels")]).body;
        let first = body(&server);
        assert_eq!(first, body(&server));
        assert_eq!(first, body(&other));
        let begun_otherwise = ask(&server, wire, &[Said::User("tea")]);
        let id = |body: &[u8]| {
            let answer = crate::client::Answer { body: body.to_vec(), ..begun_otherwise.clone() };
            hear(wire, &answer).calls[0].0.clone()
        };
        assert_ne!(id(&first), id(&begun_otherwise.body), "another conversation has other ids");
    }
}

#[test]
fn messages_of_the_assistant_that_follow_each_other_are_one_turn() {
    let server = researcher("[[agent.step]]\n[[agent.step]]\ntext = \"second\"");
    for wire in Wire::ALL {
        let twice = [Said::Model("One.", Vec::new()), Said::Model("Two.", Vec::new())];
        let said = [&[Said::User("panels")][..], &twice, &[Said::User("and?")]].concat();
        assert_eq!(hear(wire, &ask(&server, wire, &said)).text, "second");
    }
}

#[test]
fn tokens_are_guessed_alike_on_every_wire() {
    let server = researcher(STEPS);
    let counts = Wire::ALL.map(|wire| {
        let call = |id: &str| (id.to_owned(), "read");
        let results = vec![("c1".to_owned(), "of silicon")];
        let said = [Said::User("panels"), Said::Model("I look.", vec![call("c1")]), Said::Results(results)];
        let heard = hear(wire, &ask(&server, wire, &said));
        (heard.input, heard.output)
    });
    let bytes = RESEARCHER.len() + "panelsI look.{}of silicon".len();
    assert_eq!(counts, [(bytes.div_ceil(4) as u64, "They are silicon.".len().div_ceil(4) as u64); 3]);
}

#[test]
fn requests_can_be_read_back_without_keys() {
    let server = serve("[[agent]]\n[[agent.step]]\ntext = \"hello\"");
    for wire in Wire::ALL {
        let mut leaky = body(wire, RESEARCHER, &[Said::User("solar")]);
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
    assert!(requests[0].body.contains("the key is [key]"), "a leak is to be seen");
    assert_eq!(requests[0].wire, Some(Wire::Anthropic));
    assert_eq!(requests[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(requests[0].json()["messages"][0]["content"], "solar");
    assert!(requests[0].refusal().is_none() && requests[1].refusal().is_some());
    server.forget_requests();
    assert!(server.requests().is_empty());
}
