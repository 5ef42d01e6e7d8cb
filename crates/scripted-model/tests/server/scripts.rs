//! Scripts: who is meant, what is expected, and mistakes that are told at once.

use scripted_model::{Options, Script, Wire};

use crate::{
    client::{Said, ask, body, researcher, send, serve},
    listening::hear,
};

const WIRE: Wire = Wire::Anthropic;

fn text(server: &scripted_model::Server, system: &str, first: &'static str) -> String {
    hear(WIRE, &send(server, WIRE, &body(WIRE, system, &[Said::User(first)]))).text
}

fn refusal(answer: &crate::client::Answer) -> String {
    assert_eq!(answer.status, 400);
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn the_first_agent_whose_role_and_text_fit_is_played() {
    let agent = |head: &str, text: &str| format!("[[agent]]\n{head}\n[[agent.step]]\ntext = \"{text}\"\n");
    let server = serve(
        &[
            agent("role = \"writer\"\nwhen = \"solar\"", "solar writer"),
            agent("role = \"Writer\"", "any writer"),
            agent("when = \"tea\"", "tea for anybody"),
        ]
        .concat(),
    );
    assert_eq!(text(&server, "Hello. YOU ARE THE WRITER. Write.", "on solar power"), "solar writer");
    assert_eq!(text(&server, "you are the writer", "on wind"), "any writer");
    assert_eq!(text(&server, "You are the Terminal.", "make tea"), "tea for anybody");
    let nobody = send(&server, WIRE, &body(WIRE, "You are the Writers' friend.", &[Said::User("coffee")]));
    assert!(refusal(&nobody).starts_with("scripted model: no agent of the script matches"));
}

#[test]
fn what_is_not_as_expected_fails_loudly_on_every_wire() {
    let server = researcher(
        "[[agent.step]]\nexpect = [\"solar\", \"wind\"]\nexpect_not = [\"coal\"]\ntext = \"Yes.\"",
    );
    for wire in Wire::ALL {
        assert_eq!(ask(&server, wire, &[Said::User("solar and wind")]).status, 200);
        for (said, expected) in
            [("solar", "expected \\\"wind\\\""), ("solar, wind, coal", "did not expect \\\"coal\\\"")]
        {
            let answer = ask(&server, wire, &[Said::User(said)]);
            assert_eq!(answer.status, 400);
            assert!(answer.text().contains(expected), "{}", answer.text());
            assert!(answer.text().contains("agent researcher at step 0"));
        }
    }
    assert_eq!(server.refusals().len(), 6);
}

#[test]
fn only_what_was_said_since_the_last_turn_counts() {
    let server = researcher("[[agent.step]]\n[[agent.step]]\nexpect_not = [\"solar\"]\ntext = \"Yes.\"");
    let said = [Said::User("solar"), Said::Model("solar?", Vec::new()), Said::User("wind")];
    for wire in Wire::ALL {
        assert_eq!(hear(wire, &ask(&server, wire, &said)).text, "Yes.");
    }
}

#[test]
fn a_script_that_is_over_says_so() {
    let server = researcher("[[agent.step]]\ntext = \"once\"");
    let said = [Said::User("solar"), Said::Model("once", Vec::new()), Said::User("again")];
    for wire in Wire::ALL {
        let answer = ask(&server, wire, &said);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains("script is over for agent researcher at step 1"));
    }
}

#[test]
fn a_turn_that_is_to_be_taken_again_is_taken_again_and_does_not_count() {
    let server = serve(
        "again = \"once more\"\n[[agent]]\n[[agent.step]]\nexpect = [\"solar\"]\ntext = \"one\"\n\
         [[agent.step]]\nexpect = [\"go on\"]\ntext = \"two\"",
    );
    let mut said = vec![Said::User("solar, once more"), Said::Model("one", Vec::new())];
    for (told, answer) in [("do it once more", "one"), ("and once more", "one"), ("go on", "two")] {
        said.push(Said::User(told));
        for wire in Wire::ALL {
            assert_eq!(hear(wire, &ask(&server, wire, &said)).text, answer, "{told}");
        }
        said.push(Said::Model(answer, Vec::new()));
    }
}

#[test]
fn an_answer_may_be_empty() {
    let server = researcher("[[agent.step]]");
    for wire in Wire::ALL {
        let heard = hear(wire, &ask(&server, wire, &[Said::User("solar")]));
        assert!(heard.ended && heard.text.is_empty() && heard.calls.is_empty());
    }
}

#[test]
fn among_several_scripts_the_objective_decides_and_workers_are_found_by_their_text() {
    let read = |name: &str| {
        let path = format!("{}/../../fixtures/scripts/{name}", env!("CARGO_MANIFEST_DIR"));
        Script::parse(&std::fs::read_to_string(path).unwrap()).unwrap()
    };
    let scripts = vec![read("solar.toml"), read("tea.toml")];
    let server = Options { scripts, ..Options::default() }.serve().unwrap();
    let conductor = "You are the Conductor.";
    assert_eq!(text(&server, conductor, "All about solar power"), "I will have somebody look.");
    assert_eq!(text(&server, conductor, "How long for tea?"), "Three minutes.");
    assert_eq!(text(&server, "You are the Researcher.", "How do panels work?"), "I will look.");
    assert_eq!(send(&server, WIRE, &body(WIRE, conductor, &[Said::User("coffee")])).status, 400);
}

#[test]
fn mistakes_in_a_script_are_told_when_it_is_read() {
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
