//! A computer that this process holds for as long as agents work in it, where no other process does.
//!
//! It is the same desk that a server opens, so whatever a desk starts works here as well, and other commands reach it
//! over the socket.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::desk::Desk;
use agent_host::minds::Minds;
use computer::failure::{Code, Failure};
use computer::place::Place;
use computer::session::{self, Reached};
use computer::socket;

/// The socket is open within this time, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// A desk with the threads that it needs.
#[derive(Debug)]
pub struct Host {
    desk: Desk,
    runtime: Runtime,
}

impl Host {
    /// Opens the computer, if nobody holds it. When this returns, commands find the socket.
    pub fn unless_held(
        place: &Place,
        minds: &Minds,
        progress: &dyn Fn(&str, u64, u64),
    ) -> Result<Option<Self>, Failure> {
        let computer = match session::reach(place, progress)? {
            Reached::Holder(_) => return Ok(None),
            Reached::Own(computer) => *computer,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let desk = runtime.block_on(Desk::open(computer, minds))?;
        let started = Instant::now();
        while socket::connect(place)?.is_none() {
            if started.elapsed() > PATIENCE {
                return Err(Failure::new(Code::Failed, "the socket of this computer could not be opened"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(Some(Self { desk, runtime }))
    }

    /// Lets go of the computer. Whatever agents were doing is in the log, and goes on when somebody holds it again.
    pub fn close(self) {
        let Self { desk, runtime } = self;
        runtime.block_on(desk.close());
    }
}
