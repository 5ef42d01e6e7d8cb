//! What somebody wants to run: looked at before anything happens.

use shared_types::wire::{RunCommand, RunNetwork};

use crate::failure::{Code, Failure};

/// The longest line that stands for a command.
const TITLE: usize = 500;

/// Refuses what cannot be run, and says why.
pub(super) fn check(command: &RunCommand) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::new(Code::BadRequest, why));
    if command.argv.first().is_none_or(|program| program.trim().is_empty()) {
        return refuse("no program is named; for example: choir run -- ls -l");
    }
    if command.argv.iter().any(|word| word.contains('\0')) {
        return refuse("a word of the command holds a zero byte");
    }
    if let RunNetwork::Hosts(hosts) = &command.network {
        let is_host = |host: &String| {
            !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._*:[]".contains(c))
        };
        if hosts.is_empty() || !hosts.iter().all(is_host) {
            return refuse("a host to reach is a name such as example.org or *.example.org");
        }
    }
    let limits = &command.limits;
    let zero = [limits.memory, limits.seconds, limits.disk, limits.output, limits.processes.map(u64::from)];
    if zero.contains(&Some(0)) {
        return refuse("a limit of zero leaves nothing to run with");
    }
    Ok(())
}

/// The command as one line that could be typed.
pub(super) fn title(command: &RunCommand) -> String {
    let words: Vec<&str> = match command.argv.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sh" | "bash" | "/bin/sh" | "/bin/bash", "-c" | "-lc", line] => vec![line],
        ref words => return cut(words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
    };
    cut(words.concat())
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn cut(line: String) -> String {
    let mut line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if line.len() > TITLE {
        line.truncate(line.floor_char_boundary(TITLE - '…'.len_utf8()));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(argv: &[&str]) -> RunCommand {
        RunCommand { argv: argv.iter().map(ToString::to_string).collect(), ..RunCommand::default() }
    }

    #[test]
    fn a_title_is_what_would_be_typed() {
        for (argv, expected) in [
            (&["cargo", "test"][..], "cargo test"),
            (&["sh", "-c", "rm -rf src\nls"], "rm -rf src ls"),
            (&["echo", "it's", ""], "echo 'it'\\''s' ''"),
        ] {
            assert_eq!(title(&of(argv)), expected);
        }
        let long = title(&of(&["echo", &"ä".repeat(1000)]));
        assert!(long.len() <= TITLE && long.ends_with('…'), "{}", long.len());
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_a_reason() {
        let hosts = |hosts: &[&str]| RunNetwork::Hosts(hosts.iter().map(ToString::to_string).collect());
        let mut nowhere = of(&["true"]);
        nowhere.network = hosts(&[]);
        let mut bad_host = of(&["true"]);
        bad_host.network = hosts(&["http://example.org/"]);
        let mut nothing = of(&["true"]);
        nothing.limits.memory = Some(0);
        for command in [of(&[]), of(&[" "]), of(&["a\0b"]), nowhere, bad_host, nothing] {
            assert_eq!(check(&command).unwrap_err().code, Code::BadRequest, "{command:?}");
        }
        assert!(check(&of(&["true"])).is_ok());
    }
}
