//! The bar on top: a mark for each recent operation. Dragging shows the desktop as it was, dimmed and read-only.

use std::rc::Rc;

use dioxus::prelude::*;
use shared_types::wire::{DesktopState, Operation};
use shared_types::{Seq, WindowId};

use super::OperationList;
use crate::api::{self, ApiResult};
use crate::state::{AppState, app_state};
use crate::widgets::author;
use crate::words;
use crate::{clock, ids};

const MARKS: usize = 72;
const STEPS: u64 = 1000;

/// Shows the desktop as it was.
pub(crate) fn look(mut app_state: AppState, seq: Seq) {
    api::run(async move {
        let state: ApiResult<DesktopState> = api::get(&format!("/state?at={seq}")).await;
        match state {
            Ok(state) => app_state.past.set(Some(Rc::new(state))),
            Err(failure) => app_state.report_failure(&failure),
        }
    });
}

/// The height of a mark, by how much an operation did.
fn height(row: &Operation) -> u32 {
    let size = row.events.max(1) as f64;
    (5.0 + size.ln() * 4.0).min(22.0) as u32
}

#[component]
pub(crate) fn Scrub(list: OperationList, window: WindowId) -> Element {
    let mut app_state = app_state();
    let now = *app_state.seq.read();
    let mut at = use_signal(|| None::<u64>);
    let mut asked = use_signal(|| 0u64);
    // However the person returns to the present, the slider follows.
    use_effect(move || {
        if app_state.past.read().is_none() && at.peek().is_some() {
            at.set(None);
        }
    });
    let mut marks: Vec<Operation> =
        list.pages.read().get(&0).map(|rows| rows.iter().take(MARKS).cloned().collect()).unwrap_or_default();
    marks.reverse();
    let (first, from) = match marks.first() {
        Some(row) => (row.first.0.saturating_sub(1), clock::when(row.ts)),
        None => (0, String::new()),
    };
    let span = now.saturating_sub(first).max(1);
    let value = at().map_or(STEPS, |seq| seq.saturating_sub(first) * STEPS / span);
    let label = match at() {
        Some(seq) => words::timeline::at_event(seq),
        None => words::timeline::at_now(*list.total.read()),
    };
    rsx! {
        div { class: "scrub",
            div { class: "scrub-ends",
                span { "{from}" }
                span { class: "scrub-now", "{label}" }
                span { "{clock::time(ids::now())}" }
            }
            div { class: "track",
                for (i, row) in marks.iter().enumerate() {
                    i {
                        key: "{i}",
                        class: author(row.source, &row.actor),
                        left: "{(row.last.0.saturating_sub(first)) as f64 * 100.0 / span as f64}%",
                        height: "{height(row)}px",
                    }
                }
                input {
                    id: "scrub-{window}",
                    r#type: "range",
                    min: "0",
                    max: "{STEPS}",
                    value: "{value}",
                    "aria-label": words::timeline::LOOK_BACK,
                    "aria-valuetext": "{label}",
                    oninput: move |event| {
                        let step: u64 = event.value().parse().unwrap_or(STEPS);
                        if step >= STEPS {
                            at.set(None);
                            app_state.past.set(None);
                            return;
                        }
                        let seq = (first + step * span / STEPS).max(1);
                        at.set(Some(seq));
                        let generation = *asked.peek() + 1;
                        asked.set(generation);
                        // Only where the hand rests is fetched.
                        spawn(async move {
                            gloo_timers::future::TimeoutFuture::new(60).await;
                            if *asked.peek() == generation && at.peek().is_some() {
                                look(app_state, Seq(seq));
                            }
                        });
                    },
                }
            }
        }
    }
}
