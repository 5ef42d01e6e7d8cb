//! Clients that write, delete, move, undo and checkpoint as fast as they are answered, and a person with an editor.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use computer::paths::ComputerPaths;
use computer::protocol::{Choices, Envelope, Request};
use computer::socket;
use event_log::Appended;
use kernel::{Base, Choice};
use shared_types::FilePath;
use shared_types::wire::MoveBody;

use crate::bounded::in_time;
use crate::rng::Rng;

const CLIENTS: u64 = 8;

/// A command that was sent, with what it was told.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) envelope: Envelope,
    pub(crate) body: Vec<u8>,
    pub(crate) answer: Option<Appended>,
}

/// The load while it runs.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    sent: Arc<Mutex<Vec<Sent>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    pub(crate) fn start(place: &ComputerPaths, rng: &mut Rng, life: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut threads = Vec::new();
        for client in 0..CLIENTS {
            let (place, stop, sent) = (place.clone(), Arc::clone(&stop), Arc::clone(&sent));
            let mut rng = Rng::new(rng.next());
            threads.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let (request, body) = choose(&mut rng, client, life);
                    if !call(&place, request, body, &sent) {
                        return;
                    }
                }
            }));
        }
        let (workspace, stopped, mut rng) =
            (place.workspace.clone(), Arc::clone(&stop), Rng::new(rng.next()));
        threads.push(std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                let file = workspace.join(format!("edited-{}.txt", rng.below(5)));
                let _ = std::fs::write(&file, format!("{}\n", rng.next()).repeat(rng.below(50) as usize));
                std::thread::sleep(Duration::from_millis(rng.below(40)));
            }
        }));
        Self { stop, sent, threads }
    }

    /// Ends the load once the holder is dead, and returns all that was sent.
    pub(crate) fn stop(self) -> Result<Vec<Sent>> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            in_time(thread).context("a client of the dead holder")?;
        }
        Ok(std::mem::take(&mut self.sent.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// Sends one command. False when nobody answers any more.
fn call(place: &ComputerPaths, request: Request, body: Vec<u8>, sent: &Mutex<Vec<Sent>>) -> bool {
    let envelope = Envelope::new(request);
    let Ok(Some(stream)) = socket::connect(place) else { return false };
    let answer = socket::call(stream, &envelope, &mut body.as_slice(), &|_, _, _| (), &mut |_, _| ());
    let alive = answer.is_ok();
    let done = answer.ok().and_then(|answer| answer.into_done().ok());
    let told = done.and_then(|done| Some(Appended { first: done.first?, last: done.last? }));
    sent.lock().unwrap_or_else(PoisonError::into_inner).push(Sent { envelope, body, answer: told });
    alive
}

fn choose(rng: &mut Rng, client: u64, life: u64) -> (Request, Vec<u8>) {
    let path = |n: u64| FilePath::parse(&format!("c{client}/f{n}.txt"));
    let (Ok(file), Ok(other)) = (path(rng.below(8)), path(8 + rng.below(8))) else {
        return (Request::Status, Vec::new());
    };
    let choices = Choices { each: Vec::new(), others: Some(Choice::Keep) };
    match rng.below(40) {
        0..=1 => (Request::Remove { paths: vec![file] }, Vec::new()),
        2..=3 => (Request::Move { moves: vec![MoveBody { from: file, to: other }] }, Vec::new()),
        4..=5 => (Request::Undo { target: None, choices, preview: false }, Vec::new()),
        6 => (Request::Redo { target: None, choices, preview: false }, Vec::new()),
        7 if rng.below(4) == 0 => (Request::Checkpoint { message: format!("life {life}") }, Vec::new()),
        8 => {
            let large = rng.next().to_le_bytes().repeat(12_000);
            (Request::Write { path: file, mode: None, base: Base::Any }, large)
        }
        _ => {
            let text = format!("{life} {client} {}\n", rng.next()).repeat(1 + rng.below(30) as usize);
            (Request::Write { path: file, mode: None, base: Base::Any }, text.into_bytes())
        }
    }
}
