//! The targets of attacks: files, processes, memory and sockets of the host that hold a secret; and the check of the
//! host afterwards. This module knows nothing about cells.

use std::ffi::OsString;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::attack::Violation;

/// Targets shared by all attacks: services that send the secret to every client, and a process that holds it.
pub(crate) struct Host {
    pub(crate) secret: String,
    folder: TempDir,
    port: u16,
    bystander: Child,
    /// A shared memory segment that holds the secret, readable by every user.
    segment: String,
    /// A descriptor that every child inherits, as a careless server could leak one.
    _leak: std::fs::File,
}

impl Host {
    pub(crate) fn new() -> Self {
        let secret = random();
        let folder = tempfile::tempdir().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let record = secret.clone();
        std::thread::spawn(move || tell(tcp.incoming(), &record));
        let named = UnixListener::bind(folder.path().join("socket")).unwrap();
        let abstracted =
            SocketAddr::from_abstract_name(format!("choir-attack-{}", std::process::id())).unwrap();
        let abstracted = UnixListener::bind_addr(&abstracted).unwrap();
        for listener in [named, abstracted] {
            let record = secret.clone();
            std::thread::spawn(move || tell(listener.incoming(), &record));
        }
        let leaked = folder.path().join("leaked");
        std::fs::write(&leaked, &secret).unwrap();
        let leak = std::fs::File::open(&leaked).unwrap();
        rustix::io::fcntl_setfd(leak.as_fd(), rustix::io::FdFlags::empty()).unwrap();
        let bystander = Command::new("/bin/sleep")
            .arg("600")
            .env("SECRET", &secret)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let segment =
            segment("$_ = shmget(0, 64, 0666 | 01000); shmwrite($_, $ENV{SECRET}, 0, 32); print", &secret);
        Self { secret, folder, port, bystander, segment, _leak: leak }
    }

    /// The targets as environment variables for the scripts.
    pub(crate) fn targets(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        vec![
            ("PORT".into(), self.port.to_string()),
            ("SOCKET".into(), text(&self.folder.path().join("socket"))),
            ("ABSTRACT".into(), format!("choir-attack-{}", std::process::id())),
            ("SEGMENT".into(), self.segment.clone()),
            ("BYSTANDER".into(), self.bystander.id().to_string()),
            ("SERVER".into(), std::process::id().to_string()),
        ]
    }

    /// Checks that the services and the process still run.
    pub(crate) fn look(&mut self) -> Vec<Violation> {
        let mut violations = Vec::new();
        if !matches!(self.bystander.try_wait(), Ok(None)) {
            violations.push(Violation::Machine("a process of the host has ended".into()));
        }
        if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            violations.push(Violation::Machine("a service of the host does not answer".into()));
        }
        violations
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.bystander.kill();
        let _ = self.bystander.wait();
        segment(&format!("shmctl({}, 0, 0)", self.segment), "");
    }
}

/// Runs a perl script on a System V shared memory segment.
fn segment(script: &str, secret: &str) -> String {
    let done = Command::new("/usr/bin/perl").args(["-e", script]).env("SECRET", secret).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

fn tell<S: Write>(connections: impl Iterator<Item = std::io::Result<S>>, secret: &str) {
    for mut connection in connections.flatten() {
        let _ = connection.write_all(secret.as_bytes());
    }
}

pub(crate) fn random() -> String {
    let mut bytes = [0; 16];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut bytes).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folders of one attack: a workspace with a log in it, and folders around it.
pub(crate) struct AttackFolders {
    folder: TempDir,
    /// Identifies the attack's processes.
    pub(crate) mark: String,
    before: Vec<(PathBuf, Vec<u8>)>,
    /// A socket in the workspace.
    _service: UnixListener,
}

impl AttackFolders {
    pub(crate) fn new(secret: &str, files: &std::collections::BTreeMap<String, String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for path in ["outside/secret", "users/bob/diary", "workspace/.choir/log"] {
            write(path, secret);
        }
        write("workspace/notes.txt", "notes");
        for (path, text) in files {
            write(&format!("workspace/{path}"), text);
        }
        std::fs::create_dir(folder.path().join("cell")).unwrap();
        let service = UnixListener::bind(folder.path().join("workspace/service.sock")).unwrap();
        let mut folders = Self { folder, mark: random(), before: Vec::new(), _service: service };
        folders.before = folders.snapshot();
        folders
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn targets(&self) -> Vec<(String, String)> {
        let text = |name: &str| self.path(name).to_str().unwrap().to_owned();
        vec![
            ("OUTSIDE".into(), text("outside")),
            ("OTHER".into(), text("users/bob")),
            ("HOST_WORKSPACE".into(), text("workspace")),
            ("UPPER".into(), text("cell/upper")),
            ("MARK".into(), self.mark.clone()),
        ]
    }

    /// Everything that no attack may change, with its content: a link's target, or a file's bytes and mode.
    fn snapshot(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut folders: Vec<PathBuf> =
            ["outside", "users", "workspace"].iter().map(|name| self.path(name)).collect();
        let mode =
            |path: &Path| format!("{:o} ", std::fs::symlink_metadata(path).unwrap().permissions().mode());
        let mut found: Vec<_> = folders.iter().map(|path| (path.clone(), mode(path).into_bytes())).collect();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap().map(Result::unwrap) {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                let mut state = mode(&path).into_bytes();
                if kind.is_symlink() {
                    state.extend_from_slice(std::fs::read_link(&path).unwrap().as_os_str().as_bytes());
                } else if kind.is_file() {
                    state.extend_from_slice(&std::fs::read(&path).unwrap());
                } else if kind.is_dir() {
                    folders.push(path.clone());
                }
                found.push((path, state));
            }
        }
        found.sort();
        found
    }

    /// Differences to the state before, once the cell has ended. `except` excludes the workspace.
    pub(crate) fn look(&self, except: Option<&Path>) -> Vec<Violation> {
        let counts = |list: Vec<(PathBuf, Vec<u8>)>| -> Vec<(PathBuf, Vec<u8>)> {
            let inside = |path: &Path| {
                except.is_some_and(|except| {
                    path.strip_prefix(except).is_ok_and(|rest| !rest.starts_with(".choir"))
                })
            };
            list.into_iter().filter(|(path, _)| !inside(path)).collect()
        };
        let (before, after) = (counts(self.before.clone()), counts(self.snapshot()));
        let mut violations = Vec::new();
        for (path, _) in after.iter().filter(|one| !before.contains(one)) {
            violations.push(Violation::Machine(format!("{} was made or changed", path.display())));
        }
        for (path, _) in before.iter().filter(|(path, _)| !after.iter().any(|(other, _)| other == path)) {
            violations.push(Violation::Machine(format!("{} is gone", path.display())));
        }
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        if mounts.contains(self.folder.path().to_str().unwrap()) {
            violations.push(Violation::Machine("a mount is left".into()));
        }
        for process in processes_with(&self.mark) {
            violations.push(Violation::Machine(format!("a process is left: {process:?}")));
        }
        violations
    }
}

/// Processes whose environment or arguments contain a text.
fn processes_with(text: &str) -> Vec<OsString> {
    let holds = |path: PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let processes = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let is_process = entry.file_name().as_bytes().iter().all(u8::is_ascii_digit);
        is_process && (holds(entry.path().join("environ")) || holds(entry.path().join("cmdline")))
    });
    processes.map(|entry| entry.file_name()).collect()
}

/// Control groups of this process that still exist.
pub(crate) fn groups_left() -> Vec<Violation> {
    let mine = format!("choir-cell-{}-", std::process::id());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let mut folders: Vec<PathBuf> = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (folder, kind) = (fields.next()?, fields.next()?);
            kind.starts_with("cgroup").then(|| PathBuf::from(folder))
        })
        .collect();
    let mut left = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&mine) {
                left.push(Violation::Machine(format!("a control group is left: {}", entry.path().display())));
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(entry.path());
            }
        }
    }
    left
}
