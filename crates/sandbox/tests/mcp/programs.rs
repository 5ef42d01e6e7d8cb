//! Servers that are programs, in cells.

use std::time::{Duration, Instant};

use agent_host::agent_services::AgentServices;
use computer::error::ErrorCode;
use serde_json::json;
use shared_types::wire::McpServerState;

use crate::test_servers::{SECRET, TestServers};

const TRACKER: &str = r#"
[mcp.tracker]
command = ["bash", "{fixtures}/mcp/tracker.sh"]
mounts = ["{fixtures}/mcp"]
read_only = ["list_issues"]
seconds = 1
"#;

/// The same in one of its bad moods.
fn tracker(mood: &str) -> String {
    format!("{TRACKER}env = {{ TRACKER = \"{mood}\" }}\n")
}

#[tokio::test]
async fn a_program_in_a_cell_offers_its_tools_and_keeps_its_state_between_calls() {
    let servers = TestServers::new(TRACKER);
    let offer = servers.offer().await;
    assert!(offer.silent.is_empty());
    let create = offer.tools.iter().find(|tool| tool.name == "mcp_tracker_create_issue").unwrap();
    assert_eq!(create.input["required"], json!(["title"]));
    assert_eq!(create.description, "(by the server tracker) Makes an issue");
    assert_eq!(servers.call("create_issue", json!({ "title": "first" })).await.text, "issue 1 is made");
    assert_eq!(servers.call("create_issue", json!({ "title": "second" })).await.text, "issue 2 is made");
    assert!(servers.says("list_issues").await.starts_with("2 issues: first second"));
    assert_eq!(servers.tools.lines()[0].state, McpServerState::Up);
    servers.tools.end().await;
    assert!(servers.left().is_empty(), "{:?}", servers.left());
}

#[tokio::test]
async fn only_what_the_person_says_only_reads_is_taken_to() {
    let servers = TestServers::new(TRACKER);
    servers.offer().await;
    assert!(servers.find("mcp_tracker_list_issues").await.unwrap().reads_only);
    // The server says so of this one, too.
    assert!(!servers.find("mcp_tracker_crash").await.unwrap().reads_only);
    let trusting = TestServers::new(&format!("{TRACKER}trust_hints = true\n"));
    trusting.offer().await;
    assert!(trusting.find("mcp_tracker_crash").await.unwrap().reads_only);
    assert!(!trusting.find("mcp_tracker_create_issue").await.unwrap().reads_only);
}

#[tokio::test]
async fn a_program_sees_nothing_that_it_was_not_given() {
    let servers = TestServers::new(TRACKER);
    let seen = servers.says("look").await;
    assert!(seen.contains("token none; home 0; here 0; state 0;") && seen.ends_with("net shut"), "{seen}");
    let shown = TestServers::new(&format!("{TRACKER}workspace = true\n"));
    let seen = shown.says("look").await;
    assert!(seen.contains("here 1; state 0;"), "{seen}");
}

#[tokio::test]
async fn a_secret_reaches_its_program_and_does_not_come_back() {
    let servers = TestServers::new(&format!("{TRACKER}secrets = {{ TRACKER_TOKEN = \"tracker\" }}\n"));
    let seen = servers.says("look").await;
    assert!(seen.contains("token [a secret];") && !seen.contains(SECRET), "{seen}");
    let copy = std::fs::read_to_string(servers.folder.path().join(".choir/mcp/tracker.json")).unwrap();
    assert!(!copy.contains(SECRET));
    let without = TestServers::new(&format!("{TRACKER}secrets = {{ TRACKER_TOKEN = \"other\" }}\n"));
    assert_eq!(without.offer().await.silent, ["tracker"]);
    assert!(without.tools.lines()[0].problem.as_ref().unwrap().contains("choir keys set other"));
}

#[test]
fn the_key_of_a_provider_of_models_is_given_to_no_server() {
    let load = |models: &str, mcp: &str| {
        let (models, mcp): (toml::Table, toml::Table) = (models.parse().unwrap(), mcp.parse().unwrap());
        AgentServices::new(Some(&models)).unwrap().with_mcp(mcp["mcp"].as_table()).map(drop)
    };
    let program =
        |key: &str| format!("[mcp.x]\ncommand = [\"x\"]\nsecrets = {{ A = \"x\", B = \"{key}\" }}\n");
    let address = |key: &str| format!("[mcp.x]\nurl = \"https://x.example/\"\nkey = \"{key}\"\n");
    let provider = "[provider.house]\nkind = \"openai\"\nbase_url = \"http://10.0.0.5/v1\"\nauth = \"bearer\"\nat_once = 1\n";
    for (models, key) in [("", "anthropic"), ("", "bedrock"), ("", "zai"), (provider, "house")] {
        for server in [program(key), address(key)] {
            let error = load(models, &server).unwrap_err();
            assert_eq!(error.code, ErrorCode::BadRequest);
            let named = format!("[mcp.x] \"{key}\" is the key of a model provider");
            assert!(error.message.starts_with(&named), "{}", error.message);
            assert!(error.message.contains(&format!("choir keys set x-{key}")), "{}", error.message);
        }
    }
    for server in [program("house"), address("anthropic-wiki")] {
        assert!(load("", &server).is_ok(), "a key of another name is the server's own: {server}");
    }
}

#[tokio::test]
async fn no_secret_of_the_person_is_shown_to_a_program_whenever_it_appears() {
    let servers = TestServers::new(&format!("{TRACKER}workspace = true\n"));
    let env = servers.folder.path().join(".env");
    let seen = async || servers.says("look").await;
    assert!(seen().await.contains("env shut;"));
    std::fs::write(&env, "KEY=first").unwrap();
    assert!(seen().await.contains("env shut;"), "it came while the program ran");
    std::fs::write(env.with_extension("new"), "KEY=second").unwrap();
    std::fs::rename(env.with_extension("new"), &env).unwrap();
    assert!(seen().await.contains("env shut;"), "it was replaced, and its cover went with it");
    let same = servers.call("create_issue", json!({ "title": "first" })).await;
    assert!(
        !same.failed && servers.says("list_issues").await.starts_with("1 issues"),
        "it is not started anew"
    );
}

#[tokio::test]
async fn a_call_that_is_under_way_when_the_program_is_started_anew_is_cut_off() {
    let settings = TRACKER.replace("seconds = 1", "seconds = 30");
    let servers = TestServers::new(&format!("{settings}workspace = true\n"));
    servers.says("look").await;
    let hangs = servers.call("hang", json!({}));
    tokio::pin!(hangs);
    let beside = async {
        // The call is on its way before anything changes: the program answers one after the other.
        tokio::time::sleep(Duration::from_millis(200)).await;
        std::fs::write(servers.folder.path().join(".env"), "KEY=first").unwrap();
        servers.says("look").await
    };
    let (cut, seen) = tokio::join!(hangs, beside);
    assert!(seen.contains("env shut;"), "{seen}");
    assert!(cut.failed && cut.cut_off && cut.text.contains("ended during the call"), "{cut:?}");
}

/// Tools and troubles as they go to a model, to the person and to the disk.
async fn told(mood: &str) -> String {
    let servers =
        TestServers::new(&format!("{}secrets = {{ TRACKER_TOKEN = \"tracker\" }}\n", tracker(mood)));
    let offer = servers.offer().await;
    let copy = std::fs::read_to_string(servers.folder.path().join(".choir/mcp/tracker.json"));
    format!("{offer:?} {:?} {}", servers.tools.lines(), copy.unwrap_or_default())
}

#[tokio::test]
async fn a_secret_does_not_come_back_in_what_a_server_says_of_its_tools() {
    let told = told("leaks").await;
    assert!(told.contains("Makes an issue with [a secret]") && !told.contains(SECRET), "{told}");
    assert!(told.contains("mcp_tracker_fail") && !told.contains("Leaks"), "{told}");
}

#[tokio::test]
async fn no_half_of_a_secret_comes_back_in_what_a_server_complains_of() {
    let told = told("moans").await;
    assert!(told.contains("[a secret] is not good"), "{told}");
    // What is kept of so many lines begins in the middle of one.
    let (_, half) = SECRET.split_at(8);
    assert!(!told.contains(half), "{told}");
}

#[tokio::test]
async fn a_program_that_ends_or_hangs_costs_one_call() {
    let servers = TestServers::new(TRACKER);
    let crashed = servers.call("crash", json!({})).await;
    assert!(crashed.cut_off, "{crashed:?}");
    let why = crashed.text;
    assert!(why.contains("ended during the call") && why.contains("it broke"), "{why}");
    assert!(servers.says("list_issues").await.starts_with("0 issues"));
    let began = Instant::now();
    let why = servers.fails("hang").await;
    assert!(why.contains("did not answer within 1 s") && began.elapsed() < Duration::from_secs(3), "{why}");
    assert!(servers.says("list_issues").await.starts_with("0 issues"));
    assert_eq!(servers.fails("fail").await, "there is no such project");
}

#[tokio::test]
async fn a_flood_is_cut() {
    let servers = TestServers::new(&TRACKER.replace("seconds = 1", "seconds = 20"));
    let said = servers.says("flood").await;
    assert!(said.starts_with("yyy") && said.len() < 210_000 && said.ends_with("left out]"), "{}", said.len());
}

#[tokio::test]
async fn a_program_that_lies_about_its_schema_is_offered_with_one_that_takes_anything() {
    let servers = TestServers::new(&tracker("lies"));
    let offer = servers.offer().await;
    let create = offer.tools.iter().find(|tool| tool.name == "mcp_tracker_create_issue").unwrap();
    assert_eq!(create.input, json!({ "type": "object" }));
}

#[tokio::test]
async fn a_program_that_does_not_start_is_told_of_and_not_waited_for() {
    for mood in ["dies", "slow", "rubbish"] {
        let servers = TestServers::new(&tracker(mood));
        let began = Instant::now();
        let offer = servers.offer().await;
        assert!(offer.tools.is_empty() && offer.silent == ["tracker"], "{mood}: {offer:?}");
        assert!(began.elapsed() < Duration::from_secs(8), "{mood}: {:?}", began.elapsed());
        assert!(servers.find("mcp_tracker_list_issues").await.is_none());
        let trouble = servers.tools.lines()[0].problem.clone().unwrap();
        if mood == "dies" {
            assert!(trouble.contains("no database"), "{trouble}");
        }
        let again = Instant::now();
        servers.offer().await;
        assert!(again.elapsed() < Duration::from_secs(1), "{mood}: the second call does not wait");
    }
}

#[tokio::test]
async fn a_program_that_fails_again_and_again_is_left_alone_for_a_while() {
    let mut servers = TestServers::new(TRACKER);
    let foreign = {
        servers.offer().await;
        servers.find("mcp_tracker_list_issues").await.unwrap()
    };
    // The same program, which from now on does not start.
    servers.reopen(&TRACKER.replace("tracker.sh", "gone.sh"));
    let mut last = String::new();
    for _ in 0..4 {
        let said = agents::toolbox::Toolbox::call(&servers.tools, &foreign, serde_json::Map::new()).await;
        assert!(said.failed);
        last = said.text;
    }
    assert!(last.contains("tried 3 times; again in"), "{last}");
    // The person may try at once.
    assert!(servers.tools.restart("tracker").await && !servers.tools.restart("other").await);
    let trouble = servers.tools.lines()[0].problem.clone().unwrap();
    assert!(!trouble.contains("tried"), "{trouble}");
}

#[tokio::test]
async fn a_program_that_is_started_anew_begins_afresh_with_the_same_tools() {
    let servers = TestServers::new(TRACKER);
    servers.call("create_issue", json!({ "title": "first" })).await;
    let before = servers.offer().await;
    assert!(servers.tools.restart("tracker").await);
    assert!(servers.says("list_issues").await.starts_with("0 issues"));
    assert_eq!(servers.offer().await, before);
    servers.tools.end().await;
    assert!(servers.left().is_empty(), "{:?}", servers.left());
}

#[tokio::test]
async fn after_a_restart_the_tools_are_the_same_at_once() {
    let mut servers = TestServers::new(TRACKER);
    let before = servers.offer().await;
    servers.reopen(TRACKER);
    let began = Instant::now();
    assert_eq!(servers.offer().await, before);
    assert!(began.elapsed() < Duration::from_millis(50), "{:?}", began.elapsed());
    servers.reopen(&TRACKER.replace("\"bash\"", "\"bash\", \"-u\""));
    assert_eq!(servers.tools.lines()[0].tools, [], "another program has tools of its own");
}
