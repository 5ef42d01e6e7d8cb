//! A fuzzer for what comes from outside: events, archives, paths, names and ids.
//!
//! It runs on stable. Every case is made from one number, so a failure is repeated with `--seed N --iterations 1`; the
//! input that failed is also written to the temporary folder. A case fails by a panic, by a broken promise, by taking
//! longer than it may, or by making the process larger than it may.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a fuzzer fails by panicking")]

#[path = "fuzz/archives.rs"]
mod archives;
#[path = "fuzz/events.rs"]
mod events;
#[path = "fuzz/random.rs"]
mod random;
#[allow(dead_code, reason = "shared with the tests, which use more of it")]
#[path = "../../archive/tests/archive/repack.rs"]
mod repack;
#[path = "fuzz/texts.rs"]
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use clap::Parser;

use random::Random;

/// How long one case may take, and how large it may make the process.
const PATIENCE: Duration = Duration::from_secs(20);
const MEMORY: u64 = 1 << 30;

/// Mutated events, archives and names against the code that reads them
#[derive(Debug, Parser)]
#[command(after_help = "Example:\n  cargo run --release --example fuzz -- --seconds 60")]
struct Args {
    /// How long
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// The first case; by default the time
    #[arg(long)]
    seed: Option<u64>,
    /// How many cases at most
    #[arg(long)]
    iterations: Option<u64>,
}

/// The case that is being tried, for whoever has to report it.
struct Current {
    seed: u64,
    kind: &'static str,
    input: Vec<u8>,
    since: Instant,
}

static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

/// Notes the input of this case before it is tried.
fn trying(seed: u64, kind: &'static str, input: &[u8]) {
    let current = Current { seed, kind, input: input.to_vec(), since: Instant::now() };
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(current);
}

/// Ends the process with all that is needed to repeat the failure.
fn fail(reason: &str) -> ! {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Current { seed, kind, input, .. }) = &*current {
        let file = std::env::temp_dir().join(format!("choir-fuzz-{kind}-{seed}"));
        let written = std::fs::write(&file, input);
        eprintln!("FAILED: {kind}: {reason}");
        eprintln!("repeat: --seed {seed} --iterations 1");
        eprintln!("input: {} ({written:?})", file.display());
    }
    std::process::exit(1)
}

fn main() {
    let args = Args::parse();
    let seconds = Duration::from_secs(args.seconds);
    let first = args.seed.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap_or_default().as_nanos() as u64 >> 8
    });
    std::thread::spawn(watch);
    let fixtures = events::Fixtures::read(&fixtures_folder());
    let archives = archives::Archives::new();
    println!("seed {first}, {} s", args.seconds);

    let start = Instant::now();
    let mut count = [0_u64; 3];
    let mut seed = first;
    let mut accepted = 0_u64;
    while start.elapsed() < seconds && args.iterations.is_none_or(|most| seed.wrapping_sub(first) < most) {
        let mut random = Random::new(seed);
        let kind = random.below(10);
        let outcome = catch_unwind(AssertUnwindSafe(|| match kind {
            0..4 => fixtures.case(seed, &mut random).map(|()| false),
            4 => texts::case(seed, &mut random).map(|()| false),
            _ => archives.case(seed, &mut random),
        }));
        match outcome {
            Ok(Ok(taken)) => accepted += u64::from(taken),
            Ok(Err(broken)) => fail(&broken),
            Err(_) => fail("it panicked"),
        }
        count[match kind {
            0..4 => 0,
            4 => 1,
            _ => 2,
        }] += 1;
        seed = seed.wrapping_add(1);
    }
    let [events, texts, archives] = count;
    println!(
        "{} cases in {:.1} s: {events} of events, {texts} of names, {archives} of archives ({accepted} harmless)",
        events + texts + archives,
        start.elapsed().as_secs_f64()
    );
}

/// Stops a case that takes too long or too much.
fn watch() {
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let late = CURRENT
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_some_and(|current| current.since.elapsed() > PATIENCE);
        if late {
            fail("it does not come to an end");
        }
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let resident: u64 = pages.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or_default();
        if resident * 4096 > MEMORY {
            fail("it takes too much memory");
        }
    }
}

fn fixtures_folder() -> PathBuf {
    let here = std::env::current_dir().unwrap_or_default();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = here.ancestors().chain(crates.ancestors()).map(|folder| folder.join("fixtures/events/v1"));
    folders.into_iter().find(|folder| folder.is_dir()).expect("the frozen events are in fixtures/events/v1")
}
