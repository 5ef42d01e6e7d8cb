//! Runs attacks in cells of a backend, several at once, and collects the violations.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Mutex;

use isolation::layer::{self, EntryKind, Visit};
use isolation::{Access, Backend, Cell, Command, ExecError, Limits, Mount, Policy, Size, Status};

use crate::attack::{Attack, Outcome, Violation, Workspace};
use crate::host::{AttackFolders, Host, groups_left};

/// Concurrent attacks.
const LANES: usize = 3;

/// Runs all attacks and fails with every violation, each with the names of attack and backend.
pub(crate) fn run_all(backend: &dyn Backend, attacks: &[Attack]) {
    let obstacle = backend.probe().obstacle();
    assert!(obstacle.is_none(), "{} cannot be attacked: {obstacle:?}", backend.name());
    let mut host = Host::new();
    let (queue, failures) = (Mutex::new(attacks.iter()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..LANES {
            scope.spawn(|| {
                loop {
                    let Some(attack) = queue.lock().unwrap().next() else { return };
                    let (violations, outcome) = run(backend, attack, &host);
                    if !violations.is_empty() {
                        failures.lock().unwrap().insert(attack.name.clone(), (violations, outcome));
                    }
                }
            });
        }
    });
    let mut report = String::new();
    for (name, (violations, outcome)) in failures.into_inner().unwrap() {
        for one in violations {
            report.push_str(&format!("{}: {name}: {one}\n", backend.name()));
        }
        let said: String = outcome.output.chars().take(1_500).collect();
        report.push_str(&format!("  it ended with {} and said: {said:?}\n", outcome.end));
    }
    for one in host.look().into_iter().chain(groups_left()) {
        report.push_str(&format!("{}: after all: {one}\n", backend.name()));
    }
    assert!(report.is_empty(), "\n{report}");
}

fn policy(attack: &Attack, folders: &AttackFolders) -> Policy {
    let access = match attack.workspace {
        Workspace::Layered => {
            Access::Layered { upper: folders.path("cell/upper"), work: folders.path("cell/work") }
        }
        Workspace::Direct => Access::Direct,
    };
    let workspace = Mount::workspace(folders.path("workspace"), access);
    let workspace = Mount { hidden: vec![".choir".into()], ..workspace };
    let limits: Limits = attack.limits().try_into().unwrap();
    Policy { limits, ..Policy::for_workspace(workspace, folders.mark.clone()) }
}

fn run(backend: &dyn Backend, attack: &Attack, host: &Host) -> (Vec<Violation>, Outcome) {
    let folders = AttackFolders::new(&host.secret, &attack.files);
    let mut outcome = Outcome { secret: host.secret.clone(), ..Outcome::default() };
    let mut violations = Vec::new();
    match backend.start(&policy(attack, &folders), &folders.path("cell")) {
        Ok(cell) => {
            let mut command = Command::new(attack.argv());
            command.environment = host.targets().into_iter().chain(folders.targets()).collect();
            (outcome.end, outcome.output) = perform(&*cell, &command, attack.terminal);
            outcome.answers = cell
                .exec(&Command::new(["/bin/true"]), &mut |_, _| ())
                .is_ok_and(|exit| exit.status == Status::Exited(0));
            cell.stop();
        }
        Err(e) => violations.push(Violation::Machine(format!("there was no cell: {e}"))),
    }
    let direct = attack.workspace == Workspace::Direct;
    if !direct {
        match read_layer(&folders.path("cell/upper")) {
            Ok(entries) => outcome.layer = entries,
            Err(e) => violations.push(Violation::Machine(format!("the layer cannot be read: {e}"))),
        }
    }
    violations.extend(attack.judge(&outcome));
    violations.extend(folders.look(direct.then(|| folders.path("workspace")).as_deref()));
    for name in ["cell", "workspace"] {
        if let Err(e) = layer::remove(&folders.path(name)) {
            violations.push(Violation::Machine(format!("{name} cannot be removed: {e}")));
        }
    }
    (violations, outcome)
}

fn perform(cell: &dyn Cell, command: &Command, terminal: bool) -> (String, String) {
    let mut output = Vec::new();
    let ended = if terminal {
        cell.pty(command, Size { columns: 80, rows: 24 }).map(|mut pty| {
            let _ = pty.output.read_to_end(&mut output);
            pty.control.wait()
        })
    } else {
        cell.exec(command, &mut |_, bytes| output.extend_from_slice(bytes)).map(|exit| exit.status)
    };
    (name(ended), String::from_utf8_lossy(&output).into_owned())
}

fn name(ended: Result<Status, ExecError>) -> String {
    match ended {
        Ok(Status::Exited(code)) => format!("exited:{code}"),
        Ok(Status::Signaled(signal)) => format!("signaled:{signal}"),
        Ok(Status::Limited(limit)) => format!("limited:{limit:?}").to_lowercase(),
        Ok(Status::Stopped) => "stopped".into(),
        Err(e) => format!("not run: {e}"),
    }
}

fn read_layer(upper: &Path) -> std::io::Result<Vec<(String, String)>> {
    let mut entries = Vec::new();
    layer::walk(upper, &mut |entry| {
        let kind = match entry.kind {
            EntryKind::File => "file",
            EntryKind::Symlink => "symlink",
            EntryKind::Folder => "folder",
            EntryKind::OpaqueFolder => "opaque folder",
            EntryKind::Whiteout => "gone",
            EntryKind::Special => "special",
        };
        entries.push((entry.path.to_string_lossy().into_owned(), kind.to_owned()));
        Visit::Enter
    })?;
    Ok(entries)
}
