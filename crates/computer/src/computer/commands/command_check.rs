//! Checks a command before it is recorded or run.

use std::time::Duration;

use isolation::Limits;
use shared_types::wire::{CellCommand, CommandNetwork};

use crate::error::{ComputerError, ErrorCode};

/// The longest title of a command, in bytes.
const MAX_TITLE_CHARS: usize = 500;

/// The longest time limit that a command may request, unless the settings allow more.
const MAX_COMMAND_TIME: Duration = Duration::from_secs(60 * 60);

/// Refuses a command that cannot be run, with the reason. A command may request less than the settings allow, never
/// more.
pub(super) fn check(command: &CellCommand, allowed: &Limits) -> Result<(), ComputerError> {
    let refuse = |why: &str| Err(ComputerError::new(ErrorCode::BadRequest, why));
    if command.argv.first().is_none_or(|program| program.trim().is_empty()) {
        return refuse("no program is named; for example: choir run -- ls -l");
    }
    if command.argv.iter().any(|word| word.contains('\0')) {
        return refuse("an argument contains a NUL character");
    }
    if let CommandNetwork::Hosts(hosts) = &command.network {
        let is_host = |host: &String| {
            !host.is_empty() && host.chars().all(|c| c.is_alphanumeric() || "-._*:[]".contains(c))
        };
        if hosts.is_empty() || !hosts.iter().all(is_host) {
            return refuse("a host must be a name such as example.org or *.example.org");
        }
    }
    let limits = &command.limits;
    let zero = [limits.memory, limits.seconds, limits.disk, limits.output, limits.processes.map(u64::from)];
    if zero.contains(&Some(0)) {
        return refuse("a limit must be greater than zero");
    }
    let megabytes = |bytes: u64| format!("{} MB", bytes >> 20);
    let longest = allowed.time.max(MAX_COMMAND_TIME).as_secs();
    let too_much = [
        (limits.memory > Some(allowed.memory), "memory", megabytes(allowed.memory), "memory_mb"),
        (limits.disk > Some(allowed.disk), "disk", megabytes(allowed.disk), "disk_mb"),
        (limits.processes > Some(allowed.processes), "processes", allowed.processes.to_string(), "processes"),
        (limits.seconds > Some(longest), "time", format!("{longest} s"), "seconds"),
    ];
    if let Some((_, what, most, key)) = too_much.into_iter().find(|(exceeds, ..)| *exceeds) {
        return refuse(&format!("{what}: at most {most} here; [cells] {key} in choir.toml sets this limit"));
    }
    if limits.output > Some(allowed.output) {
        return refuse(&format!("output: at most {} here", megabytes(allowed.output)));
    }
    Ok(())
}

/// The command as one line, as a person would type it.
pub(super) fn title(command: &CellCommand) -> String {
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
    if line.len() > MAX_TITLE_CHARS {
        line.truncate(line.floor_char_boundary(MAX_TITLE_CHARS - '…'.len_utf8()));
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use shared_types::wire::CommandLimits;

    use super::*;

    fn of(argv: &[&str]) -> CellCommand {
        CellCommand { argv: argv.iter().map(ToString::to_string).collect(), ..CellCommand::default() }
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
        assert!(long.len() <= MAX_TITLE_CHARS && long.ends_with('…'), "{}", long.len());
    }

    #[test]
    fn what_cannot_be_run_is_refused_with_a_reason() {
        let hosts = |hosts: &[&str]| CommandNetwork::Hosts(hosts.iter().map(ToString::to_string).collect());
        let mut nowhere = of(&["true"]);
        nowhere.network = hosts(&[]);
        let mut bad_host = of(&["true"]);
        bad_host.network = hosts(&["http://example.org/"]);
        let mut nothing = of(&["true"]);
        nothing.limits.memory = Some(0);
        for command in [of(&[]), of(&[" "]), of(&["a\0b"]), nowhere, bad_host, nothing] {
            let refused = check(&command, &Limits::default()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::BadRequest, "{command:?}");
        }
        assert!(check(&of(&["true"]), &Limits::default()).is_ok());
    }

    #[test]
    fn a_command_may_ask_for_less_than_the_settings_allow_and_never_for_more() {
        let allowed = Limits::default();
        let with = |limits: CommandLimits| check(&CellCommand { limits, ..of(&["true"]) }, &allowed);
        for (more, key) in [
            (CommandLimits { memory: Some(1 << 40), ..CommandLimits::default() }, "memory_mb"),
            (CommandLimits { processes: Some(4_000_000), ..CommandLimits::default() }, "processes"),
            (CommandLimits { disk: Some(1 << 50), ..CommandLimits::default() }, "disk_mb"),
            (CommandLimits { seconds: Some(u64::MAX), ..CommandLimits::default() }, "seconds"),
            (CommandLimits { output: Some(u64::MAX), ..CommandLimits::default() }, "output"),
        ] {
            let refused = with(more.clone()).unwrap_err();
            assert_eq!(refused.code, ErrorCode::BadRequest, "{more:?}");
            assert!(refused.message.contains(key), "{}", refused.message);
        }
        let less = CommandLimits {
            memory: Some(1 << 20),
            processes: Some(1),
            seconds: Some(1800),
            ..CommandLimits::default()
        };
        with(less).unwrap();
    }
}
