//! The root of the supervision tree: it supervises computers, and reports one that cannot continue.

use std::collections::HashMap;
use std::sync::Arc;

use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use shared_types::UserId;
use tokio::sync::mpsc;

/// A handle on the root. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Application {
    root: ActorRef<ComputerOpened>,
    failed: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<UserId>>>,
}

/// A computer was opened below the root.
#[derive(Debug)]
struct ComputerOpened {
    supervisor: ActorId,
    user: UserId,
}

impl Application {
    pub async fn start() -> Result<Self, ractor::SpawnErr> {
        let (sender, failed) = mpsc::unbounded_channel();
        let (root, _) = Actor::spawn(None, Root, sender).await?;
        Ok(Self { root, failed: Arc::new(failed.into()) })
    }

    /// Waits for the next computer that cannot continue and must be opened again.
    pub async fn next_failed(&self) -> UserId {
        match self.failed.lock().await.recv().await {
            Some(user) => user,
            // The root has ended, and with it all computers.
            None => std::future::pending().await,
        }
    }

    pub(super) fn cell(&self) -> &ActorRef<impl ractor::Message> {
        &self.root
    }

    pub(super) fn opened(&self, supervisor: ActorId, user: UserId) {
        let _ = self.root.send_message(ComputerOpened { supervisor, user });
    }
}

#[derive(Debug)]
struct Root;

struct Computers {
    open: HashMap<ActorId, UserId>,
    failed: mpsc::UnboundedSender<UserId>,
}

impl Actor for Root {
    type Msg = ComputerOpened;
    type State = Computers;
    type Arguments = mpsc::UnboundedSender<UserId>;

    async fn pre_start(
        &self,
        _: ActorRef<ComputerOpened>,
        failed: Self::Arguments,
    ) -> Result<Computers, ActorProcessingErr> {
        Ok(Computers { open: HashMap::new(), failed })
    }

    async fn handle(
        &self,
        _: ActorRef<ComputerOpened>,
        ComputerOpened { supervisor, user }: ComputerOpened,
        computers: &mut Computers,
    ) -> Result<(), ActorProcessingErr> {
        computers.open.insert(supervisor, user);
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<ComputerOpened>,
        event: SupervisionEvent,
        computers: &mut Computers,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(supervisor, error) => {
                if let Some(user) = computers.open.remove(&supervisor.get_id()) {
                    tracing::error!(%user, %error, "a computer cannot continue and is opened again");
                    let _ = computers.failed.send(user);
                }
            }
            SupervisionEvent::ActorTerminated(supervisor, _, _) => {
                computers.open.remove(&supervisor.get_id());
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}
