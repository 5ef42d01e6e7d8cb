//! `[cells]` of `choir.toml`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isolation::policy::clean_environment;
use isolation::{Access, Backend, Container, Image, Jail, Limits, Mount, Network, Policy};
use shared_types::wire::{CellCommand, CommandNetwork};

/// The default settings for the cells of one computer.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSettings {
    pub backend: BackendKind,
    /// A root file system, or an OCI image layout, in place of the machine's own programs.
    pub image: Option<PathBuf>,
    /// Folders of programs beside the machine's own, shown read-only.
    pub tools: Vec<PathBuf>,
    pub limits: Limits,
    /// Bytes of replaced and deleted ignored files that are kept for undo.
    pub trash: u64,
}

/// The isolation backend of cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BackendKind {
    #[default]
    Jail,
    Container,
}

impl Default for CellSettings {
    fn default() -> Self {
        Self {
            backend: BackendKind::Jail,
            image: None,
            tools: Vec::new(),
            limits: Limits::default(),
            trash: 1 << 30,
        }
    }
}

impl CellSettings {
    /// The backend; images are unpacked in a folder of the computer's state.
    pub fn backend(&self, state: &Path) -> Arc<dyn Backend> {
        match self.backend {
            BackendKind::Jail => Arc::new(Jail::of_this_program()),
            BackendKind::Container => {
                Arc::new(Container::of_this_program().with_images(state.join("images")))
            }
        }
    }

    fn programs(&self) -> Image {
        match &self.image {
            Some(folder) if folder.join("oci-layout").is_file() => Image::OciLayout(folder.clone()),
            Some(folder) => Image::Rootfs(folder.clone()),
            None => Image::Host { tools: self.tools.clone() },
        }
    }

    /// The policy of one command.
    pub(crate) fn policy(&self, command: &CellCommand, owner: &str, mount: Mount) -> Policy {
        let wanted = &command.limits;
        let mut limits = self.limits;
        limits.memory = wanted.memory.unwrap_or(limits.memory);
        limits.processes = wanted.processes.unwrap_or(limits.processes);
        limits.time = wanted.seconds.map_or(limits.time, Duration::from_secs);
        limits.disk = wanted.disk.unwrap_or(limits.disk);
        limits.output = wanted.output.unwrap_or(limits.output);
        let network = match &command.network {
            CommandNetwork::None => Network::None,
            CommandNetwork::Hosts(hosts) => Network::Allow(hosts.clone()),
            CommandNetwork::Open => Network::Open,
        };
        self.policy_over(owner, mount, limits, network)
    }

    /// The policy of a terminal: it works on the workspace itself, without a time limit.
    pub(crate) fn terminal_policy(&self, owner: &str, workspace: PathBuf) -> Policy {
        let mount = mount(workspace, Access::Direct, Vec::new());
        self.policy_over(owner, mount, self.limits, Network::None)
    }

    /// A policy over one mount, with the programs and the environment of these settings.
    pub fn policy_over(&self, owner: &str, mount: Mount, limits: Limits, network: Network) -> Policy {
        let mut environment = clean_environment();
        let bins: Vec<String> = self
            .tools
            .iter()
            .flat_map(|tool| [tool.join("bin"), tool.clone()])
            .map(|folder| folder.to_string_lossy().into_owned())
            .collect();
        if let (Some(path), false) = (environment.get_mut("PATH"), bins.is_empty()) {
            *path = format!("{}:{path}", bins.join(":"));
        }
        if !network.is_none() {
            environment.extend(isolation::proxy::environment());
        }
        // Rust's own launcher looks for its toolchains beside the home folder, which in a cell is empty.
        for tool in self.tools.iter().filter(|tool| tool.ends_with(".rustup")) {
            environment.insert("RUSTUP_HOME".into(), tool.to_string_lossy().into_owned());
        }
        let image = self.programs();
        Policy { image, mounts: vec![mount], limits, network, environment, owner: owner.to_owned() }
    }
}

/// The workspace in a cell, without the computer's own folder.
pub fn mount(workspace: PathBuf, access: Access, covered: Vec<PathBuf>) -> Mount {
    let hidden = vec![crate::paths::STATE.to_owned()];
    Mount { source: workspace, target: isolation::policy::WORKSPACE.into(), access, hidden, covered }
}
