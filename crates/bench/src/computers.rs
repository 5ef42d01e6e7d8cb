//! What an open computer costs a server: threads and memory for each user with an open tab, and what stays after all
//! have left. The server is a process of its own; the reference is the bar.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

use super::server::BenchServer;
use super::{CaseResult, Scale};

/// Per open computer.
const THREADS: f64 = 3.0;
const MEGABYTES: f64 = 0.8;
/// Computers without a tab are closed after this time.
const IDLE_CLOSE: Duration = Duration::from_secs(3);
/// Idle threads of the runtime end after ten seconds, and the memory that was needed to open computers is given back.
const SETTLE: Duration = Duration::from_secs(15);

/// What the server tells its parent.
#[derive(Debug, Serialize, Deserialize)]
struct Serving {
    port: u16,
    tokens: Vec<String>,
}

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let users = match scale {
        Scale::Full => 200,
        Scale::Quick => 5,
    };
    let server = Server::start(folder, users)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let before = server.usage()?;
    let tabs = runtime.block_on(open_tabs(&server.serving))?;
    std::thread::sleep(SETTLE);
    let open = server.usage()?;
    drop(tabs);
    drop(runtime);
    std::thread::sleep(IDLE_CLOSE);
    let closed = server.when_settled()?;
    let each = |after: f64, before: f64| (after - before) / users as f64;
    let threads = each(open.threads, before.threads);
    let case = format!("threads, {users} users");
    let line = CaseResult::new("computers", case, threads, THREADS, "threads");
    emit(&line.bar("<= 3 threads for each open computer", threads <= THREADS));
    let memory = each(open.megabytes, before.megabytes);
    let line = CaseResult::new("computers", format!("memory, {users} users"), memory, MEGABYTES, "MB");
    emit(&line.bar("<= 0.8 MB for each open computer", memory <= MEGABYTES));
    let case = "threads after all are closed";
    emit(&CaseResult::new("computers", case, closed.threads, before.threads, "threads"));
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Usage {
    threads: f64,
    megabytes: f64,
}

struct Server {
    child: Child,
    serving: Serving,
}

impl Server {
    fn start(folder: &Path, users: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "--probe-computers"])
            .arg(folder)
            .args(["--probe-subject", &users.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().context("the server has an output")?).read_line(&mut line)?;
        let serving = serde_json::from_str(&line).context("the server did not start")?;
        std::thread::sleep(SETTLE);
        Ok(Self { child, serving })
    }

    fn usage(&self) -> anyhow::Result<Usage> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let number = |name: &str| -> anyhow::Result<f64> {
            let line =
                status.lines().find_map(|line| line.strip_prefix(name)).context("a process's status")?;
            Ok(line.trim().trim_end_matches("kB").trim().parse()?)
        };
        Ok(Usage { threads: number("Threads:")?, megabytes: number("RssAnon:")? / 1024.0 })
    }

    /// The usage once the number of threads has not fallen for a while.
    fn when_settled(&self) -> anyhow::Result<Usage> {
        let (mut last, mut since) = (self.usage()?, Instant::now());
        while since.elapsed() < SETTLE {
            std::thread::sleep(Duration::from_millis(500));
            let now = self.usage()?;
            if now.threads < last.threads {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(last)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// One tab for each user, open as long as what is returned.
async fn open_tabs(serving: &Serving) -> anyhow::Result<Vec<impl Sized + use<>>> {
    let mut tabs = Vec::new();
    for token in &serving.tokens {
        let mut request = format!("ws://localhost:{}/api/v1/socket", serving.port).into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        let (mut tab, _) = connect_async(request).await?;
        tab.next().await.context("the socket was closed")??;
        tabs.push(tab);
    }
    Ok(tabs)
}

/// The server's process: the hidden `choir bench --probe-computers DIR --probe-subject USERS`.
pub fn probe_computers(folder: &Path, users: usize) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut server = BenchServer::start(&folder.join("data"), Some(IDLE_CLOSE)).await?;
        let mut tokens = Vec::new();
        for number in 0..users {
            tokens.push(server.token(&server.invite(&format!("User {number}"))?)?);
        }
        let running = server.serve()?;
        let told = serde_json::to_string(&Serving { port: server.port, tokens })?;
        writeln!(std::io::stdout(), "{told}")?;
        tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await??;
        running.stop().await
    })
}
