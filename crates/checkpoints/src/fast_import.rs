//! Writes one commit through `git fast-import`. Blobs are sent before the commit, so a file that turns out damaged is
//! padded, omitted from the commit, and does not affect the other files.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Read, Write};
use std::process::ChildStdin;

use event_log::ContentError;
use shared_types::payload::file::FileNode;
use shared_types::{ContentHash, ContentRef, FilePath};

use super::git::{Git, GitProcess, StdoutMode};
use super::{
    BRANCH, CheckpointError, Commit, CommitFiles, CommitId, CommitRequest, ContentSource, OmissionReason,
    OmittedFile,
};
use super::{name, store};

const ACTION: &str = "write a checkpoint";
const CHUNK: usize = 64 * 1024;

/// Writes the commit on top of `head` and moves the branch to it.
pub(super) fn write(
    git: &Git,
    head: Option<&CommitId>,
    request: &CommitRequest<'_>,
    contents: &mut ContentSource<'_>,
) -> Result<Commit, CheckpointError> {
    let plan = CommitPlan::of(git, head, &request.changes)?;
    // `name` decides what git can store. Git's own protection for other file systems concerns checkouts, which never
    // happen here, and would refuse the whole commit.
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
    let mut process = GitProcess::start(ACTION, command, StdoutMode::Collected)?;
    let stdin = process.take_stdin().ok_or_else(|| CheckpointError::Io {
        action: ACTION,
        source: io::Error::from(io::ErrorKind::BrokenPipe),
    })?;
    let mut stream = ImportStream {
        out: BufWriter::with_capacity(CHUNK, stdin),
        contents,
        marks: HashMap::new(),
        omitted: Vec::new(),
    };
    let (omitted, id) = match stream.send(head, request, plan) {
        Ok(()) => {
            let omitted = std::mem::take(&mut stream.omitted);
            drop(stream);
            let output = process.finish(ACTION)?;
            if !output.success() {
                store::remove_crash_reports(git.dir());
                return Err(output.failure(ACTION));
            }
            (omitted, String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        // Git ended before it had read everything: its standard error says why.
        Err(StreamError::Pipe(source)) => {
            drop(stream);
            let output = process.finish(ACTION)?;
            store::remove_crash_reports(git.dir());
            return Err(if output.success() {
                CheckpointError::Io { action: ACTION, source }
            } else {
                output.failure(ACTION)
            });
        }
        Err(StreamError::Content { path, source }) => {
            drop(process);
            drop(stream);
            store::remove_crash_reports(git.dir());
            return Err(CheckpointError::Content { path, source });
        }
    };
    let id = CommitId::parse(&id).map_err(|e| CheckpointError::Git {
        action: ACTION,
        status: "it printed no commit".into(),
        stderr: e.to_string(),
    })?;
    Ok(Commit { id, seq: request.seq, omitted })
}

/// The changes of the commit, restricted to paths that git can store.
struct CommitPlan<'a> {
    start_empty: bool,
    deleted: Vec<&'a FilePath>,
    files: Vec<(&'a FilePath, ContentRef, u16)>,
    links: Vec<(&'a FilePath, &'a str)>,
}

impl<'a> CommitPlan<'a> {
    fn of(git: &Git, head: Option<&CommitId>, changes: &'a CommitFiles) -> Result<Self, CheckpointError> {
        let mut plan = Self { start_empty: false, deleted: Vec::new(), files: Vec::new(), links: Vec::new() };
        match changes {
            CommitFiles::All(nodes) => {
                plan.start_empty = true;
                for (path, node) in nodes {
                    plan.add(path, Some(node));
                }
                plan.deleted.clear();
            }
            CommitFiles::ChangedSinceParent(changes) => {
                for (path, node) in changes {
                    plan.add(path, node.as_ref());
                }
                plan.delete_only_files(git, head)?;
            }
        }
        Ok(plan)
    }

    fn add(&mut self, path: &'a FilePath, node: Option<&'a FileNode>) {
        if !name::is_storable(path) {
            return;
        }
        match node {
            Some(FileNode::File { hash, size, mode }) => {
                self.files.push((path, ContentRef { hash: *hash, size: *size }, *mode));
            }
            Some(FileNode::Symlink { target }) if name::is_storable_link(path) => {
                self.links.push((path, target))
            }
            Some(FileNode::Symlink { .. } | FileNode::Folder) | None => self.deleted.push(path),
        }
    }

    /// In git, deleting a folder deletes all that is in it; in the log, a folder's node can be removed while its
    /// files stay. So only paths are deleted at which the parent commit has a file or a link.
    fn delete_only_files(&mut self, git: &Git, head: Option<&CommitId>) -> Result<(), CheckpointError> {
        let Some(head) = head.filter(|_| !self.deleted.is_empty()) else { return Ok(()) };
        let wanted = self.deleted.iter().map(|path| path.as_str().as_bytes()).collect::<HashSet<_>>();
        let mut existing = HashSet::new();
        git.each_entry(head, &mut |_, _, path| {
            if let Some(path) = wanted.get(path) {
                existing.insert(*path);
            }
        })?;
        self.deleted.retain(|path| existing.contains(path.as_str().as_bytes()));
        Ok(())
    }
}

/// Why the stream ended early.
enum StreamError {
    Pipe(io::Error),
    Content { path: FilePath, source: ContentError },
}

impl From<io::Error> for StreamError {
    fn from(error: io::Error) -> Self {
        Self::Pipe(error)
    }
}

/// What became of a content that a file needs.
#[derive(Clone, Copy)]
enum BlobOutcome {
    /// The mark under which the commit refers to it.
    Sent(usize),
    Omitted(OmissionReason),
}

struct ImportStream<'a, 'c> {
    out: BufWriter<ChildStdin>,
    contents: &'a mut ContentSource<'c>,
    /// Every content is sent once, even if several files have it.
    marks: HashMap<ContentHash, BlobOutcome>,
    omitted: Vec<OmittedFile>,
}

impl ImportStream<'_, '_> {
    fn send(
        &mut self,
        head: Option<&CommitId>,
        request: &CommitRequest<'_>,
        mut plan: CommitPlan<'_>,
    ) -> Result<(), StreamError> {
        let mut marked = Vec::with_capacity(plan.files.len());
        for (path, content, mode) in plan.files {
            match self.blob(path, content)? {
                BlobOutcome::Sent(mark) => marked.push((path, mark, mode)),
                BlobOutcome::Omitted(reason) => {
                    self.omitted.push(OmittedFile { path: path.clone(), reason });
                    // The parent's version must not stay in place of the omitted one, nor anything below the path.
                    plan.deleted.push(path);
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
        // Deletions come first: a former file may now be a folder.
        for path in plan.deleted {
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

    /// Sends a content unless it was sent before.
    fn blob(&mut self, path: &FilePath, content: ContentRef) -> Result<BlobOutcome, StreamError> {
        if let Some(known) = self.marks.get(&content.hash) {
            return Ok(*known);
        }
        let failed = |source| StreamError::Content { path: path.clone(), source };
        let sent = match (self.contents)(&content.hash) {
            Ok(mut reader) => {
                let mark = self.marks.len() + 1;
                write!(self.out, "blob\nmark :{mark}\ndata {}\n", content.size)?;
                let sent = copy_exactly(&mut self.out, &mut *reader, content.size)?;
                writeln!(self.out)?;
                match sent {
                    Ok(()) => BlobOutcome::Sent(mark),
                    Err(error) => BlobOutcome::Omitted(omission_reason(error).map_err(failed)?),
                }
            }
            Err(error) => BlobOutcome::Omitted(omission_reason(error).map_err(failed)?),
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

/// A missing or damaged content omits one file; a storage error fails the whole checkpoint, which is retried.
fn omission_reason(error: ContentError) -> Result<OmissionReason, ContentError> {
    match error {
        ContentError::Purged(_) => Ok(OmissionReason::Purged),
        ContentError::Missing(_) => Ok(OmissionReason::Missing),
        ContentError::Damaged(_) => Ok(OmissionReason::Damaged),
        ContentError::Storage(_) => Err(error),
    }
}

/// Writes exactly `size` bytes, padded with zeros. The inner result is the reader's, the outer one the writer's.
fn copy_exactly(
    out: &mut impl Write,
    reader: &mut dyn Read,
    size: u64,
) -> io::Result<Result<(), ContentError>> {
    let mut chunk = vec![0; CHUNK];
    let mut left = size;
    let short = || ContentError::Damaged(ContentHash::default());
    let problem = loop {
        // Ask for one byte more than promised, so that the reader reaches and checks its own end.
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
    // After a storage error the stream is abandoned anyway.
    if !matches!(problem, ContentError::Storage(_)) {
        io::copy(&mut io::repeat(0).take(left), out)?;
    }
    Ok(Err(problem))
}
