//! Retries, pauses, timeouts and cancellation.

use super::{
    answers::{ModelOutput, text},
    server::AfterBody,
    *,
};
use crate::chat::Usage;

#[tokio::test]
async fn a_truncated_stream_is_retried_and_the_listener_is_reset() {
    for (kind, alias) in PROTOCOLS {
        let answers = vec![
            ScriptedResponse::ok(text("Hel").encode_truncated(kind)),
            ScriptedResponse::ok(text("Hello").encode(kind)),
        ];
        let test = TestGateway::new(answers).await;
        let (turn, deltas) = test.ask(alias, &request()).await;
        let turn = turn.unwrap();
        assert_eq!((turn.reply.text.as_str(), turn.attempts), ("Hello", 2), "{kind:?}");
        assert_eq!(
            deltas,
            [Delta::Text("Hel".into()), Delta::Restart, Delta::Text("Hello".into())],
            "{kind:?}"
        );
        assert_eq!(test.pauses().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_stream_that_is_always_truncated_is_an_error() {
    for (kind, alias) in PROTOCOLS {
        let test = TestGateway::new(vec![ScriptedResponse::ok(text("Hel").encode_truncated(kind))]).await;
        let (turn, _) = test.ask(alias, &request()).await;
        assert_eq!(class(turn), ErrorClass::Retryable, "{kind:?}");
        assert_eq!(test.server.requests().len(), 4, "{kind:?}: the attempts in the catalog");
    }
}

#[tokio::test]
async fn pauses_double_and_have_jitter() {
    let test = TestGateway::new(vec![ScriptedResponse::refusal(500, "{}")]).await;
    assert_eq!(class(test.ask("gpt", &request()).await.0), ErrorClass::Retryable);
    let bounds = [1000, 2000, 4000].map(Duration::from_millis);
    let pauses = test.pauses();
    assert_eq!(pauses.len(), 3);
    assert!(pauses.iter().zip(bounds).all(|(pause, bound)| *pause <= bound), "{pauses:?}");
    let test = TestGateway::new(vec![ScriptedResponse::refusal(500, "{}")]).await;
    test.ask("gpt", &request()).await.0.unwrap_err();
    assert_ne!(test.pauses(), pauses, "pauses are random");
}

#[tokio::test]
async fn retry_after_is_respected() {
    for (kind, alias) in PROTOCOLS {
        let limit = ScriptedResponse::refusal(429, "{}").with_header("retry-after", "7");
        let test = TestGateway::new(vec![limit, ScriptedResponse::ok(text("yes").encode(kind))]).await;
        let turn = test.ask(alias, &request()).await.0.unwrap();
        assert_eq!(turn.attempts, 2, "{kind:?}");
        let pause = test.pauses()[0];
        assert!((Duration::from_secs(7)..Duration::from_secs(9)).contains(&pause), "{pause:?}");
    }
}

#[tokio::test]
async fn a_retry_after_that_is_too_long_is_an_error() {
    let test =
        TestGateway::new(vec![ScriptedResponse::refusal(429, "{}").with_header("retry-after", "3600")]).await;
    let (turn, _) = test.ask("gpt", &request()).await;
    assert_eq!(class(turn), ErrorClass::RateLimit { after: Some(Duration::from_secs(3600)) });
    assert_eq!((test.pauses().len(), test.server.requests().len()), (0, 1));
}

#[tokio::test]
async fn permanent_errors_are_not_retried() {
    let cases = [
        (401, "{}", ErrorClass::Auth),
        (400, "{}", ErrorClass::BadRequest),
        (404, "{}", ErrorClass::Unavailable),
        (400, r#"{"message":"prompt is too long"}"#, ErrorClass::ContextTooLong),
    ];
    for (status, body, expected) in cases {
        for (_, alias) in PROTOCOLS {
            let test = TestGateway::new(vec![ScriptedResponse::refusal(status, body)]).await;
            assert_eq!(class(test.ask(alias, &request()).await.0), expected, "{alias} {status}");
            assert_eq!(test.server.requests().len(), 1, "{alias} {status}");
        }
    }
}

#[tokio::test]
async fn transient_errors_are_retried() {
    let transient = [
        (500, ErrorClass::Retryable),
        (529, ErrorClass::Overloaded),
        (429, ErrorClass::RateLimit { after: None }),
    ];
    for (status, expected) in transient {
        for (_, alias) in PROTOCOLS {
            let test = TestGateway::new(vec![ScriptedResponse::refusal(status, "{}")]).await;
            assert_eq!(class(test.ask(alias, &request()).await.0), expected, "{alias} {status}");
            assert_eq!(test.server.requests().len(), 4, "{alias} {status}");
        }
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    for (kind, alias) in PROTOCOLS {
        let silent = ScriptedResponse {
            after_body: AfterBody::Hang,
            ..ScriptedResponse::ok(text("Hel").encode_truncated(kind))
        };
        let test = TestGateway::with_settings(
            vec![silent],
            "retry.attempts = 1",
            vec!["anthropic", "openai", "bedrock"],
        )
        .await;
        let (turn, deltas) = test.ask(alias, &request()).await;
        assert_eq!(class(turn), ErrorClass::Retryable, "{kind:?}");
        assert_eq!(deltas, [Delta::Text("Hel".into())], "{kind:?}");
    }
    let silent = ScriptedResponse { delay: Duration::from_secs(60), ..ScriptedResponse::ok(Vec::new()) };
    let test = TestGateway::with_settings(vec![silent], "retry.attempts = 1", vec!["openai"]).await;
    assert_eq!(class(test.ask("gpt", &request()).await.0), ErrorClass::Retryable);
}

#[tokio::test]
async fn a_server_that_sends_only_keep_alives_times_out() {
    for (kind, alias) in PROTOCOLS {
        let pings = ScriptedResponse {
            after_body: AfterBody::Repeat(ModelOutput::keep_alive(kind)),
            ..ScriptedResponse::ok(Vec::new())
        };
        let more = "retry.attempts = 1\npatience.nothing_said_ms = 600";
        let test =
            TestGateway::with_settings(vec![pings], more, vec!["anthropic", "openai", "bedrock"]).await;
        let (request, began) = (request(), std::time::Instant::now());
        let turn = tokio::time::timeout(Duration::from_secs(20), test.ask(alias, &request)).await;
        let (turn, deltas) = turn.unwrap();
        assert_eq!((class(turn), deltas), (ErrorClass::Retryable, Vec::new()), "{kind:?}");
        assert!(
            began.elapsed() > Duration::from_millis(600),
            "{kind:?}: keep-alives reset the silence timeout"
        );
    }
}

#[tokio::test]
async fn an_unreachable_server_is_a_retryable_error() {
    let more = r#"provider.openai.base_url = "http://127.0.0.1:9/v1""#;
    let test =
        TestGateway::with_settings(vec![ScriptedResponse::refusal(500, "")], more, vec!["openai"]).await;
    let error = test.ask("gpt", &request()).await.0.unwrap_err();
    assert_eq!(error.class, ErrorClass::Retryable);
    assert!(error.message.contains("Couldn't reach the provider"), "{}", error.message);
    assert_eq!(test.pauses().len(), 3);
}

#[tokio::test]
async fn dropping_a_turn_cancels_the_request() {
    for (kind, alias) in PROTOCOLS {
        let endless = ScriptedResponse {
            after_body: AfterBody::Hang,
            ..ScriptedResponse::ok(text("Hel").encode_truncated(kind))
        };
        let test = TestGateway::with_settings(
            vec![endless],
            "patience.silence_ms = 60000",
            vec!["anthropic", "openai", "bedrock"],
        )
        .await;
        let request = request();
        let turn = test.ask(alias, &request);
        assert!(tokio::time::timeout(Duration::from_millis(300), turn).await.is_err(), "{kind:?}");
        for _ in 0..100 {
            if test.server.disconnects() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(test.server.disconnects(), 1, "{kind:?}: the connection was closed");
        assert_eq!(test.server.requests().len(), 1, "{kind:?}: no retry was sent");
    }
}

#[tokio::test]
async fn the_meter_reports_the_usage_of_a_cancelled_turn() {
    for (kind, alias) in PROTOCOLS {
        let endless = ScriptedResponse {
            after_body: AfterBody::Hang,
            ..ScriptedResponse::ok(text("Hello").encode_truncated(kind))
        };
        let more = "patience.silence_ms = 60000";
        let test =
            TestGateway::with_settings(vec![endless], more, vec!["anthropic", "openai", "bedrock"]).await;
        let (request, meter) = (request(), UsageMeter::default());
        assert_eq!(
            meter.reading(),
            MeterReading { model: String::new(), usage: Usage::default(), cost: Some(0) }
        );
        let chosen = test.gateway.chosen(alias).unwrap();
        let turn = test.gateway.take_turn(&chosen, &request, Arc::new(|_| {}), &meter);
        assert!(tokio::time::timeout(Duration::from_millis(300), turn).await.is_err(), "{kind:?}");
        let (input, output) = (request.estimated_tokens(), 2);
        let usage = Usage { input, output, ..Usage::default() };
        let taken = MeterReading { model: alias.into(), usage, cost: Some(input + 5 * output) };
        assert_eq!(meter.reading(), taken, "{kind:?}");
    }
}
