//! What a bundle is made of, as one hash: the same hash means the same bundle.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use super::{Purpose, bundle, files_under};
use crate::workspace::Workspace;

/// A line that changes whenever the bundle would.
pub(super) fn stamp(workspace: &Workspace, wasm: &Path, purpose: Purpose) -> Result<String> {
    let web = workspace.root.join("web");
    let mut files = files_under(&web.join("src"))?;
    files.extend(["build.mjs", "package-lock.json", "tsconfig.json"].map(|name| web.join(name)));
    files.extend(bundle::styles(workspace)?);
    files.push(workspace.root.join("crates/dioxus-desktop/index.html"));
    files.push(workspace.root.join("Cargo.lock"));
    files.push(wasm.to_owned());

    // A change of xtask changes the bundle too: its binary replaces a version number that would have to be raised by hand.
    let program = std::env::current_exe()?;
    files.push(program);

    let mut hasher = Sha256::new();
    for file in files {
        let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
        hasher.update(file.to_string_lossy().as_bytes());
        hasher.update((bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    Ok(format!("{purpose:?} {}", hex(&hasher.finalize())))
}

/// SHA-256, in hex.
pub(super) fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_sha_256_in_hex() {
        assert!(hash_of(b"abc").starts_with("ba7816bf"));
        assert_eq!(hash_of(b"").len(), 64);
    }
}
