//! Answers in JSON, with every protocol.

use serde_json::Value;

use super::{
    answers::{ModelOutput, call, text},
    *,
};

fn verdict() -> Value {
    let reasons = json!({"type": "array", "items": {"type": "string"}});
    let properties = json!({"good": {"type": "boolean"}, "reasons": reasons});
    json!({"type": "object", "required": ["good", "reasons"], "properties": properties})
}

fn json_request(schema: Value) -> ChatRequest {
    ChatRequest {
        system: "Judge it.".into(),
        messages: vec![Message::User { text: json!({"about": "bread"}).to_string() }],
        tools: Vec::new(),
        max_output: 200,
        answer: AnswerForm::Json { schema },
    }
}

/// Claude sends a JSON answer as a tool call, OpenAI as text.
fn answer(kind: ProviderKind, json: &'static str) -> Vec<u8> {
    let output: ModelOutput = if kind == ProviderKind::Openai { text(json) } else { call("answer", json) };
    output.encode(kind)
}

fn value(turn: &CompletedTurn) -> Value {
    serde_json::from_str(&turn.reply.text).unwrap()
}

#[tokio::test]
async fn a_json_answer_matches_its_schema() {
    for (kind, alias) in PROTOCOLS {
        let json = r#"{"good": true, "reasons": ["warm"]}"#;
        let test = TestGateway::new(vec![ScriptedResponse::ok(answer(kind, json))]).await;
        let turn = test.ask(alias, &json_request(verdict())).await.0.unwrap();
        assert_eq!(value(&turn), json!({"good": true, "reasons": ["warm"]}), "{kind:?}");
        let body = &test.server.requests()[0].body;
        match kind {
            ProviderKind::Openai => assert_eq!(body["response_format"]["type"], "json_schema"),
            ProviderKind::Anthropic | ProviderKind::Bedrock | ProviderKind::Local => {
                assert_eq!(body["tool_choice"], json!({"type": "tool", "name": "answer"}));
            }
        }
        assert!(body["messages"].to_string().contains("bread"));
    }
}

#[tokio::test]
async fn a_json_answer_that_violates_its_schema_is_asked_for_once_more() {
    for (kind, alias) in PROTOCOLS {
        let answers = vec![
            ScriptedResponse::ok(answer(kind, r#"{"good": "yes", "reasons": []}"#)),
            ScriptedResponse::ok(answer(kind, "```json\n{\"good\": false, \"reasons\": [],}\n```")),
        ];
        let test = TestGateway::new(answers).await;
        let turn = test.ask(alias, &json_request(verdict())).await.0.unwrap();
        assert_eq!((&value(&turn)["good"], turn.attempts), (&json!(false), 2), "{kind:?}");
        let second = test.server.requests()[1].body.to_string();
        assert!(second.contains("`good` must be of type boolean"), "{second}");
    }
}

#[tokio::test]
async fn two_invalid_json_answers_are_an_error() {
    for (kind, alias) in PROTOCOLS {
        let test = TestGateway::new(vec![ScriptedResponse::ok(text("I cannot say.").encode(kind))]).await;
        let error = test.ask(alias, &json_request(verdict())).await.0.unwrap_err();
        assert_eq!((error.class, test.server.requests().len()), (ErrorClass::Unusable, 2), "{kind:?}");
    }
}

#[tokio::test]
async fn a_json_answer_can_be_something_other_than_an_object() {
    let numbers = json!({"type": "array", "items": {"type": "integer"}});
    for (kind, alias) in PROTOCOLS {
        let test = TestGateway::new(vec![ScriptedResponse::ok(answer(kind, r#"{"answer": [1, 2]}"#))]).await;
        let turn = test.ask(alias, &json_request(numbers.clone())).await.0.unwrap();
        assert_eq!(value(&turn), json!([1, 2]), "{kind:?}");
    }
}
