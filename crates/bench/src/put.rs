//! `PUT` of a small file until it is acknowledged, over HTTP on one connection; against an empty route plus a bare append.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::figures::{median, milliseconds, p99_ms};
use super::history::{Prng, user};
use super::reference::{GroupCommit, Rows, recorded_rows};
use super::server::BenchServer;
use super::{CaseResult, Scale};

const SIZE: usize = 1024;
const BAR: &str = "ratio <= 2";

pub(super) fn run(scale: Scale, folder: &Path, emit: &mut dyn FnMut(&CaseResult)) -> anyhow::Result<()> {
    let (rounds, requests) = match scale {
        Scale::Full => (15, 100),
        Scale::Quick => (2, 10),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut server = runtime.block_on(BenchServer::start(&folder.join("machine"), None))?;
    let token = server.token(&user()?)?;
    let running = runtime.block_on(async { server.serve() })?;
    let mut client = Client::connect(server.port, token)?;
    let mut dice = Prng::new(1);
    // The rows of the reference are those that the same requests led to.
    for number in 0..requests {
        client.put(number, &dice.text(SIZE))?;
    }
    let state = folder.join("machine/users").join(user()?.as_str()).join(".choir");
    let rows: Vec<Rows> = recorded_rows(&state)?.into_iter().rev().take(requests).collect();
    let (mut puts, mut empties, mut appends) = (Vec::new(), Vec::new(), Vec::new());
    let mut ratios = Vec::new();
    for _ in 0..rounds {
        let put = times(requests, |number| client.put(number, &dice.text(SIZE)))?;
        let empty = times(requests, |_| client.get("/health"))?;
        let place = folder.join("reference");
        let (group_commit, thread) = GroupCommit::start(&place, rows.clone())?;
        let append = times(requests, |_| group_commit.commit_next())?;
        drop(group_commit);
        thread.join().map_err(|_| anyhow::anyhow!("a thread of the benchmark panicked"))?;
        std::fs::remove_dir_all(&place)?;
        let middle = |times: &[Duration]| median(times.iter().copied().map(milliseconds).collect());
        ratios.push(middle(&put) / (middle(&empty) + middle(&append)));
        puts.extend(put);
        empties.extend(empty);
        appends.extend(append);
    }
    drop(client);
    runtime.block_on(running.stop())?;
    let middle = |times: &[Duration]| median(times.iter().copied().map(milliseconds).collect());
    let reference = middle(&empties) + middle(&appends);
    let mut line = CaseResult::new("put", "1 KB until acknowledged", middle(&puts), reference, "ms")
        .p99(p99_ms(puts), p99_ms(empties) + p99_ms(appends));
    // What slows the machine for a while slows all of a round.
    line.ratio = super::figures::rounded(median(ratios));
    let met = line.ratio <= 2.0;
    emit(&line.bar(BAR, met));
    Ok(())
}

fn times(count: usize, mut work: impl FnMut(usize) -> anyhow::Result<()>) -> anyhow::Result<Vec<Duration>> {
    (0..count)
        .map(|number| {
            let begun = Instant::now();
            work(number)?;
            Ok(begun.elapsed())
        })
        .collect()
}

/// A connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    port: u16,
    token: String,
}

impl Client {
    fn connect(port: u16, token: String) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream), port, token })
    }

    fn put(&mut self, number: usize, bytes: &[u8]) -> anyhow::Result<()> {
        self.send("PUT", &format!("/api/v1/content?path=bench/file-{number}.txt"), bytes)
    }

    fn get(&mut self, path: &str) -> anyhow::Result<()> {
        self.send("GET", path, &[])
    }

    fn send(&mut self, method: &str, path: &str, body: &[u8]) -> anyhow::Result<()> {
        let (port, token, length) = (self.port, &self.token, body.len());
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost:{port}\r\nauthorization: Bearer {token}\r\n\
             content-length: {length}\r\n\r\n"
        )
        .into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        anyhow::ensure!(line.starts_with("HTTP/1.1 200"), "{method} {path}: {line}");
        let mut expected = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            let header = line.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(length) = header.strip_prefix("content-length:") {
                expected = length.trim().parse().context("a length")?;
            }
        }
        std::io::copy(&mut (&mut self.stream).take(expected), &mut std::io::sink())?;
        Ok(())
    }
}
