//! Small widgets that every app uses: empty states, failures, diffs, buttons.

use std::rc::Rc;

use dioxus::prelude::*;
use shared_types::Source;
use shared_types::wire::Change;

use crate::api::ApiFailure;
use crate::icons::Icon;
use crate::words;

/// The pattern of a field that must not be empty. The browser reports an empty field; a submit button that is disabled
/// until then would ignore the Enter key of a fast typist.
pub(crate) const SOME_WORDS: &str = r".*\S.*";

/// An empty state: the purpose of the view and the first step.
#[component]
pub(crate) fn Empty(icon: &'static str, title: String, children: Element) -> Element {
    rsx! {
        div { class: "empty",
            div { class: "empty-icon", Icon { name: icon } }
            h3 { "{title}" }
            div { class: "empty-text", {children} }
        }
    }
}

/// A failed read.
#[component]
pub(crate) fn LoadError(failure: ApiFailure) -> Element {
    rsx! {
        Empty { icon: "triangle-alert", title: words::COULD_NOT_BE_READ, p { "{failure.text()}" } }
    }
}

/// A loading indicator that appears after a short delay.
#[component]
pub(crate) fn Loading() -> Element {
    rsx! {
        div { class: "waiting", role: "status", "aria-label": words::LOADING, i {} i {} i {} }
    }
}

/// The colour of an author.
pub(crate) fn author(source: Source, actor: &str) -> &'static str {
    match source {
        Source::User => "dot p",
        Source::Agent => "dot a",
        Source::System if actor == "import" => "dot i",
        Source::System => "dot s",
    }
}

/// Lines of a unified diff, coloured.
#[component]
pub(crate) fn Diff(text: String) -> Element {
    const MOST: usize = 600;
    let lines: Vec<(&'static str, String)> = text
        .lines()
        .take(MOST)
        .map(|line| {
            let class = match line.as_bytes().first() {
                Some(b'+') => "add",
                Some(b'-') => "del",
                Some(b'@') => "hunk",
                Some(_) | None => "same",
            };
            (class, line.to_owned())
        })
        .collect();
    let more = text.lines().count().saturating_sub(MOST);
    rsx! {
        pre { class: "diff", tabindex: "0",
            for (i, (class, line)) in lines.into_iter().enumerate() {
                span { key: "{i}", class, "{line}\n" }
            }
            if more > 0 {
                span { class: "hunk", {words::more_lines(more)} }
            }
        }
    }
}

/// The kind of a change, and its class.
pub(crate) fn change_word(change: &Change) -> (&'static str, &'static str) {
    match (&change.from, &change.before, &change.after) {
        (Some(_), _, _) => (words::MOVED, "chip"),
        (None, None, Some(_)) => (words::NEW, "chip ok"),
        (None, Some(_), None) => (words::DELETED, "chip bad"),
        (None, Some(_), Some(_)) | (None, None, None) => (words::CHANGED, "chip"),
    }
}

/// A list of changed files; each opens to its diff.
#[component]
pub(crate) fn Changes(changes: Vec<Change>, total: u64, notes: Vec<String>) -> Element {
    let shown = changes.len() as u64;
    let one = changes.len() == 1;
    rsx! {
        div { class: "changes",
            for note in notes {
                p { class: "note-line", Icon { name: "info" } "{note}" }
            }
            for change in changes {
                details { key: "{change.path}", class: "change", open: one,
                    summary {
                        span { class: change_word(&change).1, {change_word(&change).0} }
                        span { class: "path",
                            if let Some(from) = &change.from { "{from} → " }
                            "{change.path}"
                        }
                        if let Some(diff) = &change.diff {
                            span { class: "plus", "+{count_lines(diff, '+')}" }
                            span { class: "minus", "−{count_lines(diff, '-')}" }
                        }
                    }
                    if let Some(diff) = change.diff.clone() {
                        Diff { text: diff }
                    } else {
                        p { class: "quiet pad", {words::NO_TEXT_TO_COMPARE} }
                    }
                }
            }
            if total > shown {
                p { class: "quiet pad", {words::and_more(total - shown)} }
            }
        }
    }
}

fn count_lines(diff: &str, sign: char) -> usize {
    diff.lines().filter(|line| line.starts_with(sign)).count()
}

/// A button with an icon only; the label is its accessible name.
#[component]
pub(crate) fn IconButton(
    icon: &'static str,
    label: String,
    #[props(default)] class: &'static str,
    #[props(default)] pressed: Option<bool>,
    #[props(default)] disabled: bool,
    onclick: EventHandler<MouseEvent>,
) -> Element {
    rsx! {
        button {
            class: "icon-btn {class}",
            disabled,
            r#type: "button",
            title: "{label}",
            "aria-label": "{label}",
            "aria-pressed": pressed.map(|on| on.to_string()),
            onclick: move |event| onclick.call(event),
            Icon { name: icon }
        }
    }
}

/// A button with an icon and a label. Not a component, so that its code is compiled once.
pub(crate) fn button(
    class: &'static str,
    icon: &'static str,
    label: impl Into<String>,
    run: impl Fn() + 'static,
) -> Element {
    pressed(class, icon, label.into(), Rc::new(run))
}

fn pressed(class: &'static str, icon: &'static str, label: String, run: Rc<dyn Fn()>) -> Element {
    rsx! {
        button {
            class,
            r#type: "button",
            onclick: move |event| {
                event.stop_propagation();
                run();
            },
            if !icon.is_empty() { Icon { name: icon } }
            "{label}"
        }
    }
}

/// One of two static texts. Attributes that need a `&'static str` do not accept the `if` of `rsx!`.
pub(crate) const fn choose_text(condition: bool, yes: &'static str, no: &'static str) -> &'static str {
    if condition { yes } else { no }
}

/// The keyboard shortcuts, for the sheet and for Help.
#[component]
pub(crate) fn ShortcutTable() -> Element {
    rsx! {
        div { class: "keys",
            for (group, rows) in words::shortcuts::SHEET {
                section { key: "{group}",
                    h3 { "{group}" }
                    dl {
                        for (keys, what) in rows.iter() {
                            dt { kbd { "{keys}" } }
                            dd { "{what}" }
                        }
                    }
                }
            }
        }
    }
}
