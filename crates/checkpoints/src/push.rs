//! Pushes checkpoints to a remote. Never forced: if the remote has other commits, the push fails.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::git::{GitProcess, StdoutMode};
use super::{BACKUPS, BRANCH, CheckpointRepo, PushError};

/// How long a push may take before it is stopped.
pub const PUSH_LIMIT: Duration = Duration::from_secs(60);

/// The variables of our environment that a push needs: proxies, certificates, the person's ssh agent.
const PASSED_ON: [&str; 9] = [
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

impl CheckpointRepo {
    /// Pushes the branch and the backups to a URL or an absolute path. Does nothing if there is no checkpoint yet.
    pub fn push(&self, remote: &str) -> Result<(), PushError> {
        self.push_within(remote, PUSH_LIMIT)
    }

    /// Like [`push`](Self::push), with another limit.
    pub fn push_within(&self, remote: &str, limit: Duration) -> Result<(), PushError> {
        let shown = without_userinfo(remote);
        self.check_remote(remote).map_err(|reason| PushError::Remote { remote: shown.clone(), reason })?;
        if self.head()?.is_none() {
            return Ok(());
        }
        let action = "push the checkpoints";
        let branch = format!("{BRANCH}:{BRANCH}");
        let backups = format!("{BACKUPS}*:{BACKUPS}*");
        let options = ["push", "--no-progress", "--no-verify", "--no-recurse-submodules", "--no-follow-tags"];
        let mut command = self.git.command(&options);
        command.args(["--", remote, &branch, &backups]);
        command.env("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");
        // Git must not ask questions: no person can answer them.
        command.env("GIT_SSH_COMMAND", "ssh -oBatchMode=yes").env("GIT_SSH_VARIANT", "ssh");
        for name in PASSED_ON {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let process = GitProcess::start(action, command, StdoutMode::Collected)?;
        match process.finish_within(action, limit)? {
            Some(output) if output.success() => Ok(()),
            Some(output) => {
                Err(PushError::Refused { remote: shown, stderr: redact(&output.stderr_text(), remote) })
            }
            None => Err(PushError::TimedOut { remote: shown, seconds: limit.as_secs() }),
        }
    }

    /// For a remote that is a folder, git uses that folder's configuration and hooks, so a cell must not be able to
    /// write it.
    fn check_remote(&self, remote: &str) -> Result<(), &'static str> {
        if remote.contains(['\0', '\n', '\r']) {
            return Err("it contains a line end or a NUL");
        }
        let Some(folder) = local_folder(remote) else { return Ok(()) };
        if !folder.is_absolute() {
            return Err("expected a URL or an absolute path");
        }
        if resolve_links(&folder).starts_with(resolve_links(&self.workspace)) {
            return Err("it is inside the workspace");
        }
        Ok(())
    }
}

/// The folder that git would use for this remote, by git's own rule.
fn local_folder(remote: &str) -> Option<PathBuf> {
    if let Some(rest) = remote.strip_prefix("file://") {
        return Some(PathBuf::from(percent_decoded(rest)));
    }
    let colon = remote.find(':');
    let slash = remote.find('/');
    match (colon, slash) {
        (None, _) => Some(PathBuf::from(remote)),
        (Some(colon), Some(slash)) if slash < colon => Some(PathBuf::from(remote)),
        (Some(_), _) => None,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match code.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            Some(_) | None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Resolves symbolic links in the existing part of a path, and `..` in the rest.
fn resolve_links(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
        if let Ok(real) = resolved.canonicalize() {
            resolved = real;
        }
    }
    resolved
}

/// Removes user names and passwords from the URLs in a text.
fn without_userinfo(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        clean.push_str(before);
        let end = after.find(|c: char| c == '/' || c == '\'' || c == '"' || c.is_whitespace());
        let (host, tail) = after.split_at(end.unwrap_or(after.len()));
        clean.push_str(host.rsplit('@').next().unwrap_or_default());
        rest = tail;
    }
    clean.push_str(rest);
    clean
}

/// Git's message without the secrets of the remote's URL.
fn redact(message: &str, remote: &str) -> String {
    let mut message = message.to_owned();
    let authority =
        remote.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or_default());
    if let Some((userinfo, _)) = authority.rsplit_once('@') {
        let password = userinfo.split_once(':').map_or(userinfo, |(_, password)| password);
        for secret in [format!("{userinfo}@"), password.to_owned(), percent_decoded(password)] {
            if !secret.is_empty() {
                message = message.replace(&secret, "");
            }
        }
    }
    without_userinfo(&message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_shows_no_name_and_no_password() {
        assert_eq!(without_userinfo("fatal: 'https://a:b@host/x' no"), "fatal: 'https://host/x' no");
        assert_eq!(without_userinfo("https://a:p@w@host ssh://git@h/y"), "https://host ssh://h/y");
        assert_eq!(without_userinfo("/plain/a@b"), "/plain/a@b");
        let message = redact("password hunter 2 is wrong for https://host", "https://ada:hunter%202@host/x");
        assert_eq!(message, "password  is wrong for https://host");
    }

    #[test]
    fn folders_are_distinguished_from_urls_as_git_does() {
        assert_eq!(local_folder("/a/b"), Some("/a/b".into()));
        assert_eq!(local_folder("/a:b"), Some("/a:b".into()));
        assert_eq!(local_folder("file:///a%20b"), Some("/a b".into()));
        assert_eq!(local_folder("origin"), Some("origin".into()));
        assert_eq!(local_folder("host:path"), None);
        assert_eq!(local_folder("https://host/x"), None);
    }

    #[test]
    fn parent_components_of_missing_folders_are_resolved() {
        assert_eq!(resolve_links(Path::new("/nonexistent/../nowhere/x")), PathBuf::from("/nowhere/x"));
    }
}
