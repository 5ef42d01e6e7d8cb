//! Decisions of rules and grants.

use super::*;

fn load(text: &str) -> Result<Rules, RulesError> {
    Rules::with(&toml::from_str(text).unwrap())
}

#[test]
fn the_rules_in_the_documentation_load() {
    let page = include_str!("../../../../docs/rules.md");
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let config: toml::Table = rest.split_once("```").unwrap().0.parse().unwrap();
    Rules::with(config["rules"].as_table().unwrap()).unwrap();
}

#[test]
fn rules_whose_examples_fail_are_not_loaded() {
    let error = |text: &str| load(text).unwrap_err().to_string();
    let cases = [
        (
            "[[example]]\nrole = 'terminal'\ntool = 'exec'\ninput = { command = 'ls' }\nthen = 'deny'",
            "example 1: the rules decide allow, not deny",
        ),
        ("[[rule]]\ntargets = ['a[']\nthen = 'deny'", "rule 1: invalid pattern \"a[\""),
        ("[[rule]]\nhosts = ['a[']\nthen = 'deny'", "rule 1: invalid pattern \"a[\""),
        ("[[rule]]\nhost = ['a']\nthen = 'deny'", "unknown field"),
        ("[[rule]]\nthen = 'perhaps'", "unknown variant"),
        ("[[rule]]\ntools = ['exce']\nthen = 'deny'", "rule 1: \"exce\" is not a tool"),
        ("[[rule]]\nroles = ['poet']\nthen = 'deny'", "rule 1: \"poet\" is not a role"),
        ("[[rule]]\nhosts = ['böse.example']\nthen = 'deny'", "is not a host in ASCII"),
        (
            "[[example]]\nrole = 'poet'\ntool = 'exec'\ninput = { command = 'ls' }\nthen = 'deny'",
            "there is no role \"poet\"",
        ),
    ];
    for (text, why) in cases {
        let message = error(text);
        assert!(message.contains(why), "{text}: {message}");
    }
}

#[test]
fn a_grant_covers_exactly_what_it_shows() {
    let exec = |command: &str, hosts: &[&str]| {
        let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
        ParsedCall::Exec { command: command.into(), hosts, seconds: None }
    };
    let cases = [
        ("hosts example.org", exec("curl", &["example.org"]), true),
        ("hosts example.org a.example", exec("curl", &["a.example"]), true),
        ("hosts example.org", exec("curl", &["example.org", "a.example"]), false),
        ("hosts example.org", exec("ls", &[]), false),
        ("hosts example.org", exec("hosts example.org", &[]), false),
        ("ls", exec("ls", &[]), true),
        ("ls", exec("ls", &["example.org"]), false),
        ("ls", exec("ls -l", &[]), false),
    ];
    for (pattern, call, is_covered) in cases {
        assert_eq!(covers(pattern, &call), is_covered, "{pattern}: {call:?}");
    }
    let shown = grant_pattern(&exec("hosts evil.example", &[]));
    assert!(covers(&shown, &exec("hosts evil.example", &[])), "{shown}");
    assert!(!covers(&shown, &exec("curl", &["evil.example"])), "{shown}");
}

#[test]
fn all_spellings_of_a_host_match_the_same_rule() {
    let rule = |target: &str| {
        let denied = format!("[[rule]]\ntools = ['fetch']\ntargets = ['{target}']\nthen = 'deny'\n");
        let example = |url: &str, then: &str| {
            format!(
                "[[example]]\nrole = 'researcher'\ntool = 'fetch'\ninput = {{ url = '{url}' }}\nthen = '{then}'\n"
            )
        };
        let urls = ["https://evil.example/", "https://evil.example./", "http://EVIL.example:8080/x"];
        let bad = urls.map(|url| example(url, "deny")).concat();
        load(&format!("{denied}{bad}{}", example("https://example.org/", "allow")))
    };
    for target in ["evil.example", "Evil.Example", "evil.example.", "*vil.example"] {
        rule(target).unwrap();
    }
}

#[test]
fn the_persons_rules_come_first_and_the_built_in_ones_still_apply() {
    let text = r#"
        [[rule]]
        tools = ["exec", "fetch"]
        hosts = ["Evil.example", "*.evil.example"]
        then = "deny"
        why = "never there"

        [[rule]]
        tools = ["exec"]
        hosts = ["crates.io", "*.crates.io"]
        then = "allow"

        [[example]]
        role = "terminal"
        tool = "exec"
        input = { command = "cargo fetch", hosts = ["static.Crates.io", "crates.io"] }
        then = "allow"

        [[example]]
        role = "terminal"
        tool = "exec"
        input = { command = "cargo fetch", hosts = ["static.crates.io", "example.org"] }
        then = "ask"

        [[example]]
        role = "terminal"
        tool = "exec"
        input = { command = "cargo fetch", hosts = ["crates.io"] }
        tainted = true
        then = "ask"

        [[example]]
        role = "terminal"
        tool = "exec"
        input = { command = "curl", hosts = ["crates.io", "a.Evil.example.:443"] }
        then = "deny"

        [[example]]
        role = "terminal"
        tool = "exec"
        input = { command = "curl", hosts = ["*.example"] }
        then = "deny"

        [[example]]
        role = "researcher"
        tool = "fetch"
        input = { url = "https://evil.example./page" }
        then = "deny"

        [[example]]
        role = "researcher"
        tool = "fetch"
        input = { url = "https://example.org/page" }
        then = "allow"

        [[example]]
        role = "terminal"
        tool = "exec"
        input = { command = "ls" }
        then = "allow"

        [[example]]
        role = "terminal"
        tool = "write"
        input = { path = ".git/config", text = "" }
        then = "deny"
    "#;
    load(text).unwrap();
}
