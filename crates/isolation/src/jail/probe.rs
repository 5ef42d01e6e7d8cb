//! Checks what this machine supports for a jail. The decisive check starts a real cell.

use std::sync::Arc;

use super::Jail;
use crate::cell::{Backend, Cell, Command, Status};
use crate::cgroup::Hierarchy;
use crate::policy::{Access, Mount, Policy};
use crate::probe::{Check, Finding, Probe};

pub(super) fn probe(jail: &Jail, hierarchy: &Hierarchy) -> Probe {
    let mut checks = vec![
        Check { what: "started by", finding: user() },
        Check { what: "control groups", finding: groups(hierarchy) },
    ];
    let trial = match trial(jail) {
        Ok(()) => Finding::Works("namespaces, layers, landlock and the system call filter are active".into()),
        Err(why) => Finding::Missing(why),
    };
    checks.push(Check { what: "a cell", finding: trial });
    Probe { backend: "jail", checks }
}

pub(crate) fn user() -> Finding {
    let root = rustix::process::geteuid().is_root();
    let user =
        if root { "root: cells run under an unprivileged uid of their owner's" } else { "an ordinary user" };
    Finding::Works(user.into())
}

pub(crate) fn groups(hierarchy: &Hierarchy) -> Finding {
    match hierarchy {
        Hierarchy::V1 { memory, pids, cpu } => {
            let missing: Vec<&str> = [("memory", memory), ("pids", pids), ("cpu", cpu)]
                .into_iter()
                .filter_map(|(name, folder)| folder.is_none().then_some(name))
                .collect();
            if missing.is_empty() {
                Finding::Works("version 1: memory, processes and processors".into())
            } else {
                Finding::Weaker(format!(
                    "version 1 without {}: limits apply only to each process separately",
                    missing.join(", ")
                ))
            }
        }
        Hierarchy::V2 { .. } => Finding::Works("version 2: memory, processes and processors".into()),
        Hierarchy::None(why) => {
            Finding::Weaker(format!("{why}; memory limits apply only to each process separately"))
        }
    }
}

/// Starts a cell over an empty folder and runs a program in it.
pub(crate) fn trial(backend: &dyn Backend) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("choir-probe-{}", std::process::id()));
    let made =
        ["source", "upper", "work"].iter().try_for_each(|name| std::fs::create_dir_all(folder.join(name)));
    let tried = made.map_err(|e| e.to_string()).and_then(|()| {
        let access = Access::Layered { upper: folder.join("upper"), work: folder.join("work") };
        let policy = Policy::for_workspace(Mount::workspace(folder.join("source"), access), "probe");
        let cell: Arc<dyn Cell> = backend.start(&policy, &folder).map_err(|e| e.to_string())?;
        let exit = cell.exec(&Command::new(["/bin/true"]), &mut |_, _| ()).map_err(|e| e.to_string())?;
        if exit.status == Status::Exited(0) {
            return Ok(());
        }
        Err(format!("a program that does nothing ended with {:?}", exit.status))
    });
    let _ = std::fs::remove_dir_all(&folder);
    tried
}
