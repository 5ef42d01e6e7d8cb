//! The size of the bundle, and the limit that it must keep.

use std::{fs, path::Path};

use anyhow::{Result, ensure};

use super::{Purpose, compress, files_under};

/// The most bytes that the desktop may load before it can be used: its wasm, the script that starts it and its style sheet,
/// compressed.
const LIMIT: u64 = 320_000;
/// The kinds of files that are loaded before the desktop can be used. Fonts replace others that the browser has.
const FIRST: [&str; 3] = ["wasm", "script", "style"];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Weight {
    raw: u64,
    sent: u64,
}

/// Prints the sizes of the first load and of later ones, and fails if the first exceeds the limit.
pub(super) fn report(out: &Path, purpose: Purpose) -> Result<()> {
    let mut kinds: Vec<(&str, Weight)> = ["wasm", "script", "style", "fonts", "parts, on first use"]
        .map(|kind| (kind, Weight::default()))
        .into();
    for file in files_under(&out.join("assets"))? {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let Some((_, weight)) = kind_of(&name).and_then(|kind| kinds.iter_mut().find(|(k, _)| *k == kind))
        else {
            continue;
        };
        let raw = fs::metadata(&file)?.len();
        weight.raw += raw;
        weight.sent += fs::metadata(compress::compressed_path(&file)).map_or(raw, |copy| copy.len());
    }
    for (kind, weight) in &kinds {
        println!("web: {kind:<20} {:>9} raw {:>9} sent", kilobytes(weight.raw), kilobytes(weight.sent));
    }
    let first: u64 = kinds.iter().filter(|(k, _)| FIRST.contains(k)).map(|(_, w)| w.sent).sum();
    println!("web: {:<20} {:>9}     {:>9} sent", "first load", "", kilobytes(first));
    ensure!(
        purpose == Purpose::Develop || first <= LIMIT,
        "wasm, script and style are {}, the limit is {}; look for what a feature or a dependency added",
        kilobytes(first),
        kilobytes(LIMIT)
    );
    Ok(())
}

/// What a file in `assets/` counts as; a compressed copy counts with its original.
fn kind_of(name: &str) -> Option<&'static str> {
    let extension = name.rsplit('.').next()?;
    match extension {
        "br" => None,
        "wasm" if name.starts_with("desktop-") => Some("wasm"),
        "css" => Some("style"),
        "woff2" => Some("fonts"),
        _ if name.starts_with("boot-") || name.starts_with("theme-") => Some("script"),
        _ => Some("parts, on first use"),
    }
}

fn kilobytes(bytes: u64) -> String {
    format!("{:.1} KB", bytes as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_counts_once() {
        assert_eq!(kind_of("desktop-1.wasm"), Some("wasm"));
        assert_eq!(kind_of("desktop-1.wasm.br"), None);
        assert_eq!(kind_of("desktop-1.css"), Some("style"));
        assert_eq!(kind_of("boot-1.js"), Some("script"));
        assert_eq!(kind_of("pdf.worker.min-1.mjs"), Some("parts, on first use"));
    }

    #[test]
    fn the_limit_is_for_what_is_shipped() {
        let out = std::env::temp_dir().join(format!("xtask-sizes-{}", std::process::id()));
        fs::create_dir_all(out.join("assets")).unwrap();
        fs::write(out.join("assets/desktop-1.wasm"), vec![0; LIMIT as usize + 1]).unwrap();
        assert!(report(&out, Purpose::Develop).is_ok());
        assert!(report(&out, Purpose::Ship).unwrap_err().to_string().contains("the limit is 320.0 KB"));
        fs::write(out.join("assets/desktop-1.wasm.br"), "small").unwrap();
        assert!(report(&out, Purpose::Ship).is_ok());
        fs::remove_dir_all(out).unwrap();
    }
}
