//! Scripts: which agent is played, expectations, and errors in scripts.

use scripted_model::{Script, ServerOptions, Wire};

use crate::{
    client::{TestMessage, ask, body, researcher, send, serve},
    stream_reader::read_stream,
};

const WIRE: Wire = Wire::Anthropic;

fn text(server: &scripted_model::ScriptedServer, system: &str, first: &'static str) -> String {
    read_stream(WIRE, &send(server, WIRE, &body(WIRE, system, &[TestMessage::User(first)]))).text
}

fn refusal(answer: &crate::client::Answer) -> String {
    assert_eq!(answer.status, 400);
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_agent_whose_role_and_text_match_is_played() {
    let agent = |head: &str, text: &str| format!("[[agent]]\n{head}\n[[agent.step]]\ntext = \"{text}\"\n");
    let server = serve(
        &[
            agent("role = \"writer\"\nwhen = \"solar\"", "solar writer"),
            agent("role = \"Writer\"", "any writer"),
            agent("when = \"tea\"", "tea for any role"),
        ]
        .concat(),
    );
    assert_eq!(text(&server, "Hello. YOU ARE THE WRITER. Write.", "on solar power"), "solar writer");
    assert_eq!(text(&server, "you are the writer", "on wind"), "any writer");
    assert_eq!(text(&server, "You are the Terminal.", "make tea"), "tea for any role");
    let unmatched =
        send(&server, WIRE, &body(WIRE, "You are the Writers' friend.", &[TestMessage::User("coffee")]));
    assert!(refusal(&unmatched).starts_with("scripted model: no agent of the script matches"));
}

#[test]
fn failed_expectations_are_reported_in_every_protocol() {
    let server = researcher(
        "[[agent.step]]\nexpect = [\"solar\", \"wind\"]\nexpect_not = [\"coal\"]\ntext = \"Yes.\"",
    );
    for wire in Wire::ALL {
        assert_eq!(ask(&server, wire, &[TestMessage::User("solar and wind")]).status, 200);
        for (text, expected) in
            [("solar", "expected \\\"wind\\\""), ("solar, wind, coal", "did not expect \\\"coal\\\"")]
        {
            let answer = ask(&server, wire, &[TestMessage::User(text)]);
            assert_eq!(answer.status, 400);
            assert!(answer.text().contains(expected), "{}", answer.text());
            assert!(answer.text().contains("agent researcher at step 0"));
        }
    }
    assert_eq!(server.refusals().len(), 6);
}

#[test]
fn only_messages_since_the_last_turn_are_checked() {
    let server = researcher("[[agent.step]]\n[[agent.step]]\nexpect_not = [\"solar\"]\ntext = \"Yes.\"");
    let messages =
        [TestMessage::User("solar"), TestMessage::Model("solar?", Vec::new()), TestMessage::User("wind")];
    for wire in Wire::ALL {
        assert_eq!(read_stream(wire, &ask(&server, wire, &messages)).text, "Yes.");
    }
}

#[test]
fn a_request_beyond_the_last_step_is_reported() {
    let server = researcher("[[agent.step]]\ntext = \"once\"");
    let messages =
        [TestMessage::User("solar"), TestMessage::Model("once", Vec::new()), TestMessage::User("again")];
    for wire in Wire::ALL {
        let answer = ask(&server, wire, &messages);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("script is over for agent researcher at step 1"));
    }
}

#[test]
fn a_repeated_turn_is_played_again_and_does_not_count() {
    let server = serve(
        "again = \"once more\"\n[[agent]]\n[[agent.step]]\nexpect = [\"solar\"]\ntext = \"one\"\n\
         [[agent.step]]\nexpect = [\"go on\"]\ntext = \"two\"",
    );
    let mut messages = vec![TestMessage::User("solar, once more"), TestMessage::Model("one", Vec::new())];
    for (told, answer) in [("do it once more", "one"), ("and once more", "one"), ("go on", "two")] {
        messages.push(TestMessage::User(told));
        for wire in Wire::ALL {
            assert_eq!(read_stream(wire, &ask(&server, wire, &messages)).text, answer, "{told}");
        }
        messages.push(TestMessage::Model(answer, Vec::new()));
    }
}

#[test]
fn an_answer_may_be_empty() {
    let server = researcher("[[agent.step]]");
    for wire in Wire::ALL {
        let reply = read_stream(wire, &ask(&server, wire, &[TestMessage::User("solar")]));
        assert!(reply.ended && reply.text.is_empty() && reply.calls.is_empty());
    }
}

#[test]
fn the_objective_chooses_among_several_scripts_and_workers_are_found_by_their_text() {
    let read = |name: &str| {
        let path = format!("{}/../../fixtures/scripts/{name}", env!("CARGO_MANIFEST_DIR"));
        Script::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let scripts = vec![read("solar.toml"), read("tea.toml")];
    let server = ServerOptions { scripts, ..ServerOptions::default() }.serve().unwrap();
    let conductor = "You are the Conductor.";
    assert_eq!(text(&server, conductor, "All about solar power"), "I will delegate this.");
    assert_eq!(text(&server, conductor, "How long for tea?"), "Three minutes.");
    assert_eq!(text(&server, "You are the Researcher.", "How do panels work?"), "I will look.");
    assert_eq!(send(&server, WIRE, &body(WIRE, conductor, &[TestMessage::User("coffee")])).status, 400);
}

#[test]
fn errors_in_a_script_are_reported_when_it_is_parsed() {
    for (step, problem) in [
        ("times = 2", "`times` needs a `fault`"),
        ("fault = \"bad_json\"", "`bad_json` needs a call"),
        ("fault = \"slow\"", "`slow` needs `delay_ms`"),
        ("retry_after = 2", "`retry_after` belongs to `rate_limit`"),
    ] {
        let error =
            Script::parse(&format!("[[agent]]\nrole = \"writer\"\n[[agent.step]]\n{step}")).unwrap_err();
        let expected = format!("agent 0 (`writer`), step 0: {problem}");
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
    for step in ["fault = \"earthquake\"", "colour = 1", "calls = [ { input = {} } ]"] {
        assert!(Script::parse(&format!("[[agent]]\n[[agent.step]]\n{step}")).is_err(), "{step}");
    }
}
