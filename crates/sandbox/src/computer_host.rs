//! A computer that this process holds for as long as agents work in it, where no other process does.
//!
//! It is the same desk that a server opens, so whatever a desk starts works here as well, and other commands reach it
//! over the socket.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use crate::open_computer::OpenComputer;
use agent_host::agent_services::AgentServices;
use computer::error::{ComputerError, ErrorCode};
use computer::paths::ComputerPaths;
use computer::session::{self, ComputerAccess};
use computer::socket;

/// The socket is open within this time, or something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);

/// A desk with the threads that it needs.
#[derive(Debug)]
pub struct ComputerHost {
    desk: OpenComputer,
    runtime: Runtime,
}

impl ComputerHost {
    /// Opens the computer, if nobody holds it. When this returns, commands find the socket.
    pub fn unless_held(
        place: &ComputerPaths,
        minds: &AgentServices,
        progress: &dyn Fn(&str, u64, u64),
    ) -> Result<Option<Self>, ComputerError> {
        let computer = match session::reach(place, progress)? {
            ComputerAccess::Holder(_) => return Ok(None),
            ComputerAccess::Own(computer) => *computer,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let desk = runtime.block_on(OpenComputer::open(computer, minds))?;
        let started = Instant::now();
        while socket::connect(place)?.is_none() {
            if started.elapsed() > PATIENCE {
                return Err(ComputerError::new(
                    ErrorCode::Failed,
                    "the socket of this computer could not be opened",
                ));
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
