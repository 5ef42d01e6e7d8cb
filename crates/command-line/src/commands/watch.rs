//! `choir watch`: holds the computer until Ctrl-C.

use anyhow::Result;

use super::Context;
use crate::render::{count, json, line, safe};
use computer::client;
use sandbox::computer_host::{ComputerHost, Notice};

pub(crate) fn run(context: &Context) -> Result<()> {
    let paths = context.paths()?;
    let computer = client::open_exclusive(&paths)?;
    let style = context.style;
    let shown = safe(&paths.workspace.display().to_string());
    ComputerHost::open(computer, &context.agent_services()?)?.watch(&|notice| {
        if style.is_json() {
            return json(&match notice {
                Notice::Ready => serde_json::json!({ "ready": true, "pid": std::process::id() }),
                Notice::Captured { edits, op } => serde_json::json!({ "captured": edits, "op": op }),
                Notice::Problem(message) => serde_json::json!({ "trouble": message }),
            });
        }
        match notice {
            Notice::Ready => line(&format!("watching {shown}; other commands work as usual, Ctrl-C ends")),
            Notice::Captured { edits, op } => {
                let op = op.to_string();
                line(&format!(
                    "recorded {} made outside (operation {})",
                    count(edits as u64, "edit"),
                    &op[op.len() - 8..]
                ));
            }
            Notice::Problem(message) => eprintln!("error: {}", safe(&message)),
        }
    })?;
    Ok(())
}
