//! Holding a computer open: outside edits are recorded as they happen, other commands are served over the socket,
//! and the read models and files follow the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use event_log::EventLog;
use projector::Extent;
use projector::watch::{Touched, Watch};

use crate::computer::Computer;
use crate::failure::{Code, Failure};
use crate::socket::Server;

/// An editor's save is over when nothing has happened for this long.
const QUIET: Duration = Duration::from_millis(150);
/// How often a waiting loop looks whether it should end, and whether a checkpoint is due.
const TICK: Duration = Duration::from_millis(500);

/// What happens while a computer is held, for the person who watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    Ready,
    Captured { edits: usize, op: String },
    Trouble(String),
}

/// Holds the computer until Ctrl-C, SIGTERM, or until `stop` is set.
pub fn hold(computer: Computer, tell: &(dyn Fn(Notice) + Sync)) -> Result<(), Failure> {
    let computer = Arc::new(computer);
    computer.set_watched();
    computer.run_owed(&|_, _, _| ())?;
    let watch = Watch::start(&computer.place.workspace, &computer.place.state)
        .map_err(|e| Failure::new(Code::Failed, e.to_string()))?;
    // The watcher runs before the first scan, so nothing falls between the two.
    let first = computer.record_outside(&|_, _, _| ())?;
    let server = Server::bind(&computer.place)?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = server.stopper()?;
    end_on_signals(Arc::clone(&stop), stopper)?;
    tell(Notice::Ready);
    if let Some(op) = first.op {
        tell(Notice::Captured { edits: first.edits, op: op.to_string() });
    }
    std::thread::scope(|scope| {
        scope.spawn(|| record_edits(&computer, &watch, &stop, tell));
        scope.spawn(|| follow(&computer, &stop, tell));
        server.run(&computer);
        stop.store(true, Ordering::Relaxed);
    });
    computer.project(&|_, _, _| ()).map(drop)
}

fn end_on_signals(stop: Arc<AtomicBool>, stopper: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stop.store(true, Ordering::Relaxed);
            stopper();
        }
    });
    Ok(())
}

/// Outside edits, as the watcher tells of them.
fn record_edits(computer: &Computer, watch: &Watch, stop: &AtomicBool, tell: &(dyn Fn(Notice) + Sync)) {
    while !stop.load(Ordering::Relaxed) {
        let extent = match watch.next(TICK, QUIET) {
            Touched::Nothing => continue,
            Touched::Paths(paths) => Extent::Paths(paths),
            Touched::Everything => Extent::Everything,
        };
        if let Some(trouble) = watch.take_trouble() {
            tell(Notice::Trouble(trouble.to_string()));
        }
        let captured = {
            let projector = computer.projector();
            projector.capture(&extent, &|_, _, _| ())
        };
        match captured {
            Ok(captured) => {
                if let Some(op) = captured.op {
                    tell(Notice::Captured { edits: captured.edits, op: op.to_string() });
                }
            }
            Err(e) => tell(Notice::Trouble(Failure::from(e).message)),
        }
    }
}

/// The log, as others append to it.
fn follow(computer: &Computer, stop: &AtomicBool, tell: &(dyn Fn(Notice) + Sync)) {
    let mut seen = computer.log().head().seq;
    while !stop.load(Ordering::Relaxed) {
        let head = computer.log().wait(seen, TICK);
        if head > seen {
            match computer.project(&|_, _, _| ()) {
                Ok(_) => seen = head,
                Err(e) => {
                    tell(Notice::Trouble(e.message));
                    std::thread::sleep(TICK);
                }
            }
        }
        computer.checkpoint_if_due(&|_, _, _| ());
    }
}
