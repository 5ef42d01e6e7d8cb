//! The web bundle embedded in the binary. It is empty if `cargo xtask web` did not run before the build.
//!
//! Everything under `assets/` has the hash of its content in its name and can be cached forever. `index.html` cannot:
//! its `{{nonce}}` is replaced in every response.

use std::borrow::Cow;

use hypervisor::assets::{Asset, Assets, content_type};

/// Path, bytes, and the same bytes compressed with brotli.
type File = (&'static str, &'static [u8], Option<&'static [u8]>);

include!(concat!(env!("OUT_DIR"), "/web_assets.rs"));

/// The page for `/` if there is no bundle.
const MISSING: &str = "\
<!doctype html>
<html lang=\"en\">
<meta charset=\"utf-8\">
<title>ChoirOS</title>
<h1>The desktop is not in this binary</h1>
<p>The computer runs, but it was built without what the browser loads. Build that, then the binary:</p>
<pre>cargo xtask web
cargo build --release -p choir</pre>
<p>or both, and start it: <code>cargo xtask up</code></p>
</html>
";

/// The desktop embedded in this binary.
pub(crate) struct Embedded;

impl Assets for Embedded {
    fn get(&self, path: &str) -> Option<Asset> {
        let (bytes, brotli) = match find(path) {
            Some(found) => found,
            None if path == "index.html" => (MISSING.as_bytes(), None),
            None => return None,
        };
        Some(Asset {
            bytes: Cow::Borrowed(bytes),
            brotli: brotli.map(Cow::Borrowed),
            mime: content_type(path),
            immutable: path.starts_with("assets/"),
        })
    }
}

/// A file by its path, such as `assets/boot-1a2b3c4d.js`: its bytes, and the same compressed with brotli.
fn find(path: &str) -> Option<(&'static [u8], Option<&'static [u8]>)> {
    // The table is sorted by path.
    let at = ASSETS.binary_search_by(|(known, _, _)| (*known).cmp(path)).ok()?;
    ASSETS.get(at).map(|(_, bytes, small)| (*bytes, *small))
}

/// The page, if the bundle is embedded.
#[cfg(test)]
fn page() -> Option<&'static str> {
    find("index.html").and_then(|(bytes, _)| std::str::from_utf8(bytes).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_found_by_its_path_and_has_a_type() {
        for (path, bytes, _) in ASSETS {
            assert_eq!(find(path).map(|(found, _)| found.len()), Some(bytes.len()), "{path}");
            assert_ne!(content_type(path), "application/octet-stream", "{path}");
        }
        assert!(find("assets/nothing.js").is_none());
    }

    #[test]
    fn the_page_leaves_the_nonce_to_the_server() {
        if let Some(page) = page() {
            assert!(page.contains("{{nonce}}"));
            assert!(!page.contains("{{script}}") && !page.contains("{{style}}"));
        }
    }
}
