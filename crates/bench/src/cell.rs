//! Cells: the cost of sandboxing against bare tools, and the cost of a large workspace against an
//! empty one. Lower is better here.

use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use computer::Computer;
use computer::paths::ComputerPaths;
use computer::protocol::{Answer, Choices, Envelope, Request};
use isolation::{Access, Backend, Command, Container, Jail, Mount, Policy, Status};
use shared_types::OpId;
use shared_types::wire::{CellCommand, CommandResult};

use super::figures::{median, milliseconds};
use super::history::user;
use super::{CaseResult, Scale};

const SMALL: usize = 10;

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let (rounds, many) = match scale {
        Scale::Full => (60, 100_000),
        Scale::Quick => (5, 1_000),
    };
    let (empty, full) = (folder.join("empty"), folder.join("full"));
    fill(&empty, 0)?;
    fill(&full, many)?;
    let cold = Jail::of_this_program();
    if let Some(line) = against(&cold, "jail: exec true, the first", rounds, &empty, bwrap)? {
        emit(&line);
    }
    // Like a server, which runs one command after the other.
    let jail = Jail::of_this_program();
    jail.keep_warm();
    if let Some(line) = against(&jail, "jail: exec true", rounds, &empty, bwrap)? {
        let met = line.ratio <= 1.5;
        emit(&line.bar("ratio to bwrap ≤ 1.5", met));
    }
    let container = Container::of_this_program();
    if container.probe().obstacle().is_none() {
        let bundle = bundle(folder)?;
        let bare = |round: usize| runc(&bundle, round);
        if let Some(line) = against(&container, "container: exec true", rounds / 2 + 1, &empty, bare)? {
            let met = line.ratio <= 2.0;
            emit(&line.bar("ratio to runc ≤ 2", met));
        }
    }
    emit(&start(&jail, rounds, &empty, &full, many)?);
    emit(&capture(folder, rounds / 5 + 2, many)?);
    emit(&undo(folder, rounds / 10 + 2)?);
    Ok(())
}

/// Small files, a hundred to a folder.
fn fill(folder: &Path, count: usize) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    for number in 0..count {
        let inside = folder.join(format!("d{}", number / 100));
        if number % 100 == 0 {
            std::fs::create_dir(&inside)?;
        }
        std::fs::write(inside.join(format!("f{number}.txt")), format!("the text of file {number}\n"))?;
    }
    Ok(())
}

/// Creates a cell over a folder, runs a command in it, and removes it.
fn cell(backend: &dyn Backend, workspace: &Path) -> anyhow::Result<Duration> {
    let scratch = tempfile::tempdir_in(workspace.parent().context("no folder")?)?;
    let layer = |name: &str| scratch.path().join(name);
    let access = Access::Layered { upper: layer("upper"), work: layer("work") };
    let policy = Policy::for_workspace(Mount::workspace(workspace, access), "bench");
    let started = Instant::now();
    let cell = backend.start(&policy, scratch.path())?;
    let exit = cell.exec(&Command::new(["/bin/true"]), &mut |_, _| ())?;
    cell.stop();
    let elapsed = started.elapsed();
    ensure!(exit.status == Status::Exited(0), "true ended with {:?}", exit.status);
    isolation::layer::remove(scratch.path())?;
    Ok(elapsed)
}

/// Measures ours and a bare tool in turns. `None` if the tool is not installed.
fn against(
    backend: &dyn Backend,
    case: &str,
    rounds: usize,
    workspace: &Path,
    bare: impl Fn(usize) -> Option<Duration>,
) -> anyhow::Result<Option<CaseResult>> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        ours.push(milliseconds(cell(backend, workspace)?));
        let Some(time) = bare(round) else { return Ok(None) };
        theirs.push(milliseconds(time));
    }
    Ok(Some(CaseResult::new("cell", case, median(ours), median(theirs), "ms")))
}

fn timed(program: &mut Program) -> Option<Duration> {
    let started = Instant::now();
    let status = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    status.success().then(|| started.elapsed())
}

fn bwrap(_: usize) -> Option<Duration> {
    timed(Program::new("bwrap").args(["--unshare-all", "--ro-bind", "/", "/", "true"]))
}

/// A minimal bundle for a container runtime: its defaults over the host's programs.
fn bundle(folder: &Path) -> anyhow::Result<PathBuf> {
    let bundle = folder.join("bundle");
    for name in ["usr", "proc", "dev"] {
        std::fs::create_dir_all(bundle.join("rootfs").join(name))?;
    }
    for name in ["bin", "lib", "lib64"] {
        let _ = std::os::unix::fs::symlink(format!("usr/{name}"), bundle.join("rootfs").join(name));
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let made = Program::new("runc")
        .arg("spec")
        .current_dir(&bundle)
        .env("PATH", format!("{path}:/usr/sbin"))
        .status();
    ensure!(made.is_ok_and(|status| status.success()), "runc makes no bundle");
    let config = bundle.join("config.json");
    let mut spec: serde_json::Value = serde_json::from_slice(&std::fs::read(&config)?)?;
    spec["process"]["args"] = serde_json::json!(["true"]);
    spec["process"]["terminal"] = false.into();
    // Without privileges a limit can only be lowered.
    spec["process"]["rlimits"] = serde_json::json!([]);
    let programs = serde_json::json!({ "destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"] });
    spec["mounts"].as_array_mut().context("a bundle without mounts")?.push(programs);
    std::fs::write(&config, serde_json::to_vec(&spec)?)?;
    Ok(bundle)
}

fn runc(bundle: &Path, round: usize) -> Option<Duration> {
    let path = std::env::var("PATH").unwrap_or_default();
    let name = format!("choir-bench-{}-{round}", std::process::id());
    timed(
        Program::new("runc")
            .args(["run", "--bundle"])
            .arg(bundle)
            .arg(name)
            .env("PATH", format!("{path}:/usr/sbin")),
    )
}

fn start(jail: &Jail, rounds: usize, empty: &Path, full: &Path, many: usize) -> anyhow::Result<CaseResult> {
    let (mut large, mut small) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        large.push(milliseconds(cell(jail, full)?));
        small.push(milliseconds(cell(jail, empty)?));
    }
    let case = format!("start over {many} files");
    let line = CaseResult::new("cell", case, median(large), median(small), "ms");
    let met = line.ratio <= 1.2;
    Ok(line.bar("within 20% of an empty workspace", met))
}

/// A computer over a folder of files.
struct BenchComputer {
    computer: Computer,
}

impl BenchComputer {
    fn new(folder: &Path, files: usize) -> anyhow::Result<Self> {
        fill(folder, files)?;
        let (computer, _) = Computer::create(&ComputerPaths::at(folder), user()?, "Bench", &|_, _, _| ())?;
        Ok(Self { computer })
    }

    fn ask(&self, request: Request) -> anyhow::Result<(Answer, Duration)> {
        let envelope = Envelope::new(request);
        let started = Instant::now();
        let answer = self.computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
        let elapsed = started.elapsed();
        if let Answer::Failure(failure) = &answer {
            bail!("{failure}");
        }
        Ok((answer, elapsed))
    }

    fn sh(&self, script: String, dry: bool) -> anyhow::Result<CommandResult> {
        let argv = vec!["/bin/sh".into(), "-c".into(), script];
        let (answer, _) =
            self.ask(Request::RunCommand(CellCommand { argv, dry, ..CellCommand::default() }))?;
        let Answer::CommandResult(ran) = answer else { bail!("no command ran: {answer:?}") };
        Ok(*ran)
    }
}

/// The time from the end of a command to its changes in the log and on disk, measured by accepting a dry run.
fn capture(folder: &Path, rounds: usize, many: usize) -> anyhow::Result<CaseResult> {
    let computers =
        [BenchComputer::new(&folder.join("many"), many)?, BenchComputer::new(&folder.join("few"), SMALL)?];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (computer, times) in computers.iter().zip(&mut times) {
            let script = format!("for i in 0 1 2 3 4 5 6 7 8 9; do echo {round} >> d0/f$i.txt; done");
            let held = computer.sh(script, true)?;
            ensure!(held.done.total == SMALL as u64, "{} changes", held.done.total);
            let (_, elapsed) = computer.ask(Request::Accept { call: held.op.to_string() })?;
            times.push(milliseconds(elapsed));
        }
    }
    let [large, small] = times;
    let line =
        CaseResult::new("cell", format!("capture {SMALL} of {many}"), median(large), median(small), "ms");
    let met = line.ours < 50.0;
    Ok(line.bar("ours < 50 ms", met))
}

/// Undo of a command that deleted a thousand files, against writing them directly.
fn undo(folder: &Path, rounds: usize) -> anyhow::Result<CaseResult> {
    const FILES: usize = 1_000;
    let computer = BenchComputer::new(&folder.join("undo"), FILES)?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let ran = computer.sh("rm -rf d*".into(), false)?;
        ensure!(ran.done.total == FILES as u64, "{} changes", ran.done.total);
        ours.push(milliseconds(computer.undo(ran.op)?));
        let by_hand = folder.join(format!("by-hand-{round}"));
        let started = Instant::now();
        fill(&by_hand, FILES)?;
        rustix::fs::syncfs(std::fs::File::open(&by_hand)?)?;
        bare.push(milliseconds(started.elapsed()));
    }
    let line =
        CaseResult::new("cell", format!("undo rm -rf {FILES} files"), median(ours), median(bare), "ms");
    let met = line.ours < 500.0;
    Ok(line.bar("ours < 500 ms", met))
}

impl BenchComputer {
    fn undo(&self, op: OpId) -> anyhow::Result<Duration> {
        let choices = Choices::default();
        Ok(self.ask(Request::Undo { target: Some(op.to_string()), choices, preview: false })?.1)
    }
}
