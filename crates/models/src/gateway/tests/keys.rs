//! ApiKeys go into a header and nowhere else.

use super::{answers::text, *};

#[tokio::test]
async fn a_key_repeated_by_the_server_is_masked_in_errors() {
    let echo = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY} ({KEY})","type":"authentication_error"}}}}"#
    );
    let inside =
        format!("data: {{\"type\":\"error\",\"error\":{{\"type\":\"x\",\"message\":\"bad {KEY}\"}}}}\n\n");
    let cases = [
        ScriptedResponse::refusal(401, &echo),
        ScriptedResponse::refusal(500, &format!("<html>{KEY}</html>")),
        ScriptedResponse::ok(inside.into()),
    ];
    for answer in cases {
        for (_, alias) in PROTOCOLS {
            let test = TestGateway::with_settings(
                vec![answer.clone()],
                "retry.attempts = 1",
                vec!["anthropic", "openai", "bedrock"],
            )
            .await;
            let error = test.ask(alias, &request()).await.0.unwrap_err();
            let shown = format!("{error} {error:?} {:?}", test.gateway);
            assert!(!shown.contains(KEY), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_signed_request_does_not_contain_the_secret() {
    struct Access;
    impl ApiKeys for Access {
        fn key(&self, _: &str) -> Option<ApiKey> {
            Some(ApiKey::new("AKIDEXAMPLE:VERYSECRETVALUE:SESSIONTOKEN"))
        }
    }
    let server = Server::start(vec![ScriptedResponse::ok(text("yes").encode(ProviderKind::Bedrock))]).await;
    let clock = Arc::new(InstantClock::default());
    let gateway = Gateway::with_clock(catalog(server.url(), ""), Arc::new(Access), clock);
    let chosen = gateway.chosen("bedrock").unwrap();
    gateway.take_turn(&chosen, &request(), Arc::new(|_| {}), &UsageMeter::default()).await.unwrap();
    let asked = &server.requests()[0];
    let authorization = &asked.headers["authorization"];
    let beginning = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
    assert!(authorization.starts_with(beginning), "{authorization}");
    assert!(!format!("{asked:?}").contains("VERYSECRETVALUE"), "the secret itself is never sent");
    assert_eq!(asked.headers["x-amz-security-token"], "SESSIONTOKEN");
}

#[tokio::test]
async fn an_invalid_key_is_rejected_without_being_shown() {
    struct Broken;
    impl ApiKeys for Broken {
        fn key(&self, _: &str) -> Option<ApiKey> {
            Some(ApiKey::new("two\nlines-of-a-key"))
        }
    }
    let server = Server::start(vec![ScriptedResponse::refusal(500, "")]).await;
    let gateway = Gateway::new(catalog(server.url(), ""), Arc::new(Broken));
    for (_, alias) in PROTOCOLS {
        let chosen = gateway.chosen(alias).unwrap();
        let error = gateway
            .take_turn(&chosen, &request(), Arc::new(|_| {}), &UsageMeter::default())
            .await
            .unwrap_err();
        assert_eq!(error.class, ErrorClass::Auth, "{alias}");
        assert!(!error.message.contains("lines"), "{}", error.message);
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_bedrock_key_in_an_unknown_format_is_not_sent() {
    struct Json;
    impl ApiKeys for Json {
        fn key(&self, _: &str) -> Option<ApiKey> {
            Some(ApiKey::new(r#"{"access_key_id":"AKIDEXAMPLE","secret_access_key":"VERYSECRETVALUE"}"#))
        }
    }
    let server = Server::start(vec![ScriptedResponse::ok(text("yes").encode(ProviderKind::Bedrock))]).await;
    let gateway = Gateway::new(catalog(server.url(), ""), Arc::new(Json));
    let chosen = gateway.chosen("bedrock").unwrap();
    let error =
        gateway.take_turn(&chosen, &request(), Arc::new(|_| {}), &UsageMeter::default()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(
        error.message.contains("ID:SECRET") && !error.message.contains("VERYSECRET"),
        "{}",
        error.message
    );
    assert!(server.requests().is_empty());
}
