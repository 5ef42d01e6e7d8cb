//! Which step answers a request. It follows from the request alone, so whoever asks again gets the same answer.

use crate::{
    conversation::Conversation,
    script::{Agent, Script, Step},
};

/// The step to play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cue<'a> {
    pub(crate) place: Place,
    pub(crate) agent: &'a Agent,
    pub(crate) step: &'a Step,
}

/// Where a step stands: the numbers of its script, its agent in there and itself in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) script: usize,
    pub(crate) agent: usize,
    pub(crate) step: usize,
}

/// Finds the step, and checks what it expects. The error is for the person whose scenario fails.
pub(crate) fn choose<'a>(scripts: &'a [Script], asked: &Conversation) -> Result<Cue<'a>, String> {
    let (script, index, agent) = find_agent(scripts, asked).ok_or_else(|| {
        format!(
            "no agent of the script matches: the system prompt begins {:?}, the first message {:?}",
            excerpt(&asked.system),
            excerpt(&asked.first)
        )
    })?;
    let again = scripts[script].again.as_deref();
    let left_out = scripts[script].left_out.as_deref().map_or(0, |told| asked.left_out(told));
    let number = left_out + asked.taken - again.map_or(0, |told| asked.taken_again(told));
    let place = Place { script, agent: index, step: number };
    let step = agent
        .steps
        .get(number)
        .ok_or_else(|| format!("script is over for agent {} at step {number}", agent.name()))?;
    let complaint = |problem: &str, text: &str| {
        let (name, said) = (agent.name(), asked.latest.join("\n"));
        format!("agent {name} at step {number}: {problem} {text:?} in the last message: {said}")
    };
    let has = |text: &str| asked.latest.iter().any(|said| said.contains(text));
    // What it expects it was told the first time.
    if again.is_some_and(has) {
        return Ok(Cue { place, agent, step });
    }
    if let Some(missing) = step.expect.iter().find(|text| !has(text)) {
        return Err(complaint("expected", missing));
    }
    if let Some(present) = step.expect_not.iter().find(|text| has(text)) {
        return Err(complaint("did not expect", present));
    }
    Ok(Cue { place, agent, step })
}

/// Scripts whose objective was said come first, then those that have none. A worker's brief need not repeat the
/// objective: an agent that names some of its text with `when` is found in any script.
fn find_agent<'a>(scripts: &'a [Script], asked: &Conversation) -> Option<(usize, usize, &'a Agent)> {
    let said =
        |script: &Script| script.objective.as_ref().is_some_and(|text| asked.first.contains(text.as_str()));
    let matching =
        |script: &'a Script| script.agents.iter().enumerate().filter(|(_, agent)| matches(agent, asked));
    let find = |eligible: &dyn Fn(&Script, &Agent) -> bool| {
        scripts.iter().enumerate().find_map(|(at, script)| {
            let (index, agent) = matching(script).find(|(_, agent)| eligible(script, agent))?;
            Some((at, index, agent))
        })
    };
    find(&|script, _| said(script))
        .or_else(|| find(&|script, _| script.objective.is_none()))
        .or_else(|| find(&|_, agent| scripts.len() == 1 || agent.when.is_some()))
}

fn matches(agent: &Agent, asked: &Conversation) -> bool {
    agent.role.as_ref().is_none_or(|role| is_told_to_be(&asked.system, role))
        && agent.when.as_ref().is_none_or(|text| asked.first.contains(text.as_str()))
}

fn is_told_to_be(system: &str, role: &str) -> bool {
    let sentence = format!("you are the {}", role.to_lowercase());
    let system = system.to_lowercase();
    system.match_indices(&sentence).any(|(at, _)| {
        let rest = system.get(at + sentence.len()..).unwrap_or_default();
        !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_' || next == '-')
    })
}

fn excerpt(text: &str) -> String {
    text.chars().take(80).collect()
}
