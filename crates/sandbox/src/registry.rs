//! The computers of this machine, opened when somebody reaches for theirs.
//!
//! A computer is found by the id of its user and by nothing else, and only the guard asks, for the principal that it
//! found: no request can name another's.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use shared_types::UserId;
use tokio::sync::{Mutex, OnceCell};

use crate::computer::Computer;
use crate::desk::Desk;
use crate::failure::{Code, Failure};
use crate::place::{Place, STATE, WORKSPACE};
use crate::{session, welcome};

/// All computers that are open.
#[derive(Debug)]
pub struct Registry {
    users: PathBuf,
    open: Mutex<HashMap<UserId, Arc<OnceCell<Desk>>>>,
}

impl Registry {
    /// Computers below a data folder.
    pub fn new(data: &std::path::Path) -> Self {
        Self { users: data.join("users"), open: Mutex::default() }
    }

    /// Where a user's computer is.
    pub fn place(&self, user: &UserId) -> Place {
        let home = self.users.join(user.as_str());
        Place { state: home.join(STATE), workspace: home.join(WORKSPACE) }
    }

    /// A user's computer, opened if it is not, made if there is none.
    pub async fn desk(&self, user: &UserId, name: &str) -> Result<Desk, Failure> {
        let cell = Arc::clone(self.open.lock().await.entry(user.clone()).or_default());
        let (place, user, name) = (self.place(user), user.clone(), name.to_owned());
        let opened = cell.get_or_try_init(|| async move {
            let opened = tokio::task::spawn_blocking(move || open(&place, user, &name));
            let computer = opened
                .await
                .map_err(|e| Failure::new(Code::Failed, format!("the computer did not open: {e}")))??;
            Desk::open(computer).await
        });
        opened.await.cloned()
    }

    /// The computers that are open now.
    pub async fn desks(&self) -> Vec<Desk> {
        self.open.lock().await.values().filter_map(|cell| cell.get().cloned()).collect()
    }

    /// Closes all of them.
    pub async fn close(&self) {
        for desk in self.desks().await {
            desk.close().await;
        }
    }
}

fn open(place: &Place, user: UserId, name: &str) -> Result<Computer, Failure> {
    if place.exists() {
        return session::take(place);
    }
    std::fs::create_dir_all(&place.workspace)?;
    let (computer, _) = Computer::create(place, user, name, &|_, _, _| ())?;
    welcome::prepare(&computer)?;
    Ok(computer)
}
