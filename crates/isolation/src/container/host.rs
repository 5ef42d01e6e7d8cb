//! The host's side of the container backend: prepares the launcher's instructions.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::ContainerPlan;
use super::groups::{self, GroupPaths};
use super::image;
use super::runtime::{self, Runtime};
use crate::cell::{Backend, Cell, StartError};
use crate::cgroup::Hierarchy;
use crate::jail::{host as jail, probe};
use crate::launch::PendingLaunch;
use crate::policy::{Image, Policy};
use crate::probe::{Check, Finding, Probe};

/// The container backend, which uses an OCI runtime.
#[derive(Debug, Clone)]
pub struct Container {
    launcher: PathBuf,
    configured: Option<PathBuf>,
    images: Option<PathBuf>,
    runtime: Arc<OnceLock<Result<Runtime, String>>>,
    hierarchy: Arc<OnceLock<Hierarchy>>,
}

impl Container {
    /// Uses this program as the launcher. It must call [`crate::entry`] first. It is also the cell init, so it is
    /// mounted in the container with its libraries.
    pub fn new(launcher: impl Into<PathBuf>) -> Self {
        Self {
            launcher: launcher.into(),
            configured: None,
            images: None,
            runtime: Arc::default(),
            hierarchy: Arc::default(),
        }
    }

    /// Uses the running program as the launcher, if it called [`crate::entry`].
    pub fn of_this_program() -> Self {
        Self::new(crate::launcher().unwrap_or_default())
    }

    /// Uses only this runtime.
    #[must_use]
    pub fn with_runtime(self, path: impl Into<PathBuf>) -> Self {
        Self { configured: Some(path.into()), runtime: Arc::default(), ..self }
    }

    /// Every usable runtime of this machine, the default one first.
    pub fn runtimes() -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        runtime::all(&path).into_iter().map(|runtime| runtime.path).collect()
    }

    /// Keeps unpacked images in this folder. No other user may be able to write it.
    #[must_use]
    pub fn with_images(self, folder: impl Into<PathBuf>) -> Self {
        Self { images: Some(folder.into()), ..self }
    }

    /// The image as a root file system folder, or this machine's own programs.
    fn image(&self, image: &Image) -> Result<Image, StartError> {
        let Image::OciLayout(layout) = image else { return Ok(image.clone()) };
        let none = || StartError::Policy("there is no folder in which images are unpacked".into());
        let images = self.images.as_ref().ok_or_else(none)?;
        let unpacked = image::unpack(layout, images);
        unpacked.map(Image::Rootfs).map_err(|e| StartError::Policy(e.to_string()))
    }

    /// The runtime's program, if one was found.
    pub fn runtime(&self) -> Option<&Path> {
        self.resolved_runtime().as_ref().ok().map(|runtime| runtime.path.as_path())
    }

    fn resolved_runtime(&self) -> &Result<Runtime, String> {
        self.runtime.get_or_init(|| runtime::find(self.configured.as_deref()))
    }

    fn hierarchy(&self) -> &Hierarchy {
        self.hierarchy.get_or_init(|| {
            let found = Hierarchy::find();
            groups::sweep(&found);
            found
        })
    }
}

impl Backend for Container {
    fn name(&self) -> &'static str {
        "container"
    }

    fn probe(&self) -> Probe {
        let mut checks = vec![
            Check { what: "started by", finding: probe::user() },
            Check { what: "control groups", finding: probe::groups(self.hierarchy()) },
        ];
        let version = self.resolved_runtime().clone().and_then(|runtime| {
            runtime.version().map(|version| format!("{version}, {}", runtime.path.display()))
        });
        let works = version.is_ok();
        checks.insert(
            0,
            Check { what: "runtime", finding: version.map_or_else(Finding::Missing, Finding::Works) },
        );
        if works {
            let trial = probe::trial(self)
                .map(|()| "the isolation of the runtime and of the cell init is active".into());
            checks
                .push(Check { what: "a cell", finding: trial.map_or_else(Finding::Missing, Finding::Works) });
        }
        Probe { backend: self.name(), checks }
    }

    fn start(&self, policy: &Policy, scratch: &Path) -> Result<Arc<dyn Cell>, StartError> {
        let runtime = self.resolved_runtime().clone().map_err(StartError::Unprotected)?;
        let name = jail::unique_name();
        let policy = &Policy { image: self.image(&policy.image)?, ..policy.clone() };
        let bundle = scratch.join("bundle");
        std::fs::create_dir_all(&bundle)
            .map_err(|e| StartError::Policy(format!("{}: {e}", bundle.display())))?;
        let jail_plan = jail::plan(policy, self.hierarchy().groups(&name, &policy.limits))?;
        let group_paths = GroupPaths::of(self.hierarchy(), &name, &runtime);
        let json = |e: serde_json::Error| StartError::Policy(e.to_string());
        let init = serde_json::to_vec(&jail_plan).map_err(json)?;
        let groups = group_paths.folders.clone();
        let launcher = serde_json::to_vec(&ContainerPlan { jail_plan, bundle, runtime, name, group_paths })
            .map_err(json)?;
        let pending = PendingLaunch::start(&self.launcher, crate::CONTAINER_LAUNCH, launcher, groups)?;
        Ok(Arc::new(pending.finish(init, policy)?))
    }
}
