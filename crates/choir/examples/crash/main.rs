//! Kills the real `choir` process with SIGKILL at random moments under load, opens it again and checks that every
//! acknowledged command is in the log exactly once and that `choir verify` passes.
//!
//! `cargo xtask crash --points N [--seed S]` runs it. A failure keeps the folder and prints the seed and the point.

mod bounded;
mod load;
mod rng;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bounded::{LIMIT, Process, in_time};
use clap::Parser;
use computer::paths::ComputerPaths;
use computer::socket;
use event_log::{EventLog, SqliteLog};
use load::{Load, Sent};
use rng::Rng;

#[derive(Debug, Parser)]
struct Args {
    #[arg(long)]
    points: u64,
    #[arg(long)]
    seed: Option<u64>,
    /// The program to kill
    #[arg(long)]
    binary: PathBuf,
}

/// A computer lives through this many crashes before a new one is made.
const LIVES: u64 = 12;

fn main() -> ExitCode {
    let args = Args::parse();
    let seed = args.seed.unwrap_or_else(|| computer::ids::now().millis().unsigned_abs());
    println!("crash: {} points, seed {seed}", args.points);
    match run(&args, seed) {
        Ok(totals) => {
            println!("crash: {} passed, 0 failed ({totals})", args.points);
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("crash: failed with --seed {seed}: {e:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, Default)]
struct Totals {
    acknowledged: usize,
    unanswered: usize,
    recovered: usize,
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { acknowledged, unanswered, recovered } = self;
        write!(
            f,
            "{acknowledged} acknowledged, {unanswered} unanswered of which {recovered} had taken effect whole"
        )
    }
}

fn run(args: &Args, seed: u64) -> Result<Totals> {
    let mut rng = Rng::new(seed);
    let mut totals = Totals::default();
    let mut home: Option<Home> = None;
    let started = Instant::now();
    for point in 1..=args.points {
        if point % LIVES == 1 || home.is_none() {
            home = Some(Home::make(&args.binary, &mut rng)?);
        }
        let Some(home) = home.as_mut() else { bail!("no computer") };
        let lived = home.live_and_die(&mut rng, &mut totals);
        if let Err(e) = lived {
            let kept = home.keep();
            return Err(e.context(format!("at point {point}; the folder is kept at {}", kept.display())));
        }
        if point % 50 == 0 || point == args.points {
            println!("crash: {point}/{} after {:.0} s", args.points, started.elapsed().as_secs_f64());
        }
    }
    Ok(totals)
}

struct Home {
    folder: Option<tempfile::TempDir>,
    place: ComputerPaths,
    binary: PathBuf,
    /// Everything that was ever acknowledged here, with its answer.
    acknowledged: Vec<Sent>,
    lives: u64,
}

impl Home {
    fn make(binary: &Path, rng: &mut Rng) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("choir-crash-").tempdir()?;
        let workspace = folder.path().canonicalize()?.join("w");
        std::fs::create_dir(&workspace)?;
        for n in 0..rng.below(20) {
            std::fs::write(workspace.join(format!("old-{n}.txt")), format!("{n}\n").repeat(20))?;
        }
        let place = ComputerPaths::at(&workspace);
        let init = Command::new(binary).arg("init").arg(&workspace).stdout(Stdio::null()).spawn()?;
        ensure!(Process(init).end()?.success(), "init failed");
        Ok(Self {
            folder: Some(folder),
            place,
            binary: binary.to_owned(),
            acknowledged: Vec::new(),
            lives: 0,
        })
    }

    fn keep(&mut self) -> PathBuf {
        self.folder.take().map(tempfile::TempDir::keep).unwrap_or_else(|| self.place.workspace.clone())
    }

    fn live_and_die(&mut self, rng: &mut Rng, totals: &mut Totals) -> Result<()> {
        self.lives += 1;
        let mut sent = if rng.below(5) == 0 { self.kill_a_command(rng)? } else { self.kill_a_holder(rng)? };
        self.check_log(&sent, totals)?;
        self.verify()?;
        self.acknowledged.extend(sent.extract_if(.., |s| s.answer.is_some()));
        self.check_resend()
    }

    /// Clients load a holder until it is killed.
    fn kill_a_holder(&self, rng: &mut Rng) -> Result<Vec<Sent>> {
        let holder = self.start_holder()?;
        let load = Load::start(&self.place, rng, self.lives);
        // Short lives find start-up and the first commits, long ones find snapshots, checkpoints and projections.
        let millis = if rng.below(3) == 0 { rng.below(600) } else { rng.below(120) };
        std::thread::sleep(Duration::from_millis(millis));
        holder.kill()?;
        load.stop()
    }

    /// A command that holds the computer itself is killed in the middle.
    fn kill_a_command(&self, rng: &mut Rng) -> Result<Vec<Sent>> {
        for _ in 0..3 {
            let file = format!("direct-{}.txt", rng.below(10));
            let child = Command::new(&self.binary)
                .args(["-C"])
                .arg(&self.place.workspace)
                .args(if rng.below(4) == 0 { vec!["checkpoint", "-m", "x"] } else { vec!["write", &file] })
                .stdin(Stdio::from(std::fs::File::open(&self.binary)?))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()?;
            std::thread::sleep(Duration::from_millis(rng.below(120)));
            Process(child).kill()?;
        }
        Ok(Vec::new())
    }

    fn start_holder(&self) -> Result<Process> {
        let mut child = Command::new(&self.binary)
            .arg("-C")
            .arg(&self.place.workspace)
            .args(["watch", "--json"])
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()?;
        let out = child.stdout.take().context("no output")?;
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if line.contains("\"ready\"") {
                    let _ = ready.send(());
                }
            }
        });
        let holder = Process(child);
        if is_ready.recv_timeout(LIMIT).is_err() {
            bail!("the holder did not start: {}", holder.what_it_does());
        }
        Ok(holder)
    }

    /// Every acknowledged command is in the log with the range it was told; every other one is there whole or not at
    /// all; no event is there twice.
    fn check_log(&self, sent: &[Sent], totals: &mut Totals) -> Result<()> {
        let log = SqliteLog::open_read_only(&self.place.state)?;
        let mut ids = std::collections::HashSet::new();
        let mut ops = std::collections::HashMap::new();
        log.scan(shared_types::Seq(1), &mut |stored| {
            ids.insert(stored.id);
            ops.insert(stored.seq, stored.op);
            std::ops::ControlFlow::Continue(())
        })?;
        let head = log.head().seq;
        ensure!(ids.len() as u64 == head.0, "{} different events in {head} places", ids.len());
        for sent in self.acknowledged.iter().chain(sent) {
            let found = log.answer(sent.envelope.command)?;
            match (sent.answer, found) {
                (Some(told), Some(found)) => {
                    ensure!(told == found, "{:?} was told {told:?}, found {found:?}", sent.envelope)
                }
                (Some(told), None) => bail!("acknowledged as {told:?} and lost: {:?}", sent.envelope),
                (None, Some(_)) => totals.recovered += 1,
                (None, None) => {}
            }
            if let Some(found) = found {
                for seq in found.first.0..=found.last.0 {
                    let op = ops.get(&shared_types::Seq(seq));
                    ensure!(op == Some(&sent.envelope.op), "event {seq} is not of {:?}", sent.envelope.op);
                }
            }
        }
        totals.acknowledged += sent.iter().filter(|s| s.answer.is_some()).count();
        totals.unanswered += sent.iter().filter(|s| s.answer.is_none()).count();
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        let (said, told) = (tempfile::NamedTempFile::new()?, tempfile::NamedTempFile::new()?);
        let verify = Command::new(&self.binary)
            .arg("-C")
            .arg(&self.place.workspace)
            .args(["verify", "--json"])
            .stdout(said.reopen()?)
            .stderr(told.reopen()?)
            .spawn()?;
        let ended = Process(verify).end().context("verify")?;
        let text = |file: &tempfile::NamedTempFile| std::fs::read_to_string(file.path());
        ensure!(ended.success(), "verify: {} {}", text(&said)?, text(&told)?);
        Ok(())
    }

    /// A resend of an old command gets the first answer and adds nothing.
    fn check_resend(&self) -> Result<()> {
        let Some(old) = self.acknowledged.last() else { return Ok(()) };
        let holder = self.start_holder()?;
        let stream = socket::connect(&self.place)?.context("the holder does not listen")?;
        let again = old.clone();
        let resend = std::thread::spawn(move || {
            let body = &mut again.body.as_slice();
            socket::call(stream, &again.envelope, body, &|_, _, _| (), &mut |_, _| ())
        });
        let answer = in_time(resend).with_context(|| format!("a resend: {}", holder.what_it_does()))?;
        holder.kill()?;
        let done = answer?.into_done()?;
        let range = done.first.zip(done.last);
        let told = old.answer.map(|a| (a.first, a.last));
        ensure!(done.resent && range == told, "a resend was answered {done:?} instead of {told:?}");
        Ok(())
    }
}
