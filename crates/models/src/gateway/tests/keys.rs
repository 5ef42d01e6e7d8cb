//! Keys go into a header and nowhere else.

use super::{answers::text, *};

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_make_us_repeat_it() {
    let echo = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY} ({KEY})","type":"authentication_error"}}}}"#
    );
    let inside =
        format!("data: {{\"type\":\"error\",\"error\":{{\"type\":\"x\",\"message\":\"bad {KEY}\"}}}}\n\n");
    let cases = [
        Scripted::refusal(401, &echo),
        Scripted::refusal(500, &format!("<html>{KEY}</html>")),
        Scripted::ok(inside.into()),
    ];
    for answer in cases {
        for (_, alias) in WIRES {
            let rig =
                Rig::with(vec![answer.clone()], "retry.attempts = 1", vec!["anthropic", "openai", "bedrock"])
                    .await;
            let error = rig.ask(alias, &request()).await.0.unwrap_err();
            let shown = format!("{error} {error:?} {:?}", rig.gateway);
            assert!(!shown.contains(KEY), "{shown}");
        }
    }
}

#[tokio::test]
async fn a_request_shows_no_key_in_debug() {
    struct Access;
    impl Keys for Access {
        fn key(&self, _: &str) -> Option<Secret> {
            Some(Secret::new("AKIDEXAMPLE:VERYSECRETVALUE:SESSIONTOKEN"))
        }
    }
    let server = Server::start(vec![Scripted::ok(text("yes").on(Kind::Bedrock))]).await;
    let clock = Arc::new(Still::default());
    let gateway = Gateway::with_clock(catalog(server.url(), ""), Arc::new(Access), clock);
    let chosen = gateway.chosen("bedrock").unwrap();
    gateway.take_turn(&chosen, &request(), Arc::new(|_| {}), &Meter::default()).await.unwrap();
    let asked = &server.asked()[0];
    let authorization = &asked.headers["authorization"];
    let beginning = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261115/us-east-1/bedrock/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=";
    assert!(authorization.starts_with(beginning), "{authorization}");
    assert!(!format!("{asked:?}").contains("VERYSECRETVALUE"), "the secret itself is never sent");
    assert_eq!(asked.headers["x-amz-security-token"], "SESSIONTOKEN");
}

#[tokio::test]
async fn a_key_that_is_no_key_is_refused_without_being_shown() {
    struct Broken;
    impl Keys for Broken {
        fn key(&self, _: &str) -> Option<Secret> {
            Some(Secret::new("two\nlines-of-a-key"))
        }
    }
    let server = Server::start(vec![Scripted::refusal(500, "")]).await;
    let gateway = Gateway::new(catalog(server.url(), ""), Arc::new(Broken));
    for (_, alias) in WIRES {
        let chosen = gateway.chosen(alias).unwrap();
        let error =
            gateway.take_turn(&chosen, &request(), Arc::new(|_| {}), &Meter::default()).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Auth, "{alias}");
        assert!(!error.message.contains("lines"), "{}", error.message);
    }
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn a_key_of_bedrock_in_another_form_is_sent_nowhere() {
    struct Json;
    impl Keys for Json {
        fn key(&self, _: &str) -> Option<Secret> {
            Some(Secret::new(r#"{"access_key_id":"AKIDEXAMPLE","secret_access_key":"VERYSECRETVALUE"}"#))
        }
    }
    let server = Server::start(vec![Scripted::ok(text("yes").on(Kind::Bedrock))]).await;
    let gateway = Gateway::new(catalog(server.url(), ""), Arc::new(Json));
    let chosen = gateway.chosen("bedrock").unwrap();
    let error =
        gateway.take_turn(&chosen, &request(), Arc::new(|_| {}), &Meter::default()).await.unwrap_err();
    assert_eq!(error.class, ErrorClass::Auth);
    assert!(
        error.message.contains("ID:SECRET") && !error.message.contains("VERYSECRET"),
        "{}",
        error.message
    );
    assert!(server.asked().is_empty());
}
