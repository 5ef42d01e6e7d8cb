//! Tries, pauses, time-outs and giving up.

use super::{
    answers::{Says, text},
    server::Then,
    *,
};
use crate::chat::Usage;

#[tokio::test]
async fn a_stream_that_breaks_off_is_tried_again_and_said() {
    for (kind, alias) in WIRES {
        let answers = vec![Scripted::ok(text("Hel").cut(kind)), Scripted::ok(text("Hello").on(kind))];
        let rig = Rig::new(answers).await;
        let (turn, heard) = rig.ask(alias, &request()).await;
        let turn = turn.unwrap();
        assert_eq!((turn.reply.text.as_str(), turn.attempts), ("Hello", 2), "{kind:?}");
        assert_eq!(
            heard,
            [Delta::Text("Hel".into()), Delta::Restart, Delta::Text("Hello".into())],
            "{kind:?}"
        );
        assert_eq!(rig.pauses().len(), 1, "{kind:?}");
    }
}

#[tokio::test]
async fn a_stream_that_always_breaks_off_is_never_a_reply() {
    for (kind, alias) in WIRES {
        let rig = Rig::new(vec![Scripted::ok(text("Hel").cut(kind))]).await;
        let (turn, _) = rig.ask(alias, &request()).await;
        assert_eq!(class(turn), ErrorClass::Retryable, "{kind:?}");
        assert_eq!(rig.server.asked().len(), 4, "{kind:?}: as often as the catalog says");
    }
}

#[tokio::test]
async fn pauses_double_and_are_left_to_chance() {
    let rig = Rig::new(vec![Scripted::refusal(500, "{}")]).await;
    assert_eq!(class(rig.ask("gpt", &request()).await.0), ErrorClass::Retryable);
    let bounds = [1000, 2000, 4000].map(Duration::from_millis);
    let pauses = rig.pauses();
    assert_eq!(pauses.len(), 3);
    assert!(pauses.iter().zip(bounds).all(|(pause, bound)| *pause <= bound), "{pauses:?}");
    let rig = Rig::new(vec![Scripted::refusal(500, "{}")]).await;
    rig.ask("gpt", &request()).await.0.unwrap_err();
    assert_ne!(rig.pauses(), pauses, "nobody comes back together with others");
}

#[tokio::test]
async fn who_asks_us_to_wait_is_waited_for() {
    for (kind, alias) in WIRES {
        let limit = Scripted::refusal(429, "{}").with_header("retry-after", "7");
        let rig = Rig::new(vec![limit, Scripted::ok(text("yes").on(kind))]).await;
        let turn = rig.ask(alias, &request()).await.0.unwrap();
        assert_eq!(turn.attempts, 2, "{kind:?}");
        let pause = rig.pauses()[0];
        assert!((Duration::from_secs(7)..Duration::from_secs(9)).contains(&pause), "{pause:?}");
    }
}

#[tokio::test]
async fn who_asks_us_to_wait_too_long_is_not() {
    let rig = Rig::new(vec![Scripted::refusal(429, "{}").with_header("retry-after", "3600")]).await;
    let (turn, _) = rig.ask("gpt", &request()).await;
    assert_eq!(class(turn), ErrorClass::RateLimit { after: Some(Duration::from_secs(3600)) });
    assert_eq!((rig.pauses().len(), rig.server.asked().len()), (0, 1));
}

#[tokio::test]
async fn what_will_not_pass_is_not_tried_again() {
    let cases = [
        (401, "{}", ErrorClass::Auth),
        (400, "{}", ErrorClass::BadRequest),
        (404, "{}", ErrorClass::Unavailable),
        (400, r#"{"message":"prompt is too long"}"#, ErrorClass::ContextTooLong),
    ];
    for (status, body, expected) in cases {
        for (_, alias) in WIRES {
            let rig = Rig::new(vec![Scripted::refusal(status, body)]).await;
            assert_eq!(class(rig.ask(alias, &request()).await.0), expected, "{alias} {status}");
            assert_eq!(rig.server.asked().len(), 1, "{alias} {status}");
        }
    }
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let passing = [
        (500, ErrorClass::Retryable),
        (529, ErrorClass::Overloaded),
        (429, ErrorClass::RateLimit { after: None }),
    ];
    for (status, expected) in passing {
        for (_, alias) in WIRES {
            let rig = Rig::new(vec![Scripted::refusal(status, "{}")]).await;
            assert_eq!(class(rig.ask(alias, &request()).await.0), expected, "{alias} {status}");
            assert_eq!(rig.server.asked().len(), 4, "{alias} {status}");
        }
    }
}

#[tokio::test]
async fn silence_is_not_waited_for_for_ever() {
    for (kind, alias) in WIRES {
        let silent = Scripted { then: Then::Hang, ..Scripted::ok(text("Hel").cut(kind)) };
        let rig = Rig::with(vec![silent], "retry.attempts = 1", vec!["anthropic", "openai", "bedrock"]).await;
        let (turn, heard) = rig.ask(alias, &request()).await;
        assert_eq!(class(turn), ErrorClass::Retryable, "{kind:?}");
        assert_eq!(heard, [Delta::Text("Hel".into())], "{kind:?}");
    }
    let mute = Scripted { after: Duration::from_secs(60), ..Scripted::ok(Vec::new()) };
    let rig = Rig::with(vec![mute], "retry.attempts = 1", vec!["openai"]).await;
    assert_eq!(class(rig.ask("gpt", &request()).await.0), ErrorClass::Retryable);
}

#[tokio::test]
async fn signs_of_life_are_not_taken_for_an_answer_for_ever() {
    for (kind, alias) in WIRES {
        let pings = Scripted { then: Then::Repeat(Says::sign_of_life(kind)), ..Scripted::ok(Vec::new()) };
        let more = "retry.attempts = 1\npatience.nothing_said_ms = 600";
        let rig = Rig::with(vec![pings], more, vec!["anthropic", "openai", "bedrock"]).await;
        let (request, began) = (request(), std::time::Instant::now());
        let turn = tokio::time::timeout(Duration::from_secs(20), rig.ask(alias, &request)).await;
        let (turn, heard) = turn.unwrap();
        assert_eq!((class(turn), heard), (ErrorClass::Retryable, Vec::new()), "{kind:?}");
        assert!(began.elapsed() > Duration::from_millis(600), "{kind:?}: longer than a silence");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_retryable() {
    let more = r#"provider.openai.base_url = "http://127.0.0.1:9/v1""#;
    let rig = Rig::with(vec![Scripted::refusal(500, "")], more, vec!["openai"]).await;
    let error = rig.ask("gpt", &request()).await.0.unwrap_err();
    assert_eq!(error.class, ErrorClass::Retryable);
    assert!(error.message.contains("cannot be reached"), "{}", error.message);
    assert_eq!(rig.pauses().len(), 3);
}

#[tokio::test]
async fn dropping_a_turn_ends_the_request() {
    for (kind, alias) in WIRES {
        let endless = Scripted { then: Then::Hang, ..Scripted::ok(text("Hel").cut(kind)) };
        let rig =
            Rig::with(vec![endless], "patience.silence_ms = 60000", vec!["anthropic", "openai", "bedrock"])
                .await;
        let request = request();
        let turn = rig.ask(alias, &request);
        assert!(tokio::time::timeout(Duration::from_millis(300), turn).await.is_err(), "{kind:?}");
        for _ in 0..100 {
            if rig.server.hung_up() == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(rig.server.hung_up(), 1, "{kind:?}: the connection was closed");
        assert_eq!(rig.server.asked().len(), 1, "{kind:?}: and no other was made");
    }
}

#[tokio::test]
async fn what_a_turn_took_that_was_let_go_of_is_known() {
    for (kind, alias) in WIRES {
        let endless = Scripted { then: Then::Hang, ..Scripted::ok(text("Hello").cut(kind)) };
        let more = "patience.silence_ms = 60000";
        let rig = Rig::with(vec![endless], more, vec!["anthropic", "openai", "bedrock"]).await;
        let (request, meter) = (request(), Meter::default());
        assert_eq!(meter.taken(), Taken { model: String::new(), usage: Usage::default(), cost: Some(0) });
        let chosen = rig.gateway.chosen(alias).unwrap();
        let turn = rig.gateway.take_turn(&chosen, &request, Arc::new(|_| {}), &meter);
        assert!(tokio::time::timeout(Duration::from_millis(300), turn).await.is_err(), "{kind:?}");
        let (input, output) = (request.tokens(), 2);
        let usage = Usage { input, output, ..Usage::default() };
        let taken = Taken { model: alias.into(), usage, cost: Some(input + 5 * output) };
        assert_eq!(meter.taken(), taken, "{kind:?}");
    }
}
