//! `choir purge`: deletes content permanently; its hash stays.

use anyhow::Result;
use shared_types::ContentHash;

use super::Context;
use crate::cli::Purge;
use crate::render::done;
use computer::protocol::Request;

pub(crate) fn run(context: &Context, args: &Purge) -> Result<()> {
    if !args.targets.is_empty() {
        let computer = context.paths()?;
        let (mut hashes, mut paths) = (Vec::new(), Vec::new());
        for target in &args.targets {
            match ContentHash::parse(target) {
                Ok(hash) => hashes.push(hash),
                Err(_) => paths.push(computer.path(target.as_ref())?),
            }
        }
        let request = Request::Purge { hashes, paths, reason: args.reason.clone() };
        let answer = context.change(request, &mut std::io::empty())?;
        done(context.style, "purged", &answer);
    }
    if args.orphans {
        let answer = context.change(Request::CollectGarbage, &mut std::io::empty())?;
        done(context.style, "collected", &answer);
    }
    Ok(())
}
