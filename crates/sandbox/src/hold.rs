//! Holding a computer open: outside edits are recorded as they happen, other commands are served over the socket,
//! and the read models and files follow the log.

use std::ops::ControlFlow;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use event_log::{EventLog, ReadError, decode_event};
use projector::Extent;
use projector::watch::{GatheredChanges, Touched, Watch};
use shared_types::{Actor, OpId, Payload, Seq};

use computer::Computer;
use computer::error::{ComputerError, ErrorCode};
use computer::socket::Server;

/// An editor's save is over when nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(150);
/// However busy the disk is, edits are recorded after this time.
const LONGEST: Duration = Duration::from_secs(2);
/// How often it is seen whether a checkpoint is due.
const TICK: Duration = Duration::from_millis(500);
/// How long an edit is waited for at most; it is waited for again.
const PATIENCE: Duration = Duration::from_secs(60);

/// Whoever follows the log rests this many times as long as it took to catch up, so that what comes in quick
/// succession is taken in together; but no longer than this.
const REST: u32 = 3;
const LONGEST_REST: Duration = Duration::from_millis(20);

/// What happens while a computer is held, for the person who watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Ready,
    Captured { edits: usize, op: String },
    Trouble(String),
}

/// Holds the computer until Ctrl-C or SIGTERM.
pub fn hold(computer: Computer, tell: &(dyn Fn(Notice) + Sync)) -> Result<(), ComputerError> {
    let computer = Arc::new(computer);
    computer.set_watched();
    computer.run_owed(&|_, _, _| ())?;
    let watch = Watch::start(&computer.place.workspace, &computer.place.state)
        .map_err(|e| ComputerError::new(ErrorCode::Failed, e.to_string()))?;
    // The watcher runs before the first scan, so nothing falls between the two.
    let from = computer.log().head().seq;
    computer.record_outside(&|_, _, _| ())?;
    let server = Server::bind(&computer.place)?;
    computer.at_end(server.stopper()?);
    end_on_signals(Arc::downgrade(&computer))?;
    tell(Notice::Ready);
    std::thread::scope(|scope| {
        scope.spawn(|| record_edits(&computer, &watch, &settle, tell));
        scope.spawn(|| follow(&computer, from, tell, &|_| ()));
        server.run(&computer, None);
        computer.end();
    });
    computer.project(&|_, _, _| ()).map(drop)
}

fn end_on_signals(computer: Weak<Computer>) -> Result<(), ComputerError> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some()
            && let Some(computer) = computer.upgrade()
        {
            computer.end();
        }
    });
    Ok(())
}

/// How long to wait for more of what another program does in a few steps.
pub(crate) fn settle(gathered: GatheredChanges) -> Duration {
    gathered.left(QUIET, LONGEST)
}

/// Outside edits, as the watcher tells of them; `settle` says when they are an operation.
pub(crate) fn record_edits(
    computer: &Computer,
    watch: &Watch,
    settle: &dyn Fn(GatheredChanges) -> Duration,
    tell: &dyn Fn(Notice),
) {
    computer.at_end(watch.releaser());
    while !computer.is_ending() {
        let extent = match watch.next_when(PATIENCE, settle) {
            Touched::Nothing => continue,
            Touched::Paths(paths) => Extent::Paths(paths),
            Touched::Everything => Extent::Everything,
        };
        if let Some(trouble) = watch.take_error() {
            tell(Notice::Trouble(trouble.to_string()));
        }
        // What was recorded is on disk already; saying so before the next edit keeps that one whole.
        let recorded = {
            let projector = computer.projector();
            let captured = projector.capture(&extent, &|_, _, _| ());
            captured.and_then(|_| projector.catch_up(&|_, _, _| ()))
        };
        if let Err(e) = recorded {
            tell(Notice::Trouble(ComputerError::from(e).message));
        }
    }
}

/// The log, as others append to it. Outside edits are told from here: whoever came across them, they are in the log.
pub(crate) fn follow(computer: &Computer, from: Seq, tell: &dyn Fn(Notice), caught_up: &dyn Fn(Seq)) {
    let (mut told, mut seen) = (from, from);
    let mut rested = Instant::now();
    while !computer.is_ending() {
        let mut head = computer.log().wait(seen, TICK);
        let mut projected = Ok(());
        if head > seen {
            std::thread::sleep(rested.saturating_duration_since(Instant::now()));
            head = computer.log().head().seq;
            let begun = Instant::now();
            projected = computer.project(&|_, _, _| ()).map(drop);
            rested = Instant::now() + (begun.elapsed() * REST).min(LONGEST_REST);
        }
        if head > told {
            match captures(computer, told, head) {
                Ok(captures) => captures.into_iter().for_each(tell),
                Err(e) => tell(Notice::Trouble(ComputerError::from(e).message)),
            }
            told = head;
        }
        match projected {
            Ok(()) => {
                seen = head;
                caught_up(head);
            }
            Err(e) => {
                tell(Notice::Trouble(e.message));
                std::thread::sleep(TICK);
            }
        }
        computer.checkpoint_if_due(&|_, _, _| ());
    }
}

/// The outside edits that were recorded after a seq, an operation each.
fn captures(computer: &Computer, after: Seq, through: Seq) -> Result<Vec<Notice>, ReadError> {
    let mut found: Vec<(OpId, usize)> = Vec::new();
    let mut failure = None;
    computer.log().scan(after.next(), &mut |stored| {
        if stored.seq > through {
            return ControlFlow::Break(());
        }
        if stored.actor == Actor::CAPTURE.as_str() {
            let edits = match decode_event(&**computer.log(), stored).map(|event| event.payload) {
                Ok(Payload::File(file)) => file.changes().len(),
                Ok(_) => 0,
                Err(e) => {
                    failure = Some(e);
                    return ControlFlow::Break(());
                }
            };
            match found.last_mut() {
                Some((op, count)) if *op == stored.op => *count += edits,
                Some(_) | None => found.push((stored.op, edits)),
            }
        }
        ControlFlow::Continue(())
    })?;
    let told = found.into_iter().map(|(op, edits)| Notice::Captured { edits, op: op.to_string() });
    failure.map_or(Ok(told.collect()), Err)
}
