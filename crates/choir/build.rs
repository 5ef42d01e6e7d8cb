//! Embeds the web bundle in the binary: the files that `cargo xtask web` wrote to `target/web`, as one table.
//!
//! Without them the table is empty and everything still builds; the server then says what to run. The files are
//! copied first, so that a bundle that is just being written is never embedded partially.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let bundle = bundle()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-env-changed=CHOIR_WEB");
    println!("cargo::rerun-if-env-changed=CARGO_TARGET_DIR");
    // For a missing folder cargo would run this script on every build and recompile the crate.
    fs::create_dir_all(&bundle)?;
    println!("cargo::rerun-if-changed={}", bundle.display());

    let copies = out.join("web");
    if copies.exists() {
        fs::remove_dir_all(&copies)?;
    }
    let mut names = Vec::new();
    if bundle.join("index.html").is_file() {
        copy(&bundle, &copies, "", &mut names)?;
    }
    names.sort();
    fs::write(out.join("web_assets.rs"), table(&copies, &names)?)?;
    Ok(())
}

/// `CHOIR_WEB`, or where `cargo xtask web` puts it.
fn bundle() -> Result<PathBuf, Box<dyn Error>> {
    if let Some(named) = env::var_os("CHOIR_WEB") {
        return Ok(named.into());
    }
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), |named| root.join(named));
    Ok(target.join("web"))
}

/// Copies a folder and collects the relative path of every file, with `/` as separator.
fn copy(from: &Path, to: &Path, prefix: &str, names: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let inside = format!("{prefix}{name}");
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &to.join(&name), &format!("{inside}/"), names)?;
        } else if !name.starts_with('.') {
            fs::copy(entry.path(), to.join(&name))?;
            names.push(inside);
        }
    }
    Ok(())
}

/// The table as Rust code; a compressed file is in the row of its original.
fn table(copies: &Path, names: &[String]) -> Result<String, Box<dyn Error>> {
    let mut text = String::from(
        "/// All files, by path.\n\
         static ASSETS: &[File] = &[\n",
    );
    let bytes = |name: &str| format!("include_bytes!({:?})", copies.join(name));
    for name in names.iter().filter(|name| !name.ends_with(".br")) {
        let twin = format!("{name}.br");
        let small = if names.contains(&twin) { format!("Some({})", bytes(&twin)) } else { "None".to_owned() };
        writeln!(text, "    ({name:?}, {}, {small}),", bytes(name))?;
    }
    text.push_str("];\n");
    Ok(text)
}
