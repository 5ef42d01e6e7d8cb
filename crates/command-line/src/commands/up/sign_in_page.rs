//! Opens the browser without showing the sign-in link to other users of the machine.
//!
//! The arguments of a program can be read by everyone (`/proc/*/cmdline`), and the first to redeem a link is signed in.
//! So the browser is given a page that only this user can read, and the page leads to the link.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const FILE_NAME: &str = "sign-in.html";
/// The lifetime of the link.
const LINK_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Opens the link in the browser. Failures are ignored, since the link is also printed.
pub(super) fn open(data: &Path, link: &str) {
    let Ok(page) = write(data, link) else { return };
    let opened = opener(&page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if let Ok(mut child) = opened {
        std::thread::spawn(move || child.wait());
    }
    std::thread::spawn(move || {
        std::thread::sleep(LINK_LIFETIME);
        let _ = std::fs::remove_file(page);
    });
}

fn opener(page: &Path) -> Command {
    let mut command = Command::new("xdg-open");
    command.arg(page);
    command
}

/// Writes the page. A page of an earlier start is replaced, not overwritten, because another user may have it open.
fn write(data: &Path, link: &str) -> io::Result<PathBuf> {
    let page = data.join(FILE_NAME);
    match std::fs::remove_file(&page) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&page)?;
    let link = link.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0; url={link}\"><title>ChoirOS</title>\
         <a href=\"{link}\">Sign in to ChoirOS</a>"
    )?;
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_link_is_in_a_private_file_and_not_in_the_arguments() {
        let data = tempfile::tempdir().unwrap();
        let link = "http://localhost:8080/#sign-in=s3cret";
        std::fs::write(data.path().join(FILE_NAME), "left by an earlier start").unwrap();
        let page = write(data.path(), link).unwrap();
        assert!(std::fs::read_to_string(&page).unwrap().contains(&format!("url={link}\"")));
        assert_eq!(std::fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
        let arguments: Vec<_> = opener(&page).get_args().map(ToOwned::to_owned).collect();
        assert_eq!(arguments, [page.as_os_str()]);
    }
}
