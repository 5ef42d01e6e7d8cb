//! `choir mcp`: MCP servers, started in cells to list their tools.

use std::path::Path;

use crate::test_computer::{CommandOutput, TestComputer};

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");

/// `choir mcp` with this in the `choir.toml` of the data folder; `{fixtures}` is where the fixtures are.
fn mcp(config: &str, args: &[&str]) -> CommandOutput {
    let (computer, data) = (TestComputer::new(), tempfile::tempdir().unwrap());
    let fixtures = Path::new(FIXTURES).canonicalize().unwrap();
    let config = config.replace("{fixtures}", fixtures.to_str().unwrap());
    std::fs::write(data.path().join("choir.toml"), config).unwrap();
    CommandOutput::of(computer.command(&[&["mcp"], args].concat()).env("CHOIR_DATA", data.path()))
}

const TRACKER: &str = r#"
[mcp.tracker]
command = ["bash", "{fixtures}/mcp/tracker.sh"]
mounts = ["{fixtures}/mcp"]
read_only = ["list_issues"]
"#;

#[test]
fn servers_are_shown_with_their_tools() {
    let broken = "[mcp.broken]\ncommand = [\"no-such-program\"]\nroles = [\"writer\"]\n";
    let said = mcp(&format!("{TRACKER}{broken}"), &[]).exits(0).out;
    assert!(said.contains("broken does not answer: ") && said.contains("no-such-program"), "{said}");
    assert!(said.contains("tracker 7 tools bash "), "{said}");
    let line = |tool: &str| said.lines().find(|line| line.contains(tool)).unwrap().to_owned();
    assert!(line("mcp_tracker_list_issues").ends_with("only reads"), "{said}");
    assert!(line("mcp_tracker_create_issue").ends_with("asks first"), "{said}");
}

#[test]
fn one_server_is_shown_in_its_own_words() {
    let said = mcp(TRACKER, &["tracker"]).exits(0).out;
    assert!(said.contains("(by the server tracker) Makes an issue"), "{said}");
    let lines = mcp(TRACKER, &["tracker", "--json"]).exits(0).json_lines();
    assert_eq!((&lines[0]["state"], lines[0]["tools"].as_array().unwrap().len()), (&"up".into(), 7));
}

#[test]
fn what_is_wrong_is_said() {
    assert!(mcp("", &[]).exits(0).out.contains("no MCP servers yet"));
    assert!(mcp(TRACKER, &["other"]).exits(4).err.contains("there are: tracker"));
    let dying = format!("{TRACKER}env = {{ TRACKER = \"dies\" }}\n");
    let said = mcp(&dying, &["tracker"]).err;
    assert!(said.contains("it does not answer") && said.contains("no database"), "{said}");
    let provider = format!("{TRACKER}secrets = {{ KEY = \"anthropic\" }}\n");
    let said = mcp(&provider, &[]).exits(2).err;
    assert!(said.contains("choir keys set tracker-anthropic"), "{said}");
    let wrong = mcp("[mcp.tracker]\ncomand = [\"x\"]\n", &[]).err;
    assert!(wrong.contains("[mcp.tracker]") && wrong.contains("comand"), "{wrong}");
}
