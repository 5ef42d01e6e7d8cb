//! Writes a brotli copy, `NAME.br`, of every file that gets smaller by it, at brotli's highest quality.
//!
//! That takes seconds for a large file, so compressed files are cached by the hash of their content.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use anyhow::{Context, Result};

use super::{files_under, inputs};

/// Formats that are compressed already would only grow.
const NOT_WORTH_IT: [&str; 3] = ["woff2", "png", "br"];
/// Below this a compressed copy saves less than the header that announces it.
const SMALLEST: usize = 256;
const QUALITY: i32 = 11;
const WINDOW: i32 = 24;

/// Compresses all files of a folder, on all cores.
pub(super) fn all(folder: &Path, cache: &Path) -> Result<()> {
    fs::create_dir_all(cache).with_context(|| format!("cannot make {}", cache.display()))?;
    let mut files = files_under(folder)?;
    files.retain(|path| is_worth_it(path));
    let next = AtomicUsize::new(0);
    let worker = || -> Result<()> {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(file, cache).with_context(|| format!("cannot compress {}", file.display()))?;
        }
        Ok(())
    };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| match worker.join() {
            Ok(result) => result,
            Err(_) => Err(anyhow::anyhow!("a compression thread panicked")),
        })
    })
}

/// The path of a file's compressed copy.
pub(super) fn compressed_path(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".br");
    name.into()
}

/// The server fills the page for every response, so the page has no compressed copy.
fn is_worth_it(path: &Path) -> bool {
    let extension = path.extension().map(|extension| extension.to_string_lossy().into_owned());
    !path.ends_with("index.html") && extension.is_some_and(|known| !NOT_WORTH_IT.contains(&known.as_str()))
}

fn one(file: &Path, cache: &Path) -> Result<()> {
    let bytes = fs::read(file)?;
    if bytes.len() < SMALLEST {
        return Ok(());
    }
    let kept = cache.join(format!("{}.br", inputs::hash_of(&bytes)));
    if !kept.is_file() {
        let part = kept.with_extension("part");
        fs::write(&part, compressed(&bytes)?)?;
        fs::rename(part, &kept)?;
    }
    if fs::metadata(&kept)?.len() < bytes.len() as u64 {
        fs::copy(&kept, compressed_path(file))?;
    }
    Ok(())
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let parameters = brotli::enc::BrotliEncoderParams {
        quality: QUALITY,
        lgwin: WINDOW,
        size_hint: bytes.len(),
        ..Default::default()
    };
    let mut writer = brotli::CompressorWriter::with_params(&mut out, 1 << 16, &parameters);
    writer.write_all(bytes)?;
    drop(writer);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_was_compressed_reads_back() {
        let text = "the same words again ".repeat(500);
        let small = compressed(text.as_bytes()).unwrap();
        assert!(small.len() < text.len() / 10);
        let mut back = String::new();
        brotli::Decompressor::new(small.as_slice(), 4096).read_to_string(&mut back).unwrap();
        assert_eq!(back, text);
    }

    #[test]
    fn fonts_and_the_page_have_no_compressed_copy() {
        assert!(is_worth_it(Path::new("assets/desktop-1.wasm")));
        assert!(!is_worth_it(Path::new("assets/inter-1.woff2")));
        assert!(!is_worth_it(Path::new("index.html")));
        assert!(!is_worth_it(Path::new(".stamp")));
    }
}
