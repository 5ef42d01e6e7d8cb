//! `choir models`: which models there are, and the one of this machine: offered, fetched, declined.

use std::io::{IsTerminal, stdin, stdout};
use std::sync::mpsc::channel;

use anyhow::Result;
use local_model::weights::{DownloadConsent, DownloadOffer, DownloadProgress};
use sandbox::failure::{Code, Failure};
use sandbox::minds::LocalHost;
use shared_types::UserId;

use super::attend::read_line;
use super::{Context, minds};
use crate::cli::{Models, ModelsAction};
use crate::local::Local;
use crate::render::{self, Bar, line, safe};

pub(crate) fn run(context: &Context, args: &Models) -> Result<()> {
    match args.action {
        None => list(context),
        Some(ModelsAction::Fetch) => {
            let local = minds::local()?;
            let Some(offer) = local.offer() else { return tell(context, &local, "it is here already") };
            if !context.style.is_json() {
                line(&safe(&offer.to_string()));
            }
            fetch(context, &local, &offer)?;
            tell(context, &local, "fetched, and it is what was published")
        }
        Some(ModelsAction::Decline) => {
            let local = minds::local()?;
            local.decline()?;
            tell(context, &local, "declined; choir models fetch has it after all")
        }
    }
}

fn list(context: &Context) -> Result<()> {
    let minds = context.minds()?;
    for model in minds.lines(&UserId::owner()) {
        if context.style.is_json() {
            render::json(&model);
            continue;
        }
        let state = model.obstacle.unwrap_or_else(|| "ready".into());
        let name = context.style.bold(&format!("{:<16}", safe(&model.name)));
        line(&format!("{name} {:<12} {}", safe(&model.provider), context.style.dim(&safe(&state))));
    }
    match &minds.outside.local {
        Some(local) if local.line().ready => tell(context, &**local, &local.line().name),
        Some(_) | None => Ok(()),
    }
}

/// How the model of this machine stands now.
fn tell(context: &Context, local: &dyn LocalHost, said: &str) -> Result<()> {
    let known = local.line();
    if context.style.is_json() {
        render::json(&serde_json::json!({ "local": known }));
        return Ok(());
    }
    line(said);
    if known.ready {
        line(&context.style.dim(&format!("  {}", minds::pace(&known))));
    }
    Ok(())
}

/// With no model to ask, a person at a terminal is offered the one of this machine, unless they declined it before. Their
/// objective is taken also after a no: the run waits then, and says what is missing.
pub(super) fn offer(context: &Context) -> Result<()> {
    let local = minds::local()?;
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
                line("You are not asked again. Give a provider's key with: choir keys set anthropic");
                line("or have the local model after all with: choir models fetch");
                return Ok(());
            }
            _ => {}
        }
    }
}

/// Fetches what the person agreed to, shows how far that is, and measures the model then.
fn fetch(context: &Context, local: &Local, offer: &DownloadOffer) -> Result<()> {
    let (sender, progress) = channel();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (own, consent) = (local.clone(), DownloadConsent::to(offer));
    let say = move |now| {
        // Somebody looks on for as long as this can be said.
        let _ = sender.send(now);
    };
    let coming = runtime.spawn(async move { own.bring(&consent, say).await });
    let bar = Bar::new(context.style);
    for now in progress {
        match now {
            DownloadProgress::Downloading { done, total } => bar.tell("downloading", done, total),
            DownloadProgress::Verifying { done, total } => bar.tell("verifying", done, total),
        }
    }
    drop(bar);
    let came = runtime.block_on(coming)?;
    came.map_err(|error| {
        Failure::new(Code::Failed, format!("the local model was not fetched: {error}")).into()
    })
}
