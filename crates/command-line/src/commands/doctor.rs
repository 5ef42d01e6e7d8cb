//! `choir doctor`: checks the machine, the configuration and the computer, and says how to fix problems.

mod services;

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use event_log::EventLog;
use serde::Serialize;

use super::Context;
use crate::cli::Doctor;
use crate::render::{Style, done, json, line, safe, size};
use computer::config::{Config, SettingLine};
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, Envelope, Request};
use computer::socket;
use hypervisor::server::{ServerError, Tls};
use sandbox::machine::MachineConfig;
use sandbox::startup::{data_folder, server_settings};
use shared_types::wire::{PartState, PartsReport};

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    ok: bool,
    detail: String,
}

pub(crate) fn run(context: &Context, args: &Doctor) -> Result<()> {
    if args.rebuild {
        let answer = context.change(Request::Rebuild, &mut std::io::empty())?;
        done(context.style, "rebuilt", &answer);
        return Ok(());
    }
    let mut findings = machine();
    let mut settings = Vec::new();
    let mut parts = None;
    match context.paths() {
        Ok(paths) => {
            findings.extend(computer(&paths));
            parts = running_parts(&paths);
            findings.extend(parts.as_ref().map(parts_finding));
            match Config::load(&paths.state) {
                Ok(config) => {
                    findings.extend(cells(&config, &paths.state));
                    settings = config.settings;
                }
                Err(e) => findings.push(bad("configuration", format!("{e:#}"))),
            }
        }
        Err(e) => findings.push(ok("computer", e.to_string())),
    }
    let (found, shown) = server();
    findings.push(found);
    findings.extend(services::findings(context));
    settings.extend(shown);
    if context.style.is_json() {
        json(&serde_json::json!({ "findings": findings, "parts": parts, "configuration": settings }));
    } else {
        findings.iter().for_each(|finding| show(context.style, finding));
        parts.iter().for_each(|report| show_parts(context.style, report));
        for setting in &settings {
            let origin = context.style.dim(&format!("({}; {})", setting.origin, setting.help));
            line(&format!("     {:<22} {} {origin}", setting.key, safe(&setting.value)));
        }
    }
    match findings.iter().find(|finding| !finding.ok) {
        None => Ok(()),
        Some(finding) => anyhow::bail!("{}: {}", finding.what, finding.detail),
    }
}

/// The supervised parts of the process that holds the computer, if there is one.
fn running_parts(paths: &ComputerPaths) -> Option<PartsReport> {
    let stream = socket::connect(paths).ok()??;
    let envelope = Envelope::new(Request::Parts);
    match socket::call(stream, &envelope, &mut std::io::empty(), &|_, _, _| (), &mut |_, _| ()) {
        Ok(Answer::Parts(report)) => Some(report),
        // An older process does not know the request.
        Ok(_) | Err(_) => None,
    }
}

fn parts_finding(report: &PartsReport) -> Finding {
    let restarting = report.parts.iter().filter(|part| part.state == PartState::Restarting).count();
    let restarts: u32 = report.parts.iter().map(|part| part.restarts).sum();
    let detail = format!("{} run, {} restarted since they were opened", report.parts.len(), restarts);
    match restarting {
        0 => ok("parts", detail),
        failing => bad("parts", format!("{failing} failed and wait to be started again; see below")),
    }
}

fn show_parts(style: Style, report: &PartsReport) {
    for part in &report.parts {
        let rule = report.rules.iter().find(|rule| rule.kind == part.kind);
        let name = rule.map_or_else(String::new, |rule| rule.name.clone());
        let label = part.label.as_deref().map_or_else(String::new, |label| format!(" {}", safe(label)));
        let state = match part.state {
            PartState::Running => "running".to_owned(),
            PartState::Restarting => style.paint("31", "restarting"),
        };
        let failure = part.last_failure.as_deref().map_or_else(String::new, |failure| {
            format!(", restarted {} times, last after: {}", part.restarts, safe(failure))
        });
        let restart =
            rule.map_or_else(String::new, |rule| style.dim(&format!("(if it fails: {})", rule.restart)));
        line(&format!("     {name}{label}: {state}{failure} {restart}"));
    }
}

fn ok(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding { what, ok: true, detail: detail.into() }
}

fn bad(what: &'static str, detail: impl Into<String>) -> Finding {
    Finding { what, ok: false, detail: detail.into() }
}

fn show(style: Style, finding: &Finding) {
    let mark = if finding.ok { style.paint("32", "ok  ") } else { style.paint("31", "FAIL") };
    line(&format!("{mark} {:<14} {}", finding.what, safe(&finding.detail)));
}

fn machine() -> Vec<Finding> {
    let git = Command::new("git").arg("--version").output();
    let git = match git {
        Ok(output) if output.status.success() => ok(
            "git",
            String::from_utf8_lossy(&output.stdout).trim().trim_start_matches("git version ").to_owned(),
        ),
        Ok(_) | Err(_) => bad("git", "not found; checkpoints need it: apt-get install git"),
    };
    let watches = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches")
        .ok()
        .and_then(|text| text.trim().parse::<u64>().ok());
    let watches = match watches {
        Some(count) if count >= 8192 => ok("watching", format!("{count} folders can be watched")),
        Some(count) => bad(
            "watching",
            format!("only {count} folders can be watched: sysctl fs.inotify.max_user_watches=1048576"),
        ),
        None => ok("watching", "the limit of this system is unknown"),
    };
    vec![
        ok("choir", format!("{} with SQLite {}", env!("CARGO_PKG_VERSION"), rusqlite::version())),
        git,
        watches,
    ]
}

/// The sandboxing features of this machine.
fn cells(config: &Config, state: &Path) -> Vec<Finding> {
    let probe = config.cells.backend(state).probe();
    let finding = |check: &isolation::Check| match &check.finding {
        isolation::Finding::Works(detail) => ok("cells", format!("{}: {detail}", check.what)),
        isolation::Finding::Weaker(detail) => ok("cells", format!("{}: weaker: {detail}", check.what)),
        isolation::Finding::Missing(detail) => {
            bad("cells", format!("{}: {detail}; no command will run without a sandbox", check.what))
        }
    };
    probe.checks.iter().map(finding).collect()
}

fn computer(paths: &ComputerPaths) -> Vec<Finding> {
    let mut findings = vec![ok("workspace", paths.workspace.display().to_string())];
    findings.push(free_space(&paths.state));
    findings.push(private(&paths.state));
    match event_log::SqliteLog::open_read_only(&paths.state) {
        Ok(log) => findings.push(ok("log", format!("{} events of {}", log.head().seq, log.user()))),
        Err(e) => findings.push(bad("log", computer::error::ComputerError::from(e).message)),
    }
    findings.push(match socket::connect(paths) {
        Ok(Some(_)) => ok("holder", "another process holds the computer and answers"),
        Ok(None) => ok("holder", "none; commands open the computer themselves"),
        Err(e) => bad("holder", format!("cannot connect to its socket: {e}")),
    });
    findings
}

/// Checks the settings of `choir up`.
fn server() -> (Finding, Vec<SettingLine>) {
    let data = match data_folder(std::env::var_os("CHOIR_DATA").map(Into::into)) {
        Ok(data) => data,
        Err(e) => return (ok("server", e.message), Vec::new()),
    };
    let (MachineConfig { server, .. }, shown) = match server_settings(&data) {
        Ok(settings) => settings,
        Err(e) => return (bad("server", e.message), Vec::new()),
    };
    let certificate = || server.tls.as_ref().map_or(Ok(()), Tls::check).map_err(ServerError::from);
    let found = match server.check().and_then(|()| certificate()) {
        Ok(()) => ok("server", format!("choir up serves {}", data.display())),
        Err(e) => bad("server", format!("{:#}", anyhow::Error::from(e))),
    };
    (found, shown)
}

fn free_space(folder: &Path) -> Finding {
    const LITTLE: u64 = 256 * 1024 * 1024;
    match rustix::fs::statvfs(folder) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let detail = format!("{} free", size(free));
            if free < LITTLE { bad("disk", format!("only {detail}")) } else { ok("disk", detail) }
        }
        Err(e) => bad("disk", e.to_string()),
    }
}

fn private(folder: &Path) -> Finding {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::metadata(folder) {
        Ok(meta) if meta.permissions().mode() & 0o077 == 0 => {
            ok("privacy", "only you can read the computer's state")
        }
        Ok(_) => bad("privacy", format!("others can read the state: chmod 700 {}", folder.display())),
        Err(e) => bad("privacy", e.to_string()),
    }
}
