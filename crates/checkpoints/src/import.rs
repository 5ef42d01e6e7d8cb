//! One commit as a stream into `git fast-import`. Blobs come first and the commit after them, so that a file whose
//! bytes turn out bad halfway is padded, never named, and costs nobody else their checkpoint.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Read, Write};
use std::process::ChildStdin;

use event_log::ContentError;
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, FilePath};

use super::git::{Git, Output, Running};
use super::{BRANCH, Changes, CheckpointError, Commit, CommitId, CommitRequest, Contents, LeftOut, Why};
use super::{name, store};

const ACTION: &str = "write a checkpoint";
const CHUNK: usize = 64 * 1024;

/// Writes the commit on top of `head` and moves the branch to it.
pub(super) fn write(
    git: &Git,
    head: Option<&CommitId>,
    request: &CommitRequest<'_>,
    contents: &mut Contents<'_>,
) -> Result<Commit, CheckpointError> {
    let plan = Plan::of(git, head, &request.changes)?;
    // What git can hold is decided by `name`. Its own protection for other file systems is for checking out, which
    // never happens here, and would refuse the whole commit.
    let command = git.command(&[
        "-c",
        "core.protectHFS=false",
        "-c",
        "core.protectNTFS=false",
        "fast-import",
        "--quiet",
        "--done",
        "--date-format=raw",
    ]);
    let mut running = Running::start(ACTION, command, Output::Collected)?;
    let stdin = running.take_stdin().ok_or_else(|| CheckpointError::Io {
        action: ACTION,
        source: io::Error::from(io::ErrorKind::BrokenPipe),
    })?;
    let mut stream = Stream {
        out: BufWriter::with_capacity(CHUNK, stdin),
        contents,
        marks: HashMap::new(),
        left_out: Vec::new(),
    };
    let (left_out, id) = match stream.send(head, request, plan) {
        Ok(()) => {
            let left_out = std::mem::take(&mut stream.left_out);
            drop(stream);
            let finished = running.finish(ACTION)?;
            if !finished.success() {
                store::remove_crash_reports(git.dir());
                return Err(finished.failure(ACTION));
            }
            (left_out, String::from_utf8_lossy(&finished.stdout).trim().to_owned())
        }
        // Git went away before it had read everything: its own words say why.
        Err(Failure::Pipe(source)) => {
            drop(stream);
            let finished = running.finish(ACTION)?;
            store::remove_crash_reports(git.dir());
            return Err(if finished.success() {
                CheckpointError::Io { action: ACTION, source }
            } else {
                finished.failure(ACTION)
            });
        }
        Err(Failure::Content { path, source }) => {
            drop(running);
            drop(stream);
            store::remove_crash_reports(git.dir());
            return Err(CheckpointError::Content { path, source });
        }
    };
    let id = CommitId::parse(&id).map_err(|e| CheckpointError::Git {
        action: ACTION,
        status: "no commit was named".into(),
        stderr: e.to_string(),
    })?;
    Ok(Commit { commit: id, seq: request.seq, left_out })
}

/// What the commit does to the tree before it, for paths that git can hold.
struct Plan<'a> {
    start_empty: bool,
    gone: Vec<&'a FilePath>,
    files: Vec<(&'a FilePath, ContentRef, u16)>,
    links: Vec<(&'a FilePath, &'a str)>,
}

impl<'a> Plan<'a> {
    fn of(git: &Git, head: Option<&CommitId>, changes: &'a Changes) -> Result<Self, CheckpointError> {
        let mut plan = Self { start_empty: false, gone: Vec::new(), files: Vec::new(), links: Vec::new() };
        match changes {
            Changes::Full(nodes) => {
                plan.start_empty = true;
                for (path, node) in nodes {
                    plan.add(path, Some(node));
                }
                plan.gone.clear();
            }
            Changes::Since(changes) => {
                for (path, node) in changes {
                    plan.add(path, node.as_ref());
                }
                plan.delete_only_files(git, head)?;
            }
        }
        Ok(plan)
    }

    fn add(&mut self, path: &'a FilePath, node: Option<&'a FileNode>) {
        if !name::git_holds(path) {
            return;
        }
        match node {
            Some(FileNode::File { hash, size, mode }) => {
                self.files.push((path, ContentRef { hash: *hash, size: *size }, *mode));
            }
            Some(FileNode::Symlink { target }) if name::git_holds_link(path) => {
                self.links.push((path, target))
            }
            Some(FileNode::Symlink { .. } | FileNode::Folder) | None => self.gone.push(path),
        }
    }

    /// To git, deleting a folder deletes all that is in it; in the log a folder's node can go while its files stay.
    /// So only those paths are deleted at which the commit before has a file or a link.
    fn delete_only_files(&mut self, git: &Git, head: Option<&CommitId>) -> Result<(), CheckpointError> {
        let Some(head) = head.filter(|_| !self.gone.is_empty()) else { return Ok(()) };
        let asked = self.gone.iter().map(|path| path.as_str().as_bytes()).collect::<HashSet<_>>();
        let mut there = HashSet::new();
        git.each_entry(head, &mut |_, _, path| {
            if let Some(path) = asked.get(path) {
                there.insert(*path);
            }
        })?;
        self.gone.retain(|path| there.contains(path.as_str().as_bytes()));
        Ok(())
    }
}

/// Why the stream ended early.
enum Failure {
    Pipe(io::Error),
    Content { path: FilePath, source: ContentError },
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

struct Stream<'a, 'c> {
    out: BufWriter<ChildStdin>,
    contents: &'a mut Contents<'c>,
    /// Every content is sent once, whatever the number of files that have it.
    marks: HashMap<ContentHash, Result<usize, Why>>,
    left_out: Vec<LeftOut>,
}

impl Stream<'_, '_> {
    fn send(
        &mut self,
        head: Option<&CommitId>,
        request: &CommitRequest<'_>,
        mut plan: Plan<'_>,
    ) -> Result<(), Failure> {
        let mut marked = Vec::with_capacity(plan.files.len());
        for (path, content, mode) in plan.files {
            match self.blob(path, content)? {
                Ok(mark) => marked.push((path, mark, mode)),
                Err(why) => {
                    self.left_out.push(LeftOut { path: path.clone(), why });
                    // An older content must not stand for the one that is not there, nor anything below the path.
                    plan.gone.push(path);
                }
            }
        }
        let out = &mut self.out;
        let (commit_mark, message) = (self.marks.len() + 1, request.full_message());
        write!(out, "commit {BRANCH}\nmark :{commit_mark}\ncommitter {}\n", request.signature())?;
        writeln!(out, "data {}\n{message}", message.len())?;
        if let Some(head) = head {
            writeln!(out, "from {head}")?;
        }
        if plan.start_empty {
            writeln!(out, "deleteall")?;
        }
        // Deletions first: what was a file may be a folder now.
        for path in plan.gone {
            line(out, "D", path)?;
        }
        for (path, mark, mode) in marked {
            let mode = if mode & 0o100 == 0 { "100644" } else { "100755" };
            line(out, &format!("M {mode} :{mark}"), path)?;
        }
        for (path, target) in plan.links {
            line(out, "M 120000 inline", path)?;
            writeln!(out, "data {}\n{target}", target.len())?;
        }
        write!(out, "\nget-mark :{commit_mark}\ndone\n")?;
        out.flush()?;
        Ok(())
    }

    /// Sends a content if it was not sent before, and gives its mark.
    fn blob(&mut self, path: &FilePath, content: ContentRef) -> Result<Result<usize, Why>, Failure> {
        if let Some(known) = self.marks.get(&content.hash) {
            return Ok(*known);
        }
        let failed = |source| Failure::Content { path: path.clone(), source };
        let sent = match (self.contents)(&content.hash) {
            Ok(mut reader) => {
                let mark = self.marks.len() + 1;
                write!(self.out, "blob\nmark :{mark}\ndata {}\n", content.size)?;
                let sent = copy_exactly(&mut self.out, &mut *reader, content.size)?;
                writeln!(self.out)?;
                match sent {
                    Ok(()) => Ok(mark),
                    Err(error) => Err(why_left_out(error).map_err(failed)?),
                }
            }
            Err(error) => Err(why_left_out(error).map_err(failed)?),
        };
        self.marks.insert(content.hash, sent);
        Ok(sent)
    }
}

fn line(out: &mut impl Write, command: &str, path: &FilePath) -> io::Result<()> {
    write!(out, "{command} ")?;
    out.write_all(&name::quote(path))?;
    writeln!(out)
}

/// A content that is gone or bad costs one file; storage that fails costs the checkpoint, which is tried again.
fn why_left_out(error: ContentError) -> Result<Why, ContentError> {
    match error {
        ContentError::Purged(_) => Ok(Why::Purged),
        ContentError::Missing(_) => Ok(Why::Missing),
        ContentError::Damaged(_) => Ok(Why::Damaged),
        ContentError::Storage(_) => Err(error),
    }
}

/// Writes exactly `size` bytes, with zeros for those that do not come. The inner result is about the reader, the
/// outer one about the writer.
fn copy_exactly(
    out: &mut impl Write,
    reader: &mut dyn Read,
    size: u64,
) -> io::Result<Result<(), ContentError>> {
    let mut chunk = vec![0; CHUNK];
    let mut left = size;
    let short = || ContentError::Damaged(ContentHash::default());
    let problem = loop {
        // One byte more than promised is asked for, so that the reader gets to see its own end.
        let wanted = usize::try_from(left.saturating_add(1)).unwrap_or(CHUNK).min(CHUNK);
        match reader.read(&mut chunk[..wanted]) {
            Ok(0) if left == 0 => return Ok(Ok(())),
            Ok(0) => break short(),
            Ok(n) if n as u64 > left => break short(),
            Ok(n) => {
                out.write_all(&chunk[..n])?;
                left -= n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break ContentError::from_read(error),
        }
    };
    // A failing storage ends the stream anyway.
    if !matches!(problem, ContentError::Storage(_)) {
        io::copy(&mut io::repeat(0).take(left), out)?;
    }
    Ok(Err(problem))
}
