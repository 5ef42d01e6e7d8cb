//! `choir models`: lists models, and offers, downloads or declines the local model.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::mpsc::channel;

use agent_host::agent_services::LocalModelHost;
use anyhow::Result;
use computer::error::{ComputerError, ErrorCode};
use local_model::weights::{DownloadConsent, DownloadOffer, DownloadProgress};
use shared_types::UserId;

use super::follow_run::read_line;
use super::{Context, services};
use crate::cli::{Models, ModelsAction};
use crate::local::MachineModel;
use crate::render::{self, ProgressReport, line, safe};

pub(crate) fn run(context: &Context, args: &Models) -> Result<()> {
    match args.action {
        None => list(context),
        Some(ModelsAction::Fetch) => {
            let local = services::local()?;
            let Some(offer) = local.offer() else {
                return print_local(context, &local, "already downloaded");
            };
            if !context.style.is_json() {
                line(&safe(&offer.to_string()));
            }
            fetch(context, &local, &offer)?;
            print_local(context, &local, "downloaded and verified")
        }
        Some(ModelsAction::Decline) => {
            let local = services::local()?;
            local.decline()?;
            print_local(context, &local, "declined; choir models fetch still downloads it")
        }
    }
}

fn list(context: &Context) -> Result<()> {
    let agent_services = context.agent_services()?;
    for model in agent_services.model_lines(&UserId::owner()) {
        if context.style.is_json() {
            render::json(&model);
            continue;
        }
        let state = model.problem.unwrap_or_else(|| "ready".into());
        let name = context.style.bold(&format!("{:<16}", safe(&model.name)));
        line(&format!("{name} {:<12} {}", safe(&model.provider), context.style.dim(&safe(&state))));
    }
    match &agent_services.local_services.local {
        Some(local) if local.line().ready => print_local(context, &**local, &local.line().name),
        Some(_) | None => Ok(()),
    }
}

/// Prints a message and the state of the local model.
fn print_local(context: &Context, local: &dyn LocalModelHost, message: &str) -> Result<()> {
    let known = local.line();
    if context.style.is_json() {
        render::json(&serde_json::json!({ "local": known }));
        return Ok(());
    }
    line(message);
    if known.ready {
        line(&context.style.dim(&format!("  {}", services::local_model_speed(&known))));
    }
    Ok(())
}

/// Offers the local model to a person at a terminal who has no other model and did not decline it before. After a "no"
/// the run is still created; it waits and says what is missing.
pub(super) fn offer(context: &Context) -> Result<()> {
    let local = services::local()?;
    let is_at_terminal = !context.style.is_json() && stdin().is_terminal() && stdout().is_terminal();
    let Some(offer) = local.offer().filter(|_| is_at_terminal && local.is_offered()) else { return Ok(()) };
    line(
        "No model is set up. One can run on this machine: it needs no key, costs nothing, is slow and works alone.",
    );
    line(&format!("  {}", safe(&offer.to_string())));
    loop {
        let Some(typed) = read_line(context.style, "Download it: [y]es, [n]o? ")? else { return Ok(()) };
        match typed.to_lowercase().as_str() {
            "y" | "yes" => return fetch(context, &local, &offer),
            "n" | "no" => {
                local.decline()?;
                line("You will not be asked again. Set a provider's key with: choir keys set anthropic");
                line("or download the local model later with: choir models fetch");
                return Ok(());
            }
            _ => {}
        }
    }
}

/// Downloads the model that the person agreed to, with a progress bar, and then measures its speed.
fn fetch(context: &Context, local: &MachineModel, offer: &DownloadOffer) -> Result<()> {
    let (sender, progress) = channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (own, consent) = (local.clone(), DownloadConsent::to(offer));
    let say = move |now| {
        // The receiver lives until the download ends.
        let _ = sender.send(now);
    };
    let coming = runtime.spawn(async move { own.bring(&consent, say).await });
    let bar = ProgressReport::new(context.style);
    for now in progress {
        match now {
            DownloadProgress::Downloading { done, total } => bar.update("downloading", done, total),
            DownloadProgress::Verifying { done, total } => bar.update("verifying", done, total),
        }
    }
    drop(bar);
    let came = runtime.block_on(coming)?;
    came.map_err(|error| {
        ComputerError::new(ErrorCode::Failed, format!("cannot download the local model: {error}")).into()
    })
}
