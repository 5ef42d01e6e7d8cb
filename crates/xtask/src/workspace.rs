//! The workspace as cargo describes it: where it is, where it builds to, its packages and what they depend on.
//!
//! Everything comes from one `cargo metadata` call, so that settings of cargo, such as `CARGO_TARGET_DIR`, hold here too.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A text with its path relative to the workspace root, `/` between the parts.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) manifest: TextFile,
    pub(crate) dependencies: Vec<Dependency>,
}

#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    /// The name of the package, even where the manifest renames it.
    pub(crate) package: String,
    /// Its key in the manifest.
    pub(crate) key: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

/// Which of cargo's two profiles a binary was built with.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Profile {
    Debug,
    Release,
}

impl Workspace {
    pub(crate) fn load() -> Result<Self> {
        let mut metadata = Command::new(cargo_program());
        metadata.args(["metadata", "--no-deps", "--format-version", "1", "--locked"]);
        // The directory of this crate, not the caller's: `cargo xtask` works from anywhere in the tree.
        metadata.current_dir(env!("CARGO_MANIFEST_DIR"));
        let json = process::capture(&mut metadata)?;
        Self::from_metadata(&json).context("cannot read the output of `cargo metadata`")
    }

    fn from_metadata(json: &str) -> Result<Self> {
        let metadata: Value = serde_json::from_str(json)?;
        let root = PathBuf::from(string(&metadata, "workspace_root")?);
        let packages =
            array(&metadata, "packages")?.iter().map(|p| package(p, &root)).collect::<Result<_>>()?;
        Ok(Self { target: string(&metadata, "target_directory")?.into(), root, packages })
    }

    /// A cargo of the toolchain that runs us, started at the root.
    pub(crate) fn cargo<const N: usize>(&self, args: [&str; N]) -> Command {
        let mut command = Command::new(cargo_program());
        command.current_dir(&self.root).args(args);
        command
    }

    /// Builds programs of the dev profile, such as `["--bin", "choir"]`. With the features of the whole workspace, as
    /// the tests have them, so that no dependency is compiled twice; `--package` or `cargo run` would choose others.
    pub(crate) fn build(&self, targets: &[&str]) -> Result<()> {
        process::run(self.cargo(["build", "--locked", "--workspace"]).args(targets))
    }

    /// Where cargo puts an example of the dev profile.
    pub(crate) fn example(&self, name: &str) -> PathBuf {
        self.binary(Profile::Debug, &format!("examples/{name}"))
    }

    /// Where cargo puts a binary of that name.
    pub(crate) fn binary(&self, profile: Profile, name: &str) -> PathBuf {
        let folder = match profile {
            Profile::Debug => "debug",
            Profile::Release => "release",
        };
        self.target.join(folder).join(format!("{name}{}", env::consts::EXE_SUFFIX))
    }
}

/// cargo tells its children which cargo it is; without one (a binary started by hand) PATH decides.
fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn package(json: &Value, root: &Path) -> Result<Package> {
    let manifest = Path::new(string(json, "manifest_path")?);
    let text = fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let path = manifest.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
    Ok(Package {
        name: string(json, "name")?.to_owned(),
        manifest: TextFile { path, text },
        dependencies: array(json, "dependencies")?.iter().map(dependency).collect::<Result<_>>()?,
    })
}

fn dependency(json: &Value) -> Result<Dependency> {
    let package = string(json, "name")?.to_owned();
    let key = json["rename"].as_str().unwrap_or(&package).to_owned();
    let kind = match json["kind"].as_str() {
        None => DependencyKind::Normal,
        Some("build") => DependencyKind::Build,
        Some("dev") => DependencyKind::Dev,
        Some(other) => anyhow::bail!("dependency kind `{other}` of {package}"),
    };
    Ok(Dependency { package, key, kind })
}

fn string<'a>(json: &'a Value, field: &str) -> Result<&'a str> {
    json[field].as_str().with_context(|| format!("no string `{field}`"))
}

fn array<'a>(json: &'a Value, field: &str) -> Result<&'a [Value]> {
    Ok(json[field].as_array().with_context(|| format!("no list `{field}`"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_of_dependency_and_their_other_names_are_read() {
        let read = |json: Value| dependency(&json).unwrap();
        let normal = read(serde_json::json!({ "name": "kernel", "kind": null, "rename": null }));
        assert_eq!((normal.key.as_str(), normal.kind), ("kernel", DependencyKind::Normal));
        let dev = read(serde_json::json!({ "name": "kernel", "kind": "dev", "rename": "model" }));
        assert_eq!(
            (dev.package.as_str(), dev.key.as_str(), dev.kind),
            ("kernel", "model", DependencyKind::Dev)
        );
    }

    #[test]
    fn this_workspace_loads_and_contains_xtask() {
        let workspace = Workspace::load().unwrap();
        let xtask = workspace.packages.iter().find(|p| p.name == "xtask").unwrap();
        assert_eq!(xtask.manifest.path, "crates/xtask/Cargo.toml");
        assert!(workspace.root.join(&xtask.manifest.path).is_file());
    }
}
