//! Fan-out: from the submission of a command until every open socket has its event; against a bare broadcast.
//!
//! The reference sends the same text to as many sockets of the same library from one channel: no log, no flush, no
//! guard, no resuming.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use computer::protocol::{Answer, Envelope, Request};
use futures_util::{SinkExt, StreamExt};
use hypervisor::assets::{Asset, Assets};
use hypervisor::identity::{ClientInfo, IdentityStore};
use hypervisor::server::{ServerConfig, clock};
use sandbox::machine::{Machine, MachineConfig};
use shared_types::wire::{DesktopAction, NewToken, TokenScope};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, accept_async, connect_async};

use super::figures::{median, milliseconds, p99_ms};
use super::history::user;
use super::{CaseResult, Scale};

const BAR: &str = "p99 of ours < 50 ms";
const BAR_MS: f64 = 50.0;
/// Between two events, as a busy person or a few agents make them.
const PAUSE: Duration = Duration::from_millis(10);

type Client = WebSocketStream<MaybeTlsStream<TcpStream>>;

struct NoAssets;

impl Assets for NoAssets {
    fn get(&self, _: &str) -> Option<Asset> {
        None
    }
}

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let (sockets, events) = match scale {
        Scale::Full => (100, 300),
        Scale::Quick => (10, 20),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ours = runtime.block_on(ours(folder, sockets, events))?;
    let reference = runtime.block_on(reference(sockets, events))?;
    let middle = |times: &[Duration]| median(times.iter().copied().map(milliseconds).collect());
    let line =
        CaseResult::new("fanout", format!("{sockets} sockets"), middle(&ours), middle(&reference), "ms")
            .p99(p99_ms(ours), p99_ms(reference));
    let met = line.ours_p99_ms.is_some_and(|p99| p99 < BAR_MS);
    emit(&line.bar(BAR, met));
    Ok(())
}

/// The moments at which events were sent, by their number.
type Sent = Arc<Mutex<Vec<Instant>>>;

fn mark(sent: &Sent) {
    sent.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
}

/// Reads from every socket until each has seen all events, and returns how long each took.
async fn collect(clients: Vec<Client>, sent: &Sent, events: usize) -> anyhow::Result<Vec<Duration>> {
    let (times, mut collected) = mpsc::unbounded_channel();
    for mut client in clients {
        let (times, sent) = (times.clone(), Arc::clone(sent));
        tokio::spawn(async move {
            let mut seen = 0;
            while seen < events
                && let Some(Ok(message)) = client.next().await
            {
                let Message::Text(text) = message else { continue };
                if text.contains(&format!("bench.fanout-{seen}\"")) {
                    let start = sent.lock().unwrap_or_else(PoisonError::into_inner).get(seen).copied();
                    let _ = times.send(start.map(|start| start.elapsed()));
                    seen += 1;
                }
            }
        });
    }
    drop(times);
    let mut all = Vec::new();
    while let Some(time) = collected.recv().await {
        all.push(time.context("an event was seen before it was sent")?);
    }
    Ok(all)
}

async fn ours(folder: &Path, sockets: usize, events: usize) -> anyhow::Result<Vec<Duration>> {
    let config = MachineConfig::new(ServerConfig::local(0, folder.join("machine")));
    let machine = Machine::start(&config, clock(), &user()?, "Bench", Arc::new(NoAssets), "bench").await?;
    let (port, open_computer) = (machine.port(), machine.owner_computer().await?);
    let identity = IdentityStore::open(&config.server.data, clock())?;
    let wish = NewToken { name: "bench".into(), scopes: vec![TokenScope::Read], days: Some(1) };
    let token =
        identity.make_token(&user()?, &wish, &ClientInfo::default())?.secret.context("a new token")?;
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(machine.serve(async {
        let _ = stopped.await;
    }));
    let mut clients = Vec::new();
    for _ in 0..sockets {
        let mut request = format!("ws://localhost:{port}/api/v1/socket").into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        let (mut client, _) = connect_async(request).await?;
        // The state comes first; from then on events do.
        client.next().await.context("the socket was closed")??;
        clients.push(client);
    }
    let sent = Sent::default();
    let collecting = collect(clients, &sent, events);
    let marks = Arc::clone(&sent);
    let sending = tokio::task::spawn_blocking(move || {
        for number in 0..events {
            let key = format!("bench.fanout-{number}").into();
            let request = Request::Gesture(DesktopAction::SetSetting { key, value: number.into() });
            let envelope = Envelope::new(request);
            mark(&marks);
            if let Answer::Failure(failure) =
                open_computer.computer().handle(&envelope, &mut std::io::empty(), &|_, _, _| ())
            {
                return Err(failure);
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    });
    let (times, sent) = tokio::join!(collecting, sending);
    sent??;
    drop(stop);
    serving.await??;
    times
}

async fn reference(sockets: usize, events: usize) -> anyhow::Result<Vec<Duration>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (channel, _) = broadcast::channel::<Arc<str>>(events.max(1));
    let same = channel.clone();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut texts = same.subscribe();
            tokio::spawn(async move {
                let Ok(mut socket) = accept_async(stream).await else { return };
                while let Ok(text) = texts.recv().await {
                    if socket.send(Message::text(&*text)).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut clients = Vec::new();
    for _ in 0..sockets {
        clients.push(connect_async(format!("ws://{address}")).await?.0);
    }
    let sent = Sent::default();
    let collecting = collect(clients, &sent, events);
    let sending = async {
        for number in 0..events {
            mark(&sent);
            // As long as one of our events.
            let text = format!("{{\"key\":\"bench.fanout-{number}\",\"more\":\"{}\"}}", "x".repeat(320));
            let _ = channel.send(text.into());
            tokio::time::sleep(PAUSE).await;
        }
    };
    let (times, ()) = tokio::join!(collecting, sending);
    serving.abort();
    times
}
