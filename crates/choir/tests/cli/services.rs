//! `choir doctor` on MCP servers, web search and telemetry.

use hypervisor::identity::IdentityStore;
use hypervisor::server::clock;
use shared_types::UserId;
use tempfile::TempDir;

use crate::test_computer::{CommandOutput, TestComputer};

/// A computer, and a machine that was up once with this in its `choir.toml`.
struct Machine {
    computer: TestComputer,
    data: TempDir,
}

impl Machine {
    fn with(config: &str) -> Self {
        let data = tempfile::tempdir().unwrap();
        let identity = IdentityStore::open(data.path(), clock()).unwrap();
        identity.ensure_owner(&UserId::owner(), "Ada").unwrap();
        std::fs::write(data.path().join("choir.toml"), config).unwrap();
        Self { computer: TestComputer::new(), data }
    }

    fn doctor(&self) -> CommandOutput {
        CommandOutput::of(self.computer.command(&["doctor"]).env("CHOIR_DATA", self.data.path()))
    }

    fn set_key(&self, name: &str) {
        let mut command = self.computer.command(&["keys", "set", name]);
        CommandOutput::fed(command.env("CHOIR_DATA", self.data.path()), b"a-secret-of-ada").exits(0);
    }
}

/// The lines of the doctor about one subject.
fn lines(said: &CommandOutput, what: &str) -> Vec<String> {
    let about = |line: &&str| line.get(5..).is_some_and(|rest| rest.starts_with(what));
    said.out.lines().filter(about).map(str::to_owned).collect()
}

#[test]
fn what_is_not_set_up_is_not_spoken_of() {
    let said = Machine::with("").doctor().exits(0);
    for what in ["mcp", "web search", "telemetry"] {
        assert_eq!(lines(&said, what), [""; 0], "{}", said.out);
    }
}

#[test]
fn a_program_that_no_cell_has_is_named_and_so_is_one_that_is_there() {
    let config = "[mcp.here]\ncommand = [\"bash\"]\n[mcp.gone]\ncommand = [\"no-such-program\"]\n";
    let machine = Machine::with(&format!("{config}[mcp.far]\nurl = \"https://example.org/mcp?key=hush\"\n"));
    let said = machine.doctor().exits(1);
    let mcp = lines(&said, "mcp");
    assert!(mcp[0].starts_with("ok ") && mcp[0].contains("far: at example.org;"), "{mcp:?}");
    assert!(mcp[1].starts_with("FAIL") && mcp[1].contains("gone: no-such-program is not found"), "{mcp:?}");
    assert!(mcp[2].starts_with("ok ") && mcp[2].contains("here: bash is found in its cell"), "{mcp:?}");
    assert!(!said.out.contains("hush"), "{}", said.out);
}

#[test]
fn a_key_that_is_missing_is_named_until_it_is_set() {
    let config = "[mcp.tracker]\ncommand = [\"bash\"]\nsecrets = { TOKEN = \"tracker\" }\n";
    let machine = Machine::with(&format!("{config}[web.search]\nkind = \"brave\"\n"));
    let said = machine.doctor().exits(1);
    assert!(lines(&said, "mcp")[0].contains("choir keys set tracker"), "{}", said.out);
    assert!(lines(&said, "web search")[0].contains("choir keys set brave"), "{}", said.out);
    machine.set_key("tracker");
    machine.set_key("brave");
    let said = machine.doctor().exits(0);
    assert!(lines(&said, "mcp")[0].contains("with the key tracker"), "{}", said.out);
    assert!(lines(&said, "web search")[0].contains("brave at https://api.search.brave.com/"), "{}", said.out);
}

#[test]
fn an_address_or_a_key_that_is_none_is_named() {
    for (config, what, words) in [
        ("[web.search]\nkind = \"searxng\"\n", "web search", "base_url is missing"),
        ("[telemetry]\notlp = \"ftp://127.0.0.1\"\n", "telemetry", "neither http nor https"),
        ("[mcp.far]\nurl = \"example\"\n", "server", "[mcp.far] `url`"),
        ("[mcp.far]\nurl = \"https://a\"\nkey = \"zai\"\n", "mcp", "which is never given to a server"),
        ("[telemetry]\notlp = \"nowhere\"\n", "server", "otlp"),
    ] {
        let said = Machine::with(config).doctor().exits(1);
        let found = lines(&said, what);
        assert!(found[0].starts_with("FAIL") && said.out.contains(words), "{config}: {}", said.out);
    }
    let said = Machine::with("[telemetry]\notlp = \"http://127.0.0.1:4318\"\n").doctor().exits(0);
    assert!(lines(&said, "telemetry")[0].contains("http://127.0.0.1:4318/v1/traces"), "{}", said.out);
}
