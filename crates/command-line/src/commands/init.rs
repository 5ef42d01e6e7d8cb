//! `choir init`: turns a folder into a computer, with the files it has.

use anyhow::{Context as _, Result};
use shared_types::UserId;

use super::{Context, status};
use crate::cli::Init;
use crate::render::{ProgressReport, line, safe};
use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;

pub(crate) fn run(context: &Context, args: &Init) -> Result<()> {
    let login =
        std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "owner".into());
    let user = match &args.user {
        Some(text) => UserId::parse(text)
            .map_err(|e| ComputerError::new(ErrorCode::BadRequest, format!("--user {text:?}: {e}")))?,
        None => user_from(&login),
    };
    let existed = args.folder.exists();
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("cannot create {}", args.folder.display()))?;
    let folder =
        args.folder.canonicalize().with_context(|| format!("cannot read {}", args.folder.display()))?;
    let paths = ComputerPaths::at(&folder);
    if paths.exists() {
        let message = format!("{} is already a computer; show it with: choir status", folder.display());
        return Err(ComputerError::new(ErrorCode::Refused, message).into());
    }
    let bar = ProgressReport::new(context.style);
    let name = args.name.as_deref().unwrap_or(&login);
    let made = Computer::create(&paths, user, name, &|phase, done, total| bar.update(phase, done, total));
    drop(bar);
    let (_computer, answer) = match made {
        Ok(made) => made,
        Err(failure) => {
            // A partial computer would block the next attempt; the user's own files are not touched.
            let _ = std::fs::remove_dir_all(&paths.state);
            if !existed {
                let _ = std::fs::remove_dir(&folder);
            }
            return Err(failure.into());
        }
    };
    if !context.style.is_json() {
        line(&format!("{} is a computer now", safe(&folder.display().to_string())));
    }
    status::show(context, &answer)
}

/// The valid user id closest to a login name.
fn user_from(login: &str) -> UserId {
    let clean: String = login
        .to_lowercase()
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '-' })
        .take(UserId::MAX_LEN)
        .collect();
    let clean = clean.trim_matches('-');
    UserId::parse(clean).unwrap_or_else(|_| UserId::owner())
}
