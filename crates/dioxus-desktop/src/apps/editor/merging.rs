//! A three-way merge of the text that was read, the person's text and the text in the file now. Changes to different
//! lines are merged automatically; where both changed the same lines, the person chooses.

use std::borrow::Cow;
use std::rc::Rc;

use dioxus::prelude::*;
use kernel::merge::{self, Piece};
use shared_types::FilePath;

use super::document::Document;
use super::file::{self, SavedVersion};
use crate::api;
use crate::icons::Icon;
use crate::state::{AppState, ToastAction, app_state};
use crate::widgets::{Loading, choose_text};
use crate::words;

/// Lines that are shown on either side of a place to choose about.
const CONTEXT: usize = 3;

/// The side that is chosen for a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pick {
    Mine,
    Theirs,
    Both,
}

/// A merge that waits for choices.
#[derive(Clone)]
struct OpenMerge {
    /// The version that the result replaces.
    against: SavedVersion,
    pieces: Rc<Vec<Piece>>,
}

impl OpenMerge {
    fn clashes(&self) -> impl Iterator<Item = usize> + '_ {
        let clash = |(index, piece): (usize, &Piece)| matches!(piece, Piece::Clash { .. }).then_some(index);
        self.pieces.iter().enumerate().filter_map(clash)
    }

    /// The whole text; a place without a choice keeps the person's lines.
    fn text(&self, picks: &[Option<Pick>]) -> String {
        let mut text = Vec::new();
        let mut add = |lines: &[u8]| {
            if !lines.is_empty() && text.last().is_some_and(|byte| *byte != b'\n') {
                text.push(b'\n');
            }
            text.extend_from_slice(lines);
        };
        for (index, piece) in self.pieces.iter().enumerate() {
            match (piece, picks.get(index).copied().flatten()) {
                (Piece::Merged(lines), _) => add(lines),
                (Piece::Clash { ours, .. }, Some(Pick::Mine) | None) => add(ours),
                (Piece::Clash { theirs, .. }, Some(Pick::Theirs)) => add(theirs),
                (Piece::Clash { ours, theirs, .. }, Some(Pick::Both)) => {
                    [ours, theirs].into_iter().for_each(|side| add(side))
                }
            }
        }
        text_of(&text).into_owned()
    }
}

fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

#[component]
pub(super) fn Merging(document: Document, onclose: EventHandler<()>) -> Element {
    let app_state = app_state();
    let mut merge = use_signal(|| None::<OpenMerge>);
    let mut picks = use_signal(Vec::<Option<Pick>>::new);
    use_hook(move || {
        spawn(async move {
            let Some(path) = document.path.peek().clone() else { return };
            match read(document, &path).await {
                Ok(open) if open.clashes().next().is_none() => {
                    finish(app_state, document, &open, &[]);
                    onclose.call(());
                }
                Ok(open) => {
                    picks.set(vec![None; open.pieces.len()]);
                    merge.set(Some(open));
                }
                Err(why) => {
                    app_state.toast(why, true, ToastAction::Nothing);
                    onclose.call(());
                }
            }
        });
    });
    let Some(open) = merge.read().clone() else { return rsx! { Loading {} } };
    let left = open.clashes().filter(|index| picks.read()[*index].is_none()).count() as u64;
    let say = match left {
        0 => words::editor::ALL_CHOSEN.to_owned(),
        _ => words::editor::left_to_choose(left),
    };
    let pieces = Rc::clone(&open.pieces);
    rsx! {
        div { class: "bar",
            Icon { name: "git-compare" }
            span { role: "status", "{say}" }
            button {
                class: "btn pri",
                r#type: "button",
                disabled: left > 0,
                onclick: move |_| {
                    finish(app_state, document, &open, &picks.peek());
                    onclose.call(());
                },
                {words::editor::SAVE_MERGE}
            }
            button { class: "btn", r#type: "button", onclick: move |_| onclose.call(()), {words::CANCEL} }
        }
        div { class: "part part-merge", tabindex: "0", "aria-label": words::editor::THE_MERGE,
            for (index, piece) in pieces.iter().enumerate() {
                match piece {
                    Piece::Merged(lines) => rsx! { Settled { key: "{index}", text: text_of(lines).into_owned(), first: index == 0, last: index + 1 == pieces.len() } },
                    Piece::Clash { base, ours, theirs } => rsx! {
                        Clash {
                            key: "{index}",
                            base: text_of(base).into_owned(),
                            mine: text_of(ours).into_owned(),
                            theirs: text_of(theirs).into_owned(),
                            pick: picks.read()[index],
                            onpick: move |pick| picks.write()[index] = Some(pick),
                        }
                    },
                }
            }
        }
    }
}

/// Lines that are joined already: those beside a place to choose about, and how many more there are.
#[component]
fn Settled(text: String, first: bool, last: bool) -> Element {
    let lines: Vec<&str> = text.lines().collect();
    let head = if first { 0 } else { CONTEXT.min(lines.len()) };
    let tail = if last { lines.len() } else { lines.len().saturating_sub(CONTEXT).max(head) };
    let hidden = (tail - head) as u64;
    let (before, after) = (lines[..head].join("\n"), lines[tail..].join("\n"));
    rsx! {
        if !before.is_empty() { pre { "{before}" } }
        if hidden > 0 { p { class: "quiet", {words::editor::lines(hidden)} } }
        if !after.is_empty() { pre { "{after}" } }
    }
}

/// One place that both changed.
#[component]
fn Clash(
    base: String,
    mine: String,
    theirs: String,
    pick: Option<Pick>,
    onpick: EventHandler<Pick>,
) -> Element {
    let side = |title: &'static str, text: &str, which: Pick| {
        let on = pick == Some(which) || pick == Some(Pick::Both);
        let text = if text.is_empty() { words::NOTHING } else { text.trim_end_matches('\n') };
        rsx! {
            button {
                class: choose_text(on, "side on", "side"),
                r#type: "button",
                "aria-pressed": on.to_string(),
                onclick: move |_| onpick.call(which),
                b { "{title}" }
                pre { "{text}" }
            }
        }
    };
    let both = pick == Some(Pick::Both);
    rsx! {
        div { class: "clash", role: "group", "aria-label": words::editor::CHANGED_BY_BOTH,
            div { class: "sides",
                {side(words::editor::YOURS, &mine, Pick::Mine)}
                {side(words::editor::IN_THE_FILE, &theirs, Pick::Theirs)}
            }
            div { class: "acts",
                button { class: "btn small", r#type: "button", "aria-pressed": both.to_string(), onclick: move |_| onpick.call(Pick::Both), {words::editor::KEEP_BOTH} }
                if !base.is_empty() {
                    details { summary { {words::editor::BEFORE} } pre { "{base}" } }
                }
            }
        }
    }
}

async fn read(document: Document, path: &FilePath) -> Result<OpenMerge, String> {
    let before = file::before(&document.base()).await.map_err(|failure| failure.text())?;
    let (against, theirs) = file::read_for_merge(path).await.map_err(|failure| failure.text())?;
    let pieces = merge::pieces(before.as_bytes(), document.text().as_bytes(), theirs.as_bytes())
        .ok_or(words::editor::CANNOT_BE_MERGED)?;
    Ok(OpenMerge { against, pieces: Rc::new(pieces) })
}

/// Puts the outcome into the editor and saves it.
fn finish(app_state: AppState, document: Document, open: &OpenMerge, picks: &[Option<Pick>]) {
    let text = open.text(picks);
    document.with(|editor| editor.set(&text));
    document.build_on(open.against.clone());
    api::run(async move {
        if document.save(app_state).await {
            app_state.toast(words::editor::MERGED, false, ToastAction::Nothing);
        }
    });
}
