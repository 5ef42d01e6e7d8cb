//! Images as others write them, and as an attacker would.

use std::os::unix::fs::PermissionsExt;

use super::*;
use tar::{Builder, EntryType, Header};

/// One entry: what it is called, what it is, and its text or where it leads.
type Given<'a> = (&'a str, EntryType, &'a str);

const FILE: EntryType = EntryType::Regular;
const FOLDER: EntryType = EntryType::Directory;

fn archive(entries: &[Given<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (path, kind, text) in entries {
        let mut header = Header::new_gnu();
        header.set_entry_type(*kind);
        header.set_mode(0o4755);
        let (link, body) = if *kind == FILE { ("", *text) } else { (*text, "") };
        header.set_size(body.len() as u64);
        // Written as they are: the library would refuse what these tests are about.
        let fields = header.as_gnu_mut().unwrap();
        fields.name[..path.len()].copy_from_slice(path.as_bytes());
        fields.linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_cksum();
        builder.append(&header, body.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

struct Bench {
    base: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir_all(base.path().join("layout/blobs/sha256")).unwrap();
        fs::write(base.path().join("layout/oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
        Self { base }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    fn blob(&self, bytes: &[u8]) -> String {
        let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        fs::write(self.path("layout/blobs/sha256").join(&hex), bytes).unwrap();
        format!("sha256:{hex}")
    }

    /// Writes an image; returns the digests of its layers.
    fn image(&self, layers: &[&[Given<'_>]]) -> Vec<String> {
        let digests: Vec<String> = layers.iter().map(|entries| self.blob(&archive(entries))).collect();
        let kind = "application/vnd.oci.image.layer.v1.tar";
        let layers: Vec<_> =
            digests.iter().map(|digest| serde_json::json!({ "mediaType": kind, "digest": digest })).collect();
        let manifest = self.blob(serde_json::json!({ "layers": layers }).to_string().as_bytes());
        let index = serde_json::json!({ "manifests": [{ "digest": manifest }] });
        fs::write(self.path("layout/index.json"), index.to_string()).unwrap();
        digests
    }

    fn unpack(&self) -> Result<PathBuf, ImageError> {
        unpack(&self.path("layout"), &self.path("images"))
    }

    fn refused(&self, layers: &[&[Given<'_>]]) -> String {
        self.image(layers);
        let refused = self.unpack().unwrap_err().to_string();
        assert_eq!(fs::read_dir(self.path("images")).unwrap().count(), 0, "something was kept");
        refused
    }
}

fn listing(folder: &Path) -> String {
    let mut names: Vec<String> = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(one) = folders.pop() {
        for entry in fs::read_dir(one).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                names.push(entry.path().strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    names.sort();
    names.join(" ")
}

#[test]
fn later_layers_replace_and_delete() {
    let bench = Bench::new();
    bench.image(&[
        &[
            ("a/", FOLDER, ""),
            ("a/one", FILE, "1"),
            ("a/two", FILE, "2"),
            ("b/three", FILE, "3"),
            ("c", FILE, "c"),
        ],
        &[
            ("b/new", FILE, "n"),
            ("b/.wh..wh..opq", FILE, ""),
            ("a/.wh.one", FILE, ""),
            ("c/", FOLDER, ""),
            ("c/d", FILE, ""),
        ],
    ]);
    let root = bench.unpack().unwrap();
    assert_eq!(listing(&root), "a/two b/new c/d");
}

#[test]
fn an_image_is_unpacked_once() {
    let bench = Bench::new();
    bench.image(&[&[("a", FILE, "1")]]);
    let root = bench.unpack().unwrap();
    fs::write(root.join("mark"), "").unwrap();
    assert_eq!(bench.unpack().unwrap(), root);
    assert!(root.join("mark").exists());
}

#[test]
fn links_are_resolved_inside_the_image() {
    let bench = Bench::new();
    bench.image(&[
        &[
            ("usr/lib/", FOLDER, ""),
            ("lib", EntryType::Symlink, "/usr/lib"),
            ("up", EntryType::Symlink, "../../../.."),
        ],
        &[
            ("lib/x", FILE, "x"),
            ("up/y", FILE, "y"),
            ("z", EntryType::Link, "/lib/x"),
            ("/absolute", FILE, ""),
        ],
    ]);
    let root = bench.unpack().unwrap();
    assert_eq!(listing(&root), "absolute lib up usr/lib/x y z");
    assert_eq!(fs::read_to_string(root.join("z")).unwrap(), "x");
}

#[test]
fn paths_out_of_the_image_are_refused() {
    let bench = Bench::new();
    let outside = bench.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    let outside = outside.to_str().unwrap();
    let through = format!("{outside}/secret");
    let table: [&[Given<'_>]; 4] = [
        &[("../x", FILE, "x")],
        &[("a/../../x", FILE, "x")],
        &[("out", EntryType::Symlink, outside), ("out/x", FILE, "x")],
        &[("z", EntryType::Link, &through)],
    ];
    for entries in table {
        bench.refused(&[entries]);
        assert_eq!(listing(Path::new(outside)), "secret", "{entries:?}");
    }
}

#[test]
fn devices_and_set_uid_bits_are_dropped() {
    let bench = Bench::new();
    bench.image(&[&[("null", EntryType::Char, ""), ("pipe", EntryType::Fifo, ""), ("su", FILE, "x")]]);
    let root = bench.unpack().unwrap();
    assert_eq!(listing(&root), "su");
    assert_eq!(fs::metadata(root.join("su")).unwrap().permissions().mode() & 0o7777, 0o755);
}

#[test]
fn a_changed_blob_is_refused() {
    let bench = Bench::new();
    let layer = bench.image(&[&[("a", FILE, "1")]]).remove(0);
    let path = bench.path("layout/blobs/sha256").join(layer.strip_prefix("sha256:").unwrap());
    fs::write(path, archive(&[("a", FILE, "2")])).unwrap();
    let refused = bench.unpack().unwrap_err();
    assert!(matches!(refused, ImageError::Changed(_)), "{refused}");
    assert_eq!(fs::read_dir(bench.path("images")).unwrap().count(), 0);
}

#[test]
fn a_digest_must_be_hexadecimal() {
    for text in ["sha256:../../../../etc/passwd", "sha512:00", "sha256:", ""] {
        assert!(Digest::try_from(text.to_owned()).is_err(), "{text}");
    }
}

#[test]
fn the_manifest_for_this_machine_is_taken() {
    let bench = Bench::new();
    bench.image(&[&[("a", FILE, "1")]]);
    let text = fs::read_to_string(bench.path("layout/index.json")).unwrap();
    let mut index: serde_json::Value = serde_json::from_str(&text).unwrap();
    index["manifests"][0]["platform"] = serde_json::json!({ "os": "linux", "architecture": "s390x" });
    fs::write(bench.path("layout/index.json"), index.to_string()).unwrap();
    assert!(matches!(bench.unpack().unwrap_err(), ImageError::Platform(_)));
}
