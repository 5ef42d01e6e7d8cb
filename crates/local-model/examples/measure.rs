//! Measures the local model on this machine: start, memory, speed with and without a grammar, and the prefix cache.
//!
//! `cargo run --release -p local-model --example measure -- <weights.gguf> [threads] [--fetch]`

use std::path::Path;
use std::time::{Duration, Instant};

use local_model::weights::{
    DownloadConsent, DownloadProgress, WeightsAvailability, WeightsManifest, WeightsStore,
};
use local_model::{LocalModelRunner, RunnerOptions, RunnerStatus, ThreadCount};
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

/// The context size in the catalog of `models`.
const CONTEXT: usize = 8192;

fn main() -> Result<(), Failure> {
    if let Some(code) = local_model::run_if_child() {
        std::process::exit(code);
    }
    tokio::runtime::Runtime::new()?.block_on(measure())
}

async fn measure() -> Result<(), Failure> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let may_fetch =
        arguments.iter().position(|argument| argument == "--fetch").map(|at| arguments.remove(at));
    let weights = arguments.first().ok_or("which weights?")?;
    if may_fetch.is_some() {
        fetch(Path::new(weights)).await?;
    }
    let mut options = RunnerOptions::new(weights, CONTEXT);
    if let Some(threads) = arguments.get(1) {
        options.threads = ThreadCount::Fixed(threads.parse()?);
    }
    println!("load {}", std::fs::read_to_string("/proc/loadavg")?.trim());
    let runner = LocalModelRunner::new(options);
    let began = Instant::now();
    let lease = runner.acquire().await?;
    println!("{} threads, start {:.1} s", lease.threads(), began.elapsed().as_secs_f64());
    let RunnerStatus::Ready { pid } = *runner.status().borrow() else { return Err("not ready".into()) };
    memory(pid)?;
    let busy = cpu_seconds(pid)?;
    let measured = local_model::speed::measure_speed(&runner).await?;
    println!("speed {:.1} tok/s prefill, {:.1} tok/s decode", measured.speed.prefill, measured.speed.decode);
    println!("{:.1} s of processor for 96 tokens read and 12 written", cpu_seconds(pid)? - busy);

    let client = reqwest::Client::new();
    let ask = async |name: &str, body: Value| -> Result<Value, Failure> {
        let (began, busy) = (Instant::now(), cpu_seconds(pid)?);
        let request =
            client.post(format!("{}/chat/completions", lease.base_url())).bearer_auth(lease.bearer());
        let request = request.header("content-type", "application/json").body(body.to_string());
        let text = request.send().await?.text().await?;
        let answer: Value = serde_json::from_str(&text)?;
        let (took, timings) = (began.elapsed(), &answer["timings"]);
        let message = &answer["choices"][0]["message"];
        let said = if message["content"].is_null() {
            &message["tool_calls"][0]["function"]
        } else {
            &message["content"]
        };
        println!(
            "[{name}] {:.1} s, {:.1} s of processor; {}; {said}",
            took.as_secs_f64(),
            cpu_seconds(pid)? - busy,
            figures(timings)
        );
        Ok(answer)
    };
    let user = |text: &str| json!({ "role": "user", "content": text });
    ask("free", json!({ "max_tokens": 80, "messages": [user("Write two sentences about what an operating system does.")] })).await?;
    let schema = json!({ "type": "object", "required": ["title", "priority", "tags"], "properties": {
        "title": { "type": "string", "maxLength": 60 },
        "priority": { "enum": ["low", "normal", "high"] },
        "tags": { "type": "array", "items": { "type": "string", "maxLength": 20 }, "maxItems": 3 } } });
    let format = json!({ "type": "json_schema", "json_schema": { "name": "task", "schema": schema } });
    let question = "Make a JSON task from: \"urgent: fix the login page bug before Friday\"";
    ask("schema", json!({ "messages": [user(question)], "response_format": format })).await?;

    // The steps of an agent: each prompt extends the previous one.
    let mut messages = vec![
        json!({ "role": "system", "content": "You are an agent that works in a folder of files. Do one step at a time." }),
        user("Which licence does this project have? Say it in one sentence."),
    ];
    for (step, result) in ["README.md\nLICENSE.txt\nsrc", "MIT License\n\nCopyright (c) 2026 The authors", ""]
        .iter()
        .enumerate()
    {
        let answer = ask(&format!("step {step}"), json!({ "messages": messages, "tools": tools(), "tool_choice": if step < 2 { "required" } else { "auto" } })).await?;
        let message = answer["choices"][0]["message"].clone();
        let call = message["tool_calls"][0]["id"].clone();
        if call.is_null() {
            break;
        }
        messages.push(message);
        messages.push(json!({ "role": "tool", "tool_call_id": call, "content": result }));
    }
    memory(pid)?;

    // A client disconnects during an answer; the next one waits for at most one pass.
    let body = json!({ "stream": true, "messages": [user("Count to one thousand, one number a line.")] })
        .to_string();
    let request = client.post(format!("{}/chat/completions", lease.base_url())).bearer_auth(lease.bearer());
    let mut stream = request.header("content-type", "application/json").body(body).send().await?;
    for _ in 0..5 {
        stream.chunk().await?;
    }
    drop(stream);
    ask("after one who left", json!({ "max_tokens": 1, "messages": [user("Hi")] })).await?;

    // A crash is detected, and the next request restarts the child.
    let mut status = runner.status();
    std::process::Command::new("kill").args(["-9", &pid.to_string()]).status()?;
    tokio::time::timeout(
        Duration::from_secs(5),
        status.wait_for(|status| matches!(status, RunnerStatus::Stopped(_))),
    )
    .await??;
    println!("killed: {:?}, lease broken: {}", *runner.status().borrow(), lease.is_broken());
    let began = Instant::now();
    runner.acquire().await?;
    println!("start again {:.1} s", began.elapsed().as_secs_f64());
    runner.stop().await;
    println!(
        "stopped: {:?}; load {}",
        *runner.status().borrow(),
        std::fs::read_to_string("/proc/loadavg")?.trim()
    );
    Ok(())
}

async fn fetch(weights: &Path) -> Result<(), Failure> {
    let store = WeightsStore::new(weights.parent().ok_or("no folder")?);
    let manifest = WeightsManifest::qwen_coder();
    if let WeightsAvailability::Offered(offer) | WeightsAvailability::Declined(offer) =
        store.availability(&manifest)
    {
        println!("{offer}");
        let began = Instant::now();
        let on_progress = |progress| {
            if let DownloadProgress::Downloading { done, total } = progress
                && done % (100 << 20) < (1 << 16)
            {
                println!("{done} of {total}");
            }
        };
        store.fetch(&manifest, &DownloadConsent::to(&offer), on_progress).await?;
        println!("fetched in {:.1} s", began.elapsed().as_secs_f64());
    }
    Ok(())
}

fn figures(timings: &Value) -> String {
    format!(
        "{} cached + {} read at {:.1} tok/s, {} written at {:.1} tok/s",
        timings["cache_n"],
        timings["prompt_n"],
        timings["prompt_per_second"].as_f64().unwrap_or(0.0),
        timings["predicted_n"],
        timings["predicted_per_second"].as_f64().unwrap_or(0.0),
    )
}

/// The processor time of a process, which measures the cost of an answer even on a busy machine.
fn cpu_seconds(pid: u32) -> Result<f64, Failure> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(ticks as f64 / 100.0)
}

fn memory(pid: u32) -> Result<(), Failure> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let lines =
        status.lines().filter(|line| ["VmPeak", "VmHWM", "VmRSS"].iter().any(|key| line.starts_with(key)));
    println!(
        "{}",
        lines
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
            .join("; ")
    );
    Ok(())
}

fn tools() -> Value {
    let tool = |name: &str, about: &str, properties: Value, required: Value| {
        let parameters = json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        json!({ "type": "function", "function": { "name": name, "description": about, "parameters": parameters } })
    };
    let path = json!({ "type": "string" });
    json!([
        tool("list", "Names of the files in a folder.", json!({ "path": path }), json!(["path"])),
        tool(
            "read",
            "The text of a file.",
            json!({ "path": path, "from_line": { "type": "integer" } }),
            json!(["path"])
        ),
        tool(
            "write",
            "Replaces a file.",
            json!({ "path": path, "text": { "type": "string" } }),
            json!(["path", "text"])
        ),
        tool(
            "search",
            "Lines that contain a text.",
            json!({ "text": { "type": "string" } }),
            json!(["text"])
        ),
        tool(
            "exec",
            "Runs a command in a shell.",
            json!({ "command": { "type": "string" } }),
            json!(["command"])
        ),
    ])
}
