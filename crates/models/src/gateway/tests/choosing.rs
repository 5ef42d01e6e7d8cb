//! Which model is asked, and who takes its place.

use super::{answers::text, limits::Here, *};

const CHAIN: &str = r#"model.claude.fallbacks = ["bedrock", "gpt"]"#;

#[tokio::test]
async fn the_first_model_with_a_key_is_chosen() {
    let missing = |name: &str| {
        format!("There is no key for {name}. Add one in Settings, Models, or with choir keys set {name}.")
    };
    let (anthropic, openai) = (missing("anthropic"), missing("openai"));
    let cases = [
        (vec!["anthropic", "openai"], None, Ok("claude")),
        (vec!["openai"], None, Ok("gpt")),
        (vec!["openai", "bedrock"], None, Ok("bedrock")),
        (vec!["openai", "anthropic"], Some("gpt"), Ok("gpt")),
        (vec!["anthropic"], Some("gpt"), Err(openai.as_str())),
        (vec!["anthropic"], Some("nonsense"), Err("No such model is configured.")),
        (Vec::new(), None, Err(anthropic.as_str())),
    ];
    for (keys, wanted, expected) in cases {
        let rig = Rig::with(vec![Scripted::refusal(500, "")], CHAIN, keys.clone()).await;
        let chosen = rig.gateway.choose(wanted, "writer");
        let found =
            chosen.as_ref().map(|chosen| chosen.alias.as_str()).map_err(|error| error.message.as_str());
        assert_eq!(found, expected, "{keys:?} {wanted:?}");
    }
    let rig = Rig::with(vec![Scripted::refusal(500, "")], CHAIN, vec!["anthropic"]).await;
    assert_eq!(rig.gateway.choose(None, "gardener").unwrap_err().class, ErrorClass::Unavailable);
}

#[tokio::test]
async fn the_local_model_is_the_last_resort() {
    let cases = [
        (LocalStatus::Idle, Ok("local")),
        (LocalStatus::Running { tokens_per_second: Some(9.5) }, Ok("local")),
        (LocalStatus::Absent { bytes: 1_117_320_768 }, Err("downloaded first (1117 MB)")),
        (
            LocalStatus::Declined,
            Err("choir keys set anthropic. The download of the local model was declined."),
        ),
        (LocalStatus::Fetching { done: 2_000_000, bytes: 5_000_000 }, Err("2 of 5 MB")),
        (LocalStatus::Failed { reason: "no memory".into() }, Err("no memory")),
    ];
    for (status, expected) in cases {
        let rig = Rig::with(vec![Scripted::refusal(500, "")], CHAIN, Vec::new()).await;
        rig.gateway.set_local(Arc::new(Here("http://127.0.0.1:9".into(), status.clone())));
        match (rig.gateway.choose(None, "writer"), expected) {
            (Ok(chosen), Ok(alias)) => {
                assert_eq!(
                    (chosen.alias.as_str(), chosen.is_local, chosen.prices.is_some()),
                    (alias, true, true)
                );
            }
            (Err(error), Err(words)) => assert!(error.message.contains(words), "{}", error.message),
            (found, expected) => panic!("{status:?}: {found:?}, not {expected:?}"),
        }
    }
    let rig = Rig::with(vec![Scripted::refusal(500, "")], CHAIN, vec!["openai"]).await;
    rig.gateway.set_local(Arc::new(Here("http://127.0.0.1:9".into(), LocalStatus::Idle)));
    assert_eq!(rig.gateway.choose(None, "writer").unwrap().alias, "gpt", "a key goes before the local model");
}

/// What the first model answers, and whether the second is asked then.
#[tokio::test]
async fn another_takes_the_place_of_a_model_that_cannot_answer() {
    let cases = [
        (429, 4, true),
        (529, 4, true),
        (401, 1, true),
        (404, 1, true),
        (500, 4, true),
        (400, 1, false),
        (413, 1, false),
    ];
    for (status, tries, is_replaced) in cases {
        let mut answers = vec![Scripted::refusal(status, "{}"); tries];
        answers.push(Scripted::ok(text("yes").on(Kind::Openai)));
        let more = r#"model.claude.fallbacks = ["bedrock", "gpt"]"#;
        let rig = Rig::with(answers, more, vec!["anthropic", "openai"]).await;
        let (turn, _) = rig.ask("claude", &request()).await;
        match (turn, is_replaced) {
            (Ok(turn), true) => {
                assert_eq!((turn.model.as_str(), turn.attempts as usize), ("gpt", tries + 1), "{status}");
            }
            (Err(error), false) => assert_eq!(error.model, "claude", "{status}"),
            (turn, _) => panic!("{status}: {turn:?}"),
        }
    }
}

#[tokio::test]
async fn another_takes_the_place_of_a_provider_that_is_not_there() {
    let more = format!("{CHAIN}\nprovider.anthropic.base_url = \"http://127.0.0.1:9\"");
    let answers = vec![Scripted::ok(text("yes").on(Kind::Openai))];
    let rig = Rig::with(answers, &more, vec!["anthropic", "openai"]).await;
    let turn = rig.ask("claude", &request()).await.0.unwrap();
    assert_eq!((turn.model.as_str(), turn.attempts), ("gpt", 5));
}

#[tokio::test]
async fn nobody_takes_the_place_of_a_model_that_breaks_off_in_the_middle_of_its_answer() {
    let rig =
        Rig::with(vec![Scripted::ok(text("Hel").cut(Kind::Anthropic))], CHAIN, vec!["anthropic", "openai"])
            .await;
    assert_eq!(class(rig.ask("claude", &request()).await.0), ErrorClass::Retryable);
    assert_eq!(rig.server.asked().len(), 4);
}

#[tokio::test]
async fn when_all_fail_the_error_is_that_of_the_chosen_model() {
    let answers = vec![
        Scripted::refusal(401, r#"{"error":{"message":"first"}}"#),
        Scripted::refusal(400, r#"{"error":{"message":"second"}}"#),
    ];
    let rig = Rig::with(answers, CHAIN, vec!["anthropic", "openai"]).await;
    let error = rig.ask("claude", &request()).await.0.unwrap_err();
    assert_eq!((error.model.as_str(), error.class), ("claude", ErrorClass::Auth));
    assert!(error.message.starts_with("first"), "{}", error.message);
}

#[tokio::test]
async fn what_was_heard_is_void_when_another_begins() {
    let error =
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n";
    let mut broken = text("Hel").cut(Kind::Anthropic);
    let end = broken.windows(6).rposition(|window| window == b"data: ").unwrap();
    broken.truncate(end);
    broken.extend_from_slice(error.as_bytes());
    let more = format!("{CHAIN}\nretry.attempts = 1");
    let answers = vec![Scripted::ok(broken), Scripted::ok(text("Hello").on(Kind::Openai))];
    let rig = Rig::with(answers, &more, vec!["anthropic", "openai"]).await;
    let (turn, heard) = rig.ask("claude", &request()).await;
    assert_eq!(turn.unwrap().model, "gpt");
    assert_eq!(heard, [Delta::Text("Hel".into()), Delta::Restart, Delta::Text("Hello".into())]);
}

#[tokio::test]
async fn a_model_that_reads_too_little_takes_nobodys_place() {
    let more = r#"model.claude.fallbacks = ["gpt"]
                  model.gpt.context = 2000"#;
    let answers = vec![Scripted::refusal(401, "{}"), Scripted::ok(text("yes").on(Kind::Openai))];
    let rig = Rig::with(answers, more, vec!["anthropic", "openai"]).await;
    let long = Request { system: "word ".repeat(5000), ..request() };
    assert_eq!(rig.ask("claude", &long).await.0.unwrap_err().model, "claude");
    assert_eq!(rig.server.asked().len(), 1);
}

#[tokio::test]
async fn a_test_asks_once_and_nobody_else() {
    let answers = vec![Scripted::refusal(529, "{}")];
    let rig = Rig::with(answers, CHAIN, vec!["anthropic", "openai"]).await;
    assert_eq!(rig.gateway.test("claude").await.unwrap_err().class, ErrorClass::Overloaded);
    assert_eq!(rig.server.asked().len(), 1);
    assert_eq!(rig.gateway.test("bedrock").await.unwrap_err().class, ErrorClass::Auth);
    assert_eq!(rig.gateway.test("nonsense").await.unwrap_err().class, ErrorClass::Unavailable);
    let rig = Rig::new(vec![Scripted::ok(text("yes").on(Kind::Openai))]).await;
    let turn = rig.gateway.test("openai").await.unwrap();
    assert_eq!((turn.reply.text.as_str(), turn.attempts), ("yes", 1));
}
