//! Typed functions, on every wire.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    answers::{Says, call, text},
    *,
};
use crate::Function;

#[derive(Serialize)]
struct Question {
    about: &'static str,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Verdict {
    good: bool,
    reasons: Vec<String>,
}

const JUDGE: Function<Question, Verdict> = Function::new("Judge it.", 200);
const QUESTION: Question = Question { about: "bread" };

/// An answer of the asked form comes as a call from Claude and as text from others.
fn answer(kind: Kind, json: &'static str) -> Vec<u8> {
    let says: Says = if kind == Kind::Openai { text(json) } else { call("answer", json) };
    says.on(kind)
}

#[tokio::test]
async fn a_function_gives_a_value_of_its_type() {
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(answer(kind, r#"{"good": true, "reasons": ["warm"]}"#))]).await;
        let chosen = rig.gateway.chosen(alias).unwrap();
        let found = JUDGE.call(&rig.gateway, &chosen, &QUESTION).await.unwrap();
        assert_eq!(found.value, Verdict { good: true, reasons: vec!["warm".into()] }, "{kind:?}");
        let body = &rig.server.asked()[0].body;
        match kind {
            Kind::Openai => assert_eq!(body["response_format"]["type"], "json_schema"),
            Kind::Anthropic | Kind::Bedrock | Kind::Local => {
                assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "answer"}));
            }
        }
        assert!(body["messages"].to_string().contains("bread"));
    }
}

#[tokio::test]
async fn an_answer_of_another_type_is_asked_for_once_more() {
    for (kind, alias) in WIRES {
        let answers = vec![
            Scripted::ok(answer(kind, r#"{"good": "yes", "reasons": []}"#)),
            Scripted::ok(answer(kind, "```json\n{\"good\": false, \"reasons\": [],}\n```")),
        ];
        let rig = Rig::new(answers).await;
        let chosen = rig.gateway.chosen(alias).unwrap();
        let found = JUDGE.call(&rig.gateway, &chosen, &QUESTION).await.unwrap();
        assert_eq!((found.value.good, found.turn.attempts), (false, 2), "{kind:?}");
        let told = rig.server.asked()[1].body.to_string();
        assert!(told.contains("`good` must be of type boolean"), "{told}");
    }
}

#[tokio::test]
async fn an_answer_of_another_type_twice_is_unusable() {
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(text("I cannot say.").on(kind))]).await;
        let chosen = rig.gateway.chosen(alias).unwrap();
        let error = JUDGE.call(&rig.gateway, &chosen, &QUESTION).await.unwrap_err();
        assert_eq!((error.class, rig.server.asked().len()), (ErrorClass::Unusable, 2), "{kind:?}");
    }
}

#[tokio::test]
async fn types_that_are_no_objects_are_given_too() {
    const COUNT: Function<Question, Vec<u8>> = Function::new("Count.", 200);
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(answer(kind, r#"{"answer": [1, 2]}"#))]).await;
        let chosen = rig.gateway.chosen(alias).unwrap();
        let found = COUNT.call(&rig.gateway, &chosen, &QUESTION).await.unwrap();
        assert_eq!(found.value, [1, 2], "{kind:?}");
    }
}
