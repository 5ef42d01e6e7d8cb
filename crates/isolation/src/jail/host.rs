//! The host's side of the jail: prepares the launcher's instructions.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::spare::{Spare, Spares};
use super::{JailPlan, RootSpec, SharedSetup, identity, probe};
use crate::cell::{Backend, Cell, StartError};
use crate::cgroup::{Groups, Hierarchy};
use crate::launch::{LaunchedCell, PendingLaunch};
use crate::layer;
use crate::policy::{Access, Limits, Policy};
use crate::probe::Probe;

/// The jail backend.
#[derive(Debug, Clone)]
pub struct Jail {
    launcher: PathBuf,
    hierarchy: Arc<OnceLock<Hierarchy>>,
    is_warm: Arc<AtomicBool>,
    spares: Spares,
}

impl Jail {
    /// Uses this program as the launcher. It must call [`crate::entry`] first.
    pub fn new(launcher: impl Into<PathBuf>) -> Self {
        let (hierarchy, is_warm, spares) = (Arc::default(), Arc::default(), Spares::default());
        Self { launcher: launcher.into(), hierarchy, is_warm, spares }
    }

    /// Uses the running program as the launcher, if it called [`crate::entry`].
    pub fn of_this_program() -> Self {
        Self::new(crate::launcher().unwrap_or_default())
    }

    fn hierarchy(&self) -> &Hierarchy {
        self.hierarchy.get_or_init(|| {
            let found = Hierarchy::find();
            found.sweep();
            found
        })
    }

    /// The setup that all cells of this policy's owner and image share.
    fn shared_setup(&self, policy: &Policy) -> SharedSetup {
        let limits = &policy.limits;
        let groups = self.hierarchy().groups(&unique_name(), limits);
        let tmpfs_limit = tmpfs_limit(limits, &groups);
        let base = RootSpec {
            image: policy.image.clone(),
            outside: outside(policy),
            tmpfs_limit,
            files: limits.files,
        };
        SharedSetup { groups, base }
    }

    fn begin(&self, setup: SharedSetup) -> Result<Spare, StartError> {
        let json = serde_json::to_vec(&setup).map_err(|e| StartError::Policy(e.to_string()))?;
        let pending = PendingLaunch::start(&self.launcher, crate::LAUNCH, json, setup.groups.paths())?;
        Ok(Spare { setup, pending })
    }

    /// Prepares the next launcher while this cell runs.
    fn prepare_next(&self, policy: &Policy) {
        if self.is_warm.load(Ordering::Relaxed) {
            let (jail, policy) = (self.clone(), policy.clone());
            self.spares.refill(move || jail.begin(jail.shared_setup(&policy)).ok());
        }
    }
}

/// The uid under which a cell of this policy runs if root starts it.
fn outside(policy: &Policy) -> Option<u32> {
    rustix::process::geteuid().is_root().then(|| identity::uid_of(&policy.owner))
}

/// The maximum bytes of an in-memory folder. Temporary files count as memory, and together they never exceed the
/// limit.
pub(crate) fn tmpfs_limit(limits: &Limits, groups: &Groups) -> u64 {
    limits.memory / if groups.memory { 2 } else { 4 }
}

/// Prepares the layers on the host, and returns the instructions for the cell init.
pub(crate) fn plan(policy: &Policy, groups: Groups) -> Result<JailPlan, StartError> {
    let outside = outside(policy);
    for mount in &policy.mounts {
        if let Access::Layered { upper, work } = &mount.access {
            prepare_layer(&mount.source, upper, work, outside, &mount.hidden)
                .map_err(|e| StartError::Policy(format!("{}: {e}", mount.source.display())))?;
        }
    }
    Ok(JailPlan { policy: policy.clone(), outside, groups })
}

/// Creates a layer's folders, owned by the cell's user, with whiteouts for hidden names.
fn prepare_layer(
    source: &Path,
    upper: &Path,
    work: &Path,
    outside: Option<u32>,
    hidden: &[String],
) -> std::io::Result<()> {
    let like = std::fs::metadata(source)?;
    std::fs::create_dir_all(upper)?;
    // State left there by an earlier mount must not be reused.
    layer::remove(work)?;
    std::fs::create_dir_all(work)?;
    std::fs::set_permissions(upper, std::fs::Permissions::from_mode(like.mode() & 0o777))?;
    if let Some(id) = outside {
        std::os::unix::fs::chown(upper, Some(id), Some(id))?;
    }
    for name in hidden {
        if std::fs::symlink_metadata(source.join(name)).is_ok()
            && std::fs::symlink_metadata(upper.join(name)).is_err()
        {
            layer::write_whiteout(&upper.join(name))?;
        }
    }
    Ok(())
}

/// A cell name that is unique on this machine.
pub(crate) fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Backend for Jail {
    fn name(&self) -> &'static str {
        "jail"
    }

    fn probe(&self) -> Probe {
        probe::probe(self, self.hierarchy())
    }

    fn keep_warm(&self) {
        self.is_warm.store(true, Ordering::Relaxed);
    }

    fn start(&self, policy: &Policy, _: &Path) -> Result<Arc<dyn Cell>, StartError> {
        if self.launcher.as_os_str().is_empty() {
            return Err(StartError::Unprotected("this program cannot launch cells".into()));
        }
        let setup = self.shared_setup(policy);
        // A waiting launcher may have been killed meanwhile, so fall back to a new one.
        let spare = self.spares.take(&setup).and_then(|spare| spare.finish(policy).ok());
        let cell: LaunchedCell = spare.map_or_else(|| self.begin(setup)?.finish(policy), Ok)?;
        self.prepare_next(policy);
        Ok(Arc::new(cell))
    }
}
