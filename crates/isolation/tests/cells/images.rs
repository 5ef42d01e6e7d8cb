//! Containers over foreign root file systems: other libraries, other programs, and misleading links.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use isolation::{Backend, Command, Container, Image, StartError};
use sha2::{Digest, Sha256};

use crate::fixture::{Fixture, run};

/// A static program from which an image can be made.
fn busybox() -> Option<PathBuf> {
    let places = ["/usr/bin/busybox", "/bin/busybox"].map(PathBuf::from);
    let found = places.into_iter().find(|path| {
        std::fs::read(path).is_ok_and(|bytes| !bytes.windows(10).any(|part| part == b"/ld-linux-"))
    });
    if found.is_none() {
        eprintln!("skipped: no static busybox (Debian: busybox-static)");
    }
    found
}

/// A root file system with only busybox in it.
fn rootfs(base: &Path) -> Option<()> {
    std::fs::create_dir_all(base.join("bin")).unwrap();
    std::fs::create_dir_all(base.join("etc")).unwrap();
    std::fs::copy(busybox()?, base.join("bin/busybox")).unwrap();
    for name in ["cat", "echo", "id", "ls", "sh", "stty", "touch", "true"] {
        symlink("busybox", base.join("bin").join(name)).unwrap();
    }
    std::fs::write(base.join("etc/os-release"), "ID=foreign\n").unwrap();
    Some(())
}

fn listing(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(one) = folders.pop() {
        for entry in std::fs::read_dir(one).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}

#[test]
fn an_image_without_our_libraries_runs_commands() {
    Fixture::containers().into_iter().for_each(without_our_libraries);
}

fn without_our_libraries(mut fixture: Fixture) {
    let base = fixture.folder.path().join("rootfs");
    let Some(()) = rootfs(&base) else { return };
    fixture.write("greeting", "hello");
    fixture.policy.image = Image::Rootfs(base.clone());
    let before = listing(&base);
    let cell = fixture.start();
    let script =
        "id -u; cat /etc/os-release greeting; echo; echo new > made; ls /usr /lib /lib64 2>/dev/null; true";
    assert_eq!(run(&*cell, &Command::new(["/bin/sh", "-c", script])).ok(), "1000\nID=foreign\nhello");
    assert_eq!(std::fs::read_to_string(fixture.upper().join("made")).unwrap(), "new\n");
    let refused = run(&*cell, &Command::new(["/bin/sh", "-c", "touch /x || touch /bin/x || touch /etc/x"]));
    assert!(refused.err.contains("Read-only") || refused.err.contains("denied"), "{}", refused.err);
    drop(cell);
    assert_eq!(listing(&base), before, "the image was changed");
}

#[test]
fn an_image_cannot_redirect_mounts_by_links_or_preload_code() {
    Fixture::containers().into_iter().for_each(links_and_preload_have_no_effect);
}

fn links_and_preload_have_no_effect(mut fixture: Fixture) {
    let base = fixture.folder.path().join("rootfs");
    let Some(()) = rootfs(&base) else { return };
    let outside = fixture.folder.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    for name in ["workspace", "home", "tmp", ".choir", "proc", "dev", "var"] {
        symlink(&outside, base.join(name)).unwrap();
    }
    std::fs::remove_file(base.join("etc/os-release")).unwrap();
    symlink(outside.join("passwd"), base.join("etc/passwd")).unwrap();
    std::fs::write(base.join("etc/ld.so.preload"), "/evil.so\n").unwrap();
    std::fs::write(base.join("evil.so"), "no library").unwrap();
    fixture.policy.image = Image::Rootfs(base);
    let finished =
        fixture.sh("echo made > /workspace/f; echo home > $HOME/f; cat /etc/passwd; cat /etc/ld.so.preload");
    assert!(finished.ok().starts_with("choir:x:1000"), "{}", finished.out);
    assert_eq!(listing(&outside), Vec::<PathBuf>::new());
    assert_eq!(std::fs::read_to_string(fixture.upper().join("f")).unwrap(), "made\n");
}

#[test]
fn an_image_in_the_oci_layout_runs_commands() {
    let Some(mut fixture) = Fixture::container() else { return };
    let base = fixture.folder.path().join("rootfs");
    let Some(()) = rootfs(&base) else { return };
    let layout = fixture.folder.path().join("layout");
    write_layout(&base, &layout);
    let container =
        Container::new(env!("CARGO_BIN_EXE_choir-cell")).with_images(fixture.folder.path().join("images"));
    fixture.backend = std::sync::Arc::new(container);
    fixture.policy.image = Image::OciLayout(layout.clone());
    assert_eq!(fixture.sh("cat /etc/os-release; id -u").ok(), "ID=foreign\n1000");
    // An unpacked image is reused, and only its description is read again.
    let blobs = layout.join("blobs/sha256");
    let layer = std::fs::read_dir(&blobs)
        .unwrap()
        .flatten()
        .max_by_key(|blob| blob.metadata().unwrap().len())
        .unwrap();
    std::fs::remove_file(layer.path()).unwrap();
    assert_eq!(fixture.sh("echo again").ok(), "again");
}

/// Packs a root file system as an image of one layer, as other tools write it.
fn write_layout(base: &Path, layout: &Path) {
    let mut archive =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    archive.follow_symlinks(false);
    archive.append_dir_all(".", base).unwrap();
    let layer = archive.into_inner().unwrap().finish().unwrap();
    let blobs = layout.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let blob = |bytes: &[u8]| {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        std::fs::write(blobs.join(&hex), bytes).unwrap();
        serde_json::json!(format!("sha256:{hex}"))
    };
    let layer = serde_json::json!({
        "mediaType": "application/vnd.oci.image.layer.v1.tar+gzip",
        "digest": blob(&layer),
    });
    let manifest = serde_json::json!({ "schemaVersion": 2, "layers": [layer] }).to_string();
    let manifest = serde_json::json!({
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": blob(manifest.as_bytes()),
    });
    let index = serde_json::json!({ "schemaVersion": 2, "manifests": [manifest] });
    std::fs::write(layout.join("index.json"), index.to_string()).unwrap();
    std::fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
}

#[test]
fn without_a_runtime_nothing_is_run() {
    let Some(fixture) = Fixture::container() else { return };
    let container = Container::new(env!("CARGO_BIN_EXE_choir-cell")).with_runtime("/no/such/runc");
    let refused = container.start(&fixture.policy, &fixture.folder.path().join("cell")).unwrap_err();
    assert!(matches!(refused, StartError::Unprotected(_)), "{refused}");
    assert!(container.probe().obstacle().unwrap().contains("/no/such/runc"));
}

#[test]
fn a_runtime_that_fails_is_quoted() {
    let Some(fixture) = Fixture::container() else { return };
    let container = Container::new(env!("CARGO_BIN_EXE_choir-cell")).with_runtime("/bin/false");
    let refused = container.start(&fixture.policy, &fixture.folder.path().join("cell")).unwrap_err();
    assert!(matches!(refused, StartError::Setup { .. }), "{refused}");
}
