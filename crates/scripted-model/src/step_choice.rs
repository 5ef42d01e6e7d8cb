//! Chooses the step that answers a request. The choice depends only on the request, so a repeated request gets the
//! same answer.

use crate::{
    conversation::Conversation,
    script::{Agent, Script, ScriptedTurn},
};

/// The step to play.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChosenStep<'a> {
    pub(crate) id: StepId,
    pub(crate) agent: &'a Agent,
    pub(crate) step: &'a ScriptedTurn,
}

/// The position of a step: the indexes of its script, agent and step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct StepId {
    pub(crate) script: usize,
    pub(crate) agent: usize,
    pub(crate) step: usize,
}

/// Finds the step and checks its expectations. The error is for the developer whose scenario fails.
pub(crate) fn choose<'a>(
    scripts: &'a [Script],
    conversation: &Conversation,
) -> Result<ChosenStep<'a>, String> {
    let (script, index, agent) = find_agent(scripts, conversation).ok_or_else(|| {
        format!(
            "no agent of the script matches: the system prompt begins {:?}, the first message {:?}",
            excerpt(&conversation.system),
            excerpt(&conversation.first)
        )
    })?;
    let again = scripts[script].again.as_deref();
    let left_out = scripts[script].left_out.as_deref().map_or(0, |marker| conversation.omitted_turns(marker));
    let number = left_out + conversation.assistant_turns
        - again.map_or(0, |marker| conversation.repeated_turns(marker));
    let id = StepId { script, agent: index, step: number };
    let step = agent
        .steps
        .get(number)
        .ok_or_else(|| format!("script is over for agent {} at step {number}", agent.name()))?;
    let unmet = |problem: &str, text: &str| {
        let (name, said) = (agent.name(), conversation.latest.join("\n"));
        format!("agent {name} at step {number}: {problem} {text:?} in the last message: {said}")
    };
    let has = |text: &str| conversation.latest.iter().any(|said| said.contains(text));
    // A repeated turn was already checked the first time.
    if again.is_some_and(has) {
        return Ok(ChosenStep { id, agent, step });
    }
    if let Some(missing) = step.expect.iter().find(|text| !has(text)) {
        return Err(unmet("expected", missing));
    }
    if let Some(present) = step.expect_not.iter().find(|text| has(text)) {
        return Err(unmet("did not expect", present));
    }
    Ok(ChosenStep { id, agent, step })
}

/// Scripts whose objective is in the first message come first, then those without an objective. The brief of a worker
/// may lack the objective, so an agent whose `when` matches is found in any script.
fn find_agent<'a>(scripts: &'a [Script], conversation: &Conversation) -> Option<(usize, usize, &'a Agent)> {
    let said = |script: &Script| {
        script.objective.as_ref().is_some_and(|text| conversation.first.contains(text.as_str()))
    };
    let matching = |script: &'a Script| {
        script.agents.iter().enumerate().filter(|(_, agent)| matches(agent, conversation))
    };
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

fn matches(agent: &Agent, conversation: &Conversation) -> bool {
    agent.role.as_ref().is_none_or(|role| is_told_to_be(&conversation.system, role))
        && agent.when.as_ref().is_none_or(|text| conversation.first.contains(text.as_str()))
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
