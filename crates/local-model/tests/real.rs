//! Tests with the real model: `CHOIR_LOCAL_WEIGHTS=<file> cargo nextest run -p local-model --run-ignored all`.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;

use local_model::{LocalModelRunner, RunnerOptions, StartError};
use serde_json::{Value, json};

/// The context size in the catalog of `models`.
const CONTEXT: usize = 8192;

fn runner(memory: u64) -> LocalModelRunner {
    let weights =
        PathBuf::from(std::env::var("CHOIR_LOCAL_WEIGHTS").expect("CHOIR_LOCAL_WEIGHTS names the weights"));
    let options = RunnerOptions { memory, ..RunnerOptions::new(weights, CONTEXT) };
    LocalModelRunner::with_program(env!("CARGO_BIN_EXE_choir-local-model"), options)
}

/// Sends a request and compares the estimated prompt tokens with the model's own count.
async fn ask(runner: &LocalModelRunner, body: &Value) -> Value {
    let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
    let lease = runner.acquire().await.unwrap();
    let request = reqwest::Client::new().post(format!("{}/chat/completions", lease.base_url()));
    let request = request.bearer_auth(lease.bearer()).header("content-type", "application/json");
    let text = request.body(body.to_string()).send().await.unwrap().text().await.unwrap();
    let answer: Value = serde_json::from_str(&text).unwrap();
    let counted = answer["usage"]["prompt_tokens"].as_u64().unwrap() as usize;
    let estimated = local_model::estimate_tokens(body).unwrap();
    println!("{counted} tokens, estimated {estimated}");
    assert!((counted..counted * 3 / 2).contains(&estimated), "{counted} tokens, estimated {estimated}");
    answer
}

#[tokio::test]
#[ignore = "needs the weights"]
async fn the_model_calls_a_tool_and_reads_only_the_new_part() {
    let runner = runner(7 << 29);
    let parameters =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let function = json!({ "name": "read", "description": "The text of a file.", "parameters": parameters });
    let mut request = json!({
        "messages": [{ "role": "user", "content": "What does notes.txt say? Use the tool." }],
        "tools": [{ "type": "function", "function": function }],
    });
    let first = ask(&runner, &request).await;
    let message = &first["choices"][0]["message"];
    let function = &message["tool_calls"][0]["function"];
    assert_eq!(function["name"], "read", "{first}");
    let arguments: Value = serde_json::from_str(function["arguments"].as_str().unwrap()).unwrap();
    assert_eq!(arguments, json!({ "path": "notes.txt" }));

    let result =
        json!({ "role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "Buy oat milk." });
    request["messages"].as_array_mut().unwrap().extend([message.clone(), result]);
    let second = ask(&runner, &request).await;
    let text = second["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.to_lowercase().contains("milk"), "{second}");
    let cached = second["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64().unwrap();
    assert!(cached > first["usage"]["prompt_tokens"].as_u64().unwrap(), "{second}");
}

#[tokio::test]
#[ignore = "needs the weights"]
async fn running_out_of_memory_is_reported_by_the_real_model() {
    let error = runner(1 << 30).acquire().await.unwrap_err();
    assert!(matches!(&error, StartError::Failed(why) if why.contains("memory")), "{error}");
}
