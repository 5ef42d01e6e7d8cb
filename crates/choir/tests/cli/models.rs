//! `choir models`, and what `choir ask` prints about the local model before a run: offer, refusal, speed.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::process::BackgroundProcess;
use crate::test_computer::{CommandOutput, TestComputer};

const WEIGHTS: &str = "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf";
const BYTES: u64 = 1_117_320_768;

/// A computer, and a machine on which nothing was set up.
struct BareMachine {
    computer: TestComputer,
    data: TempDir,
}

impl BareMachine {
    fn new() -> Self {
        Self { computer: TestComputer::new(), data: tempfile::tempdir().unwrap() }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.computer.command(args);
        command.env("CHOIR_DATA", self.data.path());
        command
    }

    fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::of(&mut self.command(args))
    }

    /// A sparse file of the size of the weights.
    fn with_weights(self) -> Self {
        let folder = self.data.path().join("models");
        std::fs::create_dir_all(&folder).unwrap();
        File::create(folder.join(WEIGHTS)).unwrap().set_len(BYTES).unwrap();
        self
    }

    /// Asks at a terminal, with this typed at it.
    fn at_terminal(&self, typed: &str) -> std::io::Result<CommandOutput> {
        let asked = format!("'{}' ask 'Write about bees'", env!("CARGO_BIN_EXE_choir"));
        let mut script = Command::new("script");
        script.args(["-qec", &asked, "/dev/null"]).current_dir(&self.computer.work);
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"CHOIR_"))
        {
            script.env_remove(name);
        }
        script.env("CHOIR_DATA", self.data.path()).env("TERM", "xterm").env("NO_COLOR", "1");
        script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = script.spawn()?;
        child.stdin.take().unwrap().write_all(typed.as_bytes())?;
        let output = child.wait_with_output()?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(CommandOutput {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        })
    }
}

/// What the machine calls its processor, as it stands beside a speed.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    name.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

fn keep_speed(data: &Path) {
    let speed = serde_json::json!({ "prefill": 21.56, "decode": 3.2 });
    let known = serde_json::json!({ "speed": speed, "threads": 2, "processor": processor(), "at": 1 });
    std::fs::write(data.join("models").join(format!("{WEIGHTS}.speed.json")), known.to_string()).unwrap();
}

#[test]
fn before_a_run_of_the_local_model_the_person_hears_how_quick_it_is() {
    let bare = BareMachine::new().with_weights();
    let _watch = BackgroundProcess::watch(&bare.computer);
    let said = bare.run(&["ask", "Write about bees"]).exits(0).out;
    assert!(said.starts_with("using the local model: its speed will be measured"), "{said}");
    keep_speed(bare.data.path());
    let said = bare.run(&["ask", "Write about bees"]).exits(0).out;
    let first = "using the local model: it reads 21.5 and writes 3.2 tokens per second\n";
    assert!(said.starts_with(first) && said[first.len()..].contains("Write about bees"), "{said}");
    let lines = bare.run(&["ask", "Write about bees", "--json"]).exits(0).json_lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(bare.run(&["models"]).exits(0).says("it reads 21.5 and writes 3.2").out.contains("ready"));
}

#[test]
fn without_a_terminal_a_run_waits_and_says_what_to_do() {
    let bare = BareMachine::new();
    let paused = bare.run(&["ask", "Write about bees"]).exits(11).out;
    for words in ["choir keys set anthropic", "downloaded first (1117 MB)", "choir models fetch"] {
        assert!(paused.contains(words), "{words}: {paused}");
    }
    assert!(!paused.contains("Download it"), "there is no terminal to ask at: {paused}");
}

#[test]
fn the_download_is_offered_at_a_terminal_until_it_is_declined() {
    let bare = BareMachine::new();
    let offered = match bare.at_terminal("what?\nn\n") {
        Ok(offered) => offered.exits(11),
        Err(e) => return println!("skipped: there is no 'script' to make a terminal with: {e}"),
    };
    for words in ["Qwen2.5-Coder 1.5B", "1.12 GB from https://huggingface.co/", "Download it: [y]es, [n]o?"] {
        assert!(offered.out.contains(words), "{words}: {offered:?}");
    }
    assert_eq!(
        offered.out.matches("Download it").count(),
        2,
        "what makes no sense is asked again: {offered:?}"
    );
    assert!(offered.out.contains("choir keys set anthropic"), "{offered:?}");
    assert!(!bare.data.path().join("models").join(format!("{WEIGHTS}.part")).exists(), "nothing is begun");

    let again = bare.at_terminal("y\n").unwrap().exits(11);
    assert!(!again.out.contains("Download it"), "{again:?}");
    assert!(again.out.contains("was declined") && again.out.contains("choir models fetch"), "{again:?}");
}

#[test]
fn the_download_is_declined_by_a_command_unless_the_model_is_present() {
    let bare = BareMachine::new();
    let before = bare.run(&["models", "--json"]).exits(0).json_lines();
    let local = before.iter().find(|model| model["name"] == "local").unwrap();
    assert!(local["obstacle"].as_str().unwrap().contains("downloaded first"), "{local}");
    let declined = bare.run(&["models", "decline", "--json"]).exits(0).json_lines();
    assert_eq!(declined[0]["local"]["declined"], true, "{declined:?}");
    assert!(bare.run(&["models"]).exits(0).out.contains("was declined"));
    let paused = bare.run(&["ask", "Write about bees"]).exits(11).out;
    assert!(paused.contains("choir keys set anthropic") && paused.contains("was declined"), "{paused}");
    bare.with_weights().run(&["models", "decline"]).exits(5).says("is here already");
}
