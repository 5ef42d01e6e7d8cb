//! What a scenario came to: what is looked at, what had to come of it, and what is left when it is undone.

use std::collections::{BTreeMap, BTreeSet};

use computer::Computer;
use computer::error::ErrorCode;
use computer::protocol::{Choices, Envelope, Request, RunRequest};
use shared_types::payload::llm::LlmEvent;
use shared_types::payload::tool::{ToolEvent, ToolStatus};
use shared_types::wire::{RunControl, RunDetails};
use shared_types::{Event, OpId, Payload};

use crate::cut::asks;
use crate::scenario::Expect;
use crate::scenario_host::{ScenarioHost, ask};

pub(crate) struct End {
    /// One for each objective, in their order.
    pub(crate) runs: Vec<RunEnd>,
    pub(crate) files: BTreeMap<String, String>,
}

/// What one run came to.
pub(crate) struct RunEnd {
    pub(crate) details: RunDetails,
    pub(crate) events: Vec<Event>,
    pub(crate) asks: usize,
}

impl RunEnd {
    fn new(details: RunDetails, events: Vec<Event>) -> Self {
        let asks = asks(&events).count();
        Self { details, events, asks }
    }

    /// How its calls ended, in the order of their names.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.calls_but(&BTreeSet::new())
    }

    /// The same without some of them.
    pub(crate) fn calls_but(&self, left_out: &BTreeSet<OpId>) -> Vec<String> {
        let (mut tools, mut calls) = (BTreeMap::new(), Vec::new());
        for event in self.events.iter().filter(|event| !left_out.contains(&event.op)) {
            match &event.payload {
                Payload::Tool(ToolEvent::Call(call)) => drop(tools.insert(event.op, call.tool.clone())),
                Payload::Tool(ToolEvent::Result(result)) => {
                    let came =
                        if result.status == (ToolStatus::Exited { code: 0 }) { "ok" } else { "failed" };
                    calls.push(format!("{} {came}", tools[&event.op]));
                }
                _ => {}
            }
        }
        calls.sort();
        calls
    }

    /// The cost of turns that were cancelled. Whether one was running then depends on timing.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.events.iter().filter_map(|event| match &event.payload {
            Payload::Llm(LlmEvent::Fail(fail)) => fail.micros.filter(|_| is_lost(&fail.reason)),
            _ => None,
        });
        lost.sum()
    }

    /// The most calls of one turn that were under way at once.
    fn at_once(&self) -> usize {
        let (mut turns, mut open, mut most) = (BTreeMap::new(), BTreeMap::new(), 0);
        for event in &self.events {
            match &event.payload {
                Payload::Llm(LlmEvent::Reply(reply)) => {
                    turns.extend(reply.calls.iter().map(|wanted| (wanted.call, event.seq)));
                }
                Payload::Tool(ToolEvent::Call(_)) => {
                    let open: &mut usize = open.entry(turns[&event.op]).or_default();
                    *open += 1;
                    most = most.max(*open);
                }
                Payload::Tool(ToolEvent::Result(_)) => {
                    open.entry(turns[&event.op]).and_modify(|open| *open -= 1);
                }
                _ => {}
            }
        }
        most
    }

    /// The agents by role, in the order of their names, each with the labels that it carries.
    pub(crate) fn labels(&self) -> Vec<String> {
        let agent = |agent: &shared_types::wire::Agent| format!("{} {:?}", agent.role, agent.taint);
        let mut labels: Vec<String> = self.details.agents.iter().map(agent).collect();
        labels.sort();
        labels
    }

    fn judge(&self, expect: &Expect) -> Result<(), String> {
        let line = &self.details.line;
        let state = format!("{:?}", line.state).to_lowercase();
        if state != expect.state {
            let reason = &line.reason;
            return Err(format!(
                "it is {state} ({reason:?}), not {}; calls: {:?}",
                expect.state,
                self.calls()
            ));
        }
        holds("the reason", expect.reason.as_deref(), line.reason.as_deref())?;
        holds("the summary", expect.summary.as_deref(), self.details.summary.as_deref())?;
        check("how often the person was asked", &expect.asks, &self.asks)?;
        let mut calls = expect.calls.clone();
        calls.sort();
        check("the calls", &calls, &self.calls())?;
        check("the turns", &expect.turns, &line.cost.turns)?;
        check("the cost", &expect.micros, &(line.cost.micros - self.lost()))?;
        if self.at_once() < expect.at_once {
            let (wanted, found) = (expect.at_once, self.at_once());
            return Err(format!("{found} calls of one turn were under way at once, not {wanted}"));
        }
        for (role, labels) in &expect.taint {
            let agent = self.details.agents.iter().find(|agent| agent.role == *role);
            let found =
                agent.iter().flat_map(|agent| agent.taint.iter().map(|label| label.as_str().to_owned()));
            check(&format!("the labels of the {role}"), labels, &found.collect())?;
        }
        Ok(())
    }
}

impl ScenarioHost<'_> {
    pub(crate) fn look(&self, computer: &Computer) -> End {
        computer.project(&|_, _, _| ()).unwrap();
        let end = |run| RunEnd::new(self.details(computer, run), self.events(computer, run));
        End { runs: self.runs.iter().map(|run| end(*run)).collect(), files: self.files() }
    }

    pub(crate) fn judge(&self, end: &End) -> Result<(), String> {
        check("what the model refused", &Vec::<String>::new(), &self.refusals())?;
        self.judge_as(&self.scenario.expect, end)
    }

    /// The same where something else had to come of the first run.
    pub(crate) fn judge_as(&self, first: &Expect, end: &End) -> Result<(), String> {
        let mut files = self.scenario.files.clone();
        for (expect, run) in self.scenario.expected(first).zip(&end.runs) {
            run.judge(expect)?;
            files.extend(expect.files.clone());
            files.retain(|path, _| !expect.absent.contains(path));
        }
        check("the files", &files, &end.files)
    }

    /// The runs are taken back one after the other, the first one first; one that is not over is stopped before. At
    /// last everything is as before, but for what the person did.
    pub(crate) fn undo(&self, computer: &Computer, end: &End) -> Result<(), String> {
        self.undo_as(&self.scenario.expect, computer, end)
    }

    /// The same where something else had to come of the first run.
    pub(crate) fn undo_as(&self, first: &Expect, computer: &Computer, end: &End) -> Result<(), String> {
        for ((expect, run), ended) in self.scenario.expected(first).zip(&self.runs).zip(&end.runs) {
            let mut before = self.scenario.files.clone();
            before.extend(expect.undone.clone());
            if !ended.details.line.state.is_over() {
                ask(computer, RunRequest::Control { run: run.to_string(), control: RunControl::Stop });
            }
            let found = self.files();
            let undo = RunRequest::Undo { run: run.to_string(), choices: Choices::default(), preview: false };
            let envelope = Envelope::new(Request::AgentRuns(undo));
            let answer = computer.handle(&envelope, &mut std::io::empty(), &|_, _, _| ());
            match answer.into_done() {
                Ok(_) => check("the files after undo", &before, &self.files())?,
                // Where nothing is left of what it did, there is nothing to take back.
                Err(failure) if failure.code == ErrorCode::Refused && found == before => {}
                Err(failure) => return Err(format!("the run cannot be undone: {failure}")),
            }
        }
        Ok(())
    }
}

fn is_lost(reason: &str) -> bool {
    ["the answer was no longer needed", "out of time before"].iter().any(|lost| reason.starts_with(lost))
}

fn holds(what: &str, part: Option<&str>, whole: Option<&str>) -> Result<(), String> {
    match part {
        Some(part) if !whole.unwrap_or_default().contains(part) => {
            Err(format!("{what} is {whole:?}, which does not hold {part:?}"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check<T: PartialEq + std::fmt::Debug>(what: &str, wanted: &T, found: &T) -> Result<(), String> {
    if wanted == found { Ok(()) } else { Err(format!("{what}:\n  wanted {wanted:?}\n  found  {found:?}")) }
}
