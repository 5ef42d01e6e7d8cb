//! The prompt bar knows three kinds of words: an objective for the choir, the name of something to open, and a command
//! that begins with `>`. A last word that begins with `@` is a file to attach.

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::FilePath;
use shared_types::payload::run::Budget;
use shared_types::wire::{FileMatch, ModelList};

use super::prompt_commands;
use super::prompt_results::{Found, Hit, ResultRow, attaching, recently_chosen, remember, results};
use crate::api::{self, ApiResult};
use crate::app_list;
use crate::apps;
use crate::apps::settings::models::{options, speed_text};
use crate::format::money;
use crate::icons::Icon;
use crate::runs::Objective;
use crate::state::{ToastAction, app_state};
use crate::upload::{self, dragged_paths, dropped_files};
use crate::widgets::{IconButton, button, choose_text};
use crate::words;
use crate::{dom, file_kinds, runs};

fn choose(hit: &Hit, text: &str) {
    let app_state = app_state();
    remember(hit);
    match hit {
        Hit::App(app) => app_state.open(app, None),
        Hit::File { path, .. } => apps::files::open_path(app_state, path.as_str()),
        Hit::Page { page, .. } => {
            if let Some(app) = app_list::find("settings") {
                app_state.open(app, Some(page));
            }
        }
        Hit::Command(command) => prompt_commands::run(app_state, command, text),
        Hit::NoModel | Hit::Objective => runs::open_models(app_state),
    }
}

/// Settings: the model and the budget of runs that are started here.
const MODEL: &str = "prompt.model";
const BUDGET: &str = "prompt.budget";
/// Dollars to choose from, in millionths.
const AMOUNTS: [u64; 6] = [100_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 20_000_000];

#[component]
pub(crate) fn Prompt() -> Element {
    let app_state = app_state();
    let mut text = use_signal(String::new);
    let mut focused = use_signal(|| false);
    let mut at = use_signal(|| 0usize);
    let mut found = use_signal(Vec::<FileMatch>::new);
    // The text that `found` belongs to, and whether Enter waits for it.
    let mut searched = use_signal(String::new);
    let mut enter_waits = use_signal(|| false);
    let mut recent = use_signal(recently_chosen);
    let mut attached = use_signal(Vec::<FilePath>::new);
    let mut coming = use_signal(|| 0u32);
    let mut refresh = use_signal(|| 0u32);
    let models = api::use_fetched::<ModelList>(move || {
        drop(refresh.read());
        "/models".to_owned()
    });
    use_effect(move || {
        let typed = text.read().clone();
        let words = attaching(&typed).unwrap_or(typed.trim()).to_owned();
        at.set(0);
        enter_waits.set(false);
        if words.is_empty() || words.starts_with('>') {
            found.set(Vec::new());
            searched.set(typed);
            return;
        }
        spawn(async move {
            gloo_timers::future::TimeoutFuture::new(90).await;
            if *text.peek() != typed {
                return;
            }
            let path = api::query("/search", &[("q", &words), ("limit", "8")]);
            let answer: ApiResult<Vec<FileMatch>> = api::get(&path).await;
            if *text.peek() != typed {
                return;
            }
            found.set(answer.unwrap_or_else(|failure| {
                app_state.report_unreadable(&failure);
                Vec::new()
            }));
            searched.set(typed);
        });
    });
    let hits = use_memo(move || {
        let text = text.read();
        let with_files = coming() > 0 || !attached.read().is_empty();
        let found = found.read();
        let found = Found { files: &found, is_for_this_text: *searched.read() == *text };
        let mut rows = results(&text, found, &recent.read(), with_files);
        // Until the list arrives, models count as usable.
        let none = matches!(&*models.read(), Some(Ok(list)) if !list.models.iter().any(|m| m.usable));
        for row in rows.iter_mut().filter(|row| none && row.hit == Hit::Objective) {
            row.hit = Hit::NoModel;
        }
        rows
    });
    let mut finish = move || {
        text.set(String::new());
        focused.set(false);
        if let Some(input) = dom::by_id("prompt") {
            let _ = input.blur();
        }
    };
    let attach = move |path: FilePath| {
        api::update_if_open(attached, |files| {
            if !files.contains(&path) {
                files.push(path);
            }
        });
    };
    let bring = use_callback(move |files: Vec<web_sys::File>| {
        for file in files {
            *coming.write() += 1;
            // The upload may end while the person works elsewhere, so it does not take the focus.
            upload::put_under_free_name(app_state, file, move |path| {
                api::update_if_open(coming, |count| *count -= 1);
                if let Some(path) = path {
                    attach(path);
                }
            });
        }
        dom::focus_soon("prompt");
    });
    let mut ask = move || {
        if *coming.peek() > 0 {
            return app_state.toast(words::prompt::FILE_ON_ITS_WAY, true, ToastAction::Nothing);
        }
        let typed = text.peek().trim().to_owned();
        let model = app_state.setting_as(MODEL);
        let budget = Budget { micros: app_state.setting_as(BUDGET), ..Budget::default() };
        let files = std::mem::take(&mut *attached.write());
        finish();
        runs::start(app_state, Objective { text: typed, attached: files, model, budget });
    };
    let mut take = move |index: usize| {
        let hit = hits.peek().get(index).map(|row| row.hit.clone());
        let typed = text.peek().clone();
        match hit {
            None => {}
            Some(Hit::Objective) => ask(),
            Some(Hit::File { path, .. }) if attaching(&typed).is_some() => {
                let word = attaching(&typed).map_or(0, |word| word.len() + 1);
                text.set(typed[..typed.len() - word].to_owned());
                attach(path);
                dom::focus_soon("prompt");
            }
            // A command that wants words is completed first.
            Some(Hit::Command(command)) if prompt_commands::completion(&command, &typed).is_some() => {
                text.set(prompt_commands::completion(&command, &typed).unwrap_or_default());
                dom::focus_soon("prompt");
            }
            Some(hit) => {
                choose(&hit, &typed);
                finish();
            }
        }
    };
    // The text may be the name of a file that the search has not found yet: then Enter waits for it.
    let mut enter = move || {
        let is_known = hits.peek().get(*at.peek()).is_some_and(|row| match row.hit {
            Hit::App(_) | Hit::Page { .. } | Hit::Command(_) => true,
            Hit::Objective | Hit::NoModel | Hit::File { .. } => false,
        });
        if !is_known && *searched.peek() != *text.peek() {
            enter_waits.set(true);
        } else {
            take(*at.peek());
        }
    };
    use_effect(move || {
        if enter_waits() && *searched.read() == *text.peek() {
            enter_waits.set(false);
            take(*at.peek());
        }
    });
    let open = focused();
    let list = hits.read().clone();
    let typed = text.read().clone();
    let objective = !typed.starts_with('>');
    let files = attached.read().clone();
    rsx! {
        div {
            class: if open { "prompt-wrap open" } else { "prompt-wrap" },
            role: "search",
            // A choice of model or budget takes the focus, and belongs here.
            onfocusout: move |_| {
                gloo_timers::callback::Timeout::new(0, move || {
                    let inside = dom::active().and_then(|e| e.closest(".prompt-wrap").ok().flatten());
                    if inside.is_none() {
                        focused.set(false);
                    }
                }).forget();
            },
            ondragover: move |event| event.prevent_default(),
            ondrop: move |event| {
                event.prevent_default();
                let native = event.data().as_web_event();
                match dragged_paths(&native) {
                    Some(paths) => {
                        paths.into_iter().for_each(attach);
                        dom::focus_soon("prompt");
                    }
                    None => bring.call(dropped_files(&native)),
                }
            },
            if open {
                div { class: "scrim clear phone-dim", onpointerdown: move |_| finish() }
            }
            div { class: "prompt-box",
                if open {
                    div { class: "hits",
                        div { id: "hits", role: "listbox", "aria-label": words::prompt::RESULTS,
                            if list.is_empty() {
                                p { class: "quiet pad", {match (objective, attaching(&typed)) {
                                    (_, Some("")) => words::prompt::TYPE_A_NAME,
                                    (true, Some(_)) => words::prompt::NO_SUCH_FILE,
                                    (true, None) => words::prompt::SAY_WHAT,
                                    (false, _) => words::prompt::NO_SUCH_COMMAND,
                                }} }
                            }
                            for (i, (heading, hit)) in with_headings(list).into_iter().enumerate() {
                                Fragment { key: "{i}",
                                    if let Some(heading) = heading {
                                        div { class: "hit-group", role: "presentation", "{heading}" }
                                    }
                                    HitRow { hit, typed: typed.clone(), index: i, on: i == at(), onpick: take, onover: move |i| at.set(i) }
                                }
                            }
                        }
                        if objective { {choices(&models.read(), text, bring)} }
                    }
                }
                if coming() > 0 { upload::Progress {} }
                div { class: "prompt",
                    if !files.is_empty() {
                        div { class: "attached",
                            for path in files.clone() {
                                span { key: "{path}", class: "chip file", title: "{path}",
                                    "{path.name()}"
                                    IconButton { icon: "x", label: words::prompt::do_not_attach(path.as_str()), onclick: {
                                        let path = path.clone();
                                        move |_| {
                                            attached.write().retain(|file| *file != path);
                                            dom::focus_soon("prompt");
                                        }
                                    } }
                                }
                            }
                        }
                    }
                    Icon { name: choose_text(objective, "sparkles", "chevron-right") }
                    textarea {
                        id: "prompt",
                        rows: typed.split('\n').count().clamp(1, 8) as i64,
                        role: "combobox",
                        placeholder: words::prompt::PLACEHOLDER,
                        "aria-label": words::prompt::LABEL,
                        "aria-expanded": open.to_string(),
                        "aria-controls": "hits",
                        "aria-activedescendant": if open { format!("hit-{}", at()) } else { String::new() },
                        autocomplete: "off",
                        spellcheck: "false",
                        value: "{text}",
                        onfocus: move |_| {
                            if !*focused.peek() {
                                *refresh.write() += 1;
                                recent.set(recently_chosen());
                            }
                            focused.set(true);
                        },
                        oninput: move |event| {
                            text.set(event.value());
                            focused.set(true);
                        },
                        onkeydown: move |event| {
                            let count = hits.peek().len().max(1);
                            let now = *at.peek();
                            let several = text.peek().contains('\n');
                            match dom::key(&event).as_str() {
                                "Enter" if event.modifiers().shift() => return,
                                "ArrowDown" if !several => at.set((now + 1) % count),
                                "ArrowUp" if !several => at.set((now + count - 1) % count),
                                "Enter" => enter(),
                                "Escape" => {
                                    event.stop_propagation();
                                    finish();
                                }
                                _ => return,
                            }
                            event.prevent_default();
                        },
                    }
                    if typed.is_empty() {
                        if files.is_empty() {
                            kbd { class: "wide-only", "Ctrl K" }
                        }
                    } else {
                        button { class: "go-btn", r#type: "button", title: words::prompt::DO_IT, "aria-label": words::prompt::DO_IT, onclick: move |_| take(*at.peek()), Icon { name: "arrow-up" } }
                    }
                }
            }
        }
    }
}

/// Each result with the heading above it, if it begins a group.
fn with_headings(rows: Vec<ResultRow>) -> Vec<(Option<&'static str>, Hit)> {
    let mut last = None;
    let mut heading = |group| if last.replace(group) == Some(group) { None } else { Some(group) };
    rows.into_iter().map(|row| (heading(row.group), row.hit)).collect()
}

/// The choice of model and budget.
fn choices(
    models: &Option<ApiResult<ModelList>>,
    text: Signal<String>,
    onfiles: Callback<Vec<web_sys::File>>,
) -> Element {
    let app_state = app_state();
    let Some(Ok(list)) = models else { return rsx! {} };
    let chosen: Option<String> = app_state.setting_as(MODEL);
    let micros: Option<u64> = app_state.setting_as(BUDGET);
    let usual = list.budget.micros;
    let conductor = list.roles.iter().find(|line| line.role == "conductor");
    let gets = conductor.and_then(|line| line.effective.as_deref());
    let name = chosen.as_deref().or(gets);
    let is_here = list.models.iter().any(|line| name == Some(&line.name) && line.provider == "local");
    rsx! {
        footer { class: "choices",
            select { "aria-label": words::prompt::MODEL, onchange: move |e| app_state.set(MODEL, Some(e.value()).filter(|name| !name.is_empty()).into()),
                option { value: "", {gets.map_or_else(|| words::prompt::DEFAULT_MODEL.to_owned(), words::prompt::default_is)} }
                {options(&list.models, chosen.as_deref())}
            }
            select { "aria-label": words::prompt::BUDGET, onchange: move |e| {
                if let Some(amount) = app_state.read_choice::<u64>(&e.value()) {
                    app_state.set(BUDGET, amount.into());
                }
            },
                option { value: "", {usual.map_or_else(|| words::prompt::DEFAULT_BUDGET.to_owned(), |usual| words::prompt::default_is(&money(usual)))} }
                for amount in AMOUNTS {
                    option { value: "{amount}", selected: micros == Some(amount), {words::prompt::up_to(&money(amount))} }
                }
            }
            if let Some(local) = list.local.as_ref().filter(|_| is_here) { small { {speed_text(local)} } }
            span { class: "sp" }
            {button("btn ghost small", "paperclip", words::prompt::ATTACH, move || {
                let mut text = text;
                let space = if text.peek().is_empty() || text.peek().ends_with(' ') { "@" } else { " @" };
                text.write().push_str(space);
                dom::focus("prompt");
            })}
            upload::Chooser { id: "attach", label: words::prompt::ATTACH_FROM_MACHINE, onfiles }
            {button("btn ghost small", "settings", words::prompt::MODELS, move || runs::open_models(app_state))}
        }
    }
}

#[component]
fn HitRow(
    hit: Hit,
    typed: String,
    index: usize,
    on: bool,
    onpick: EventHandler<usize>,
    onover: EventHandler<usize>,
) -> Element {
    let enter = match &hit {
        Hit::Objective => words::prompt::ENTER_ASKS,
        Hit::File { .. } if attaching(&typed).is_some() => words::prompt::ENTER_ATTACHES,
        Hit::Command(command) if prompt_commands::completion(command, &typed).is_some() => {
            words::prompt::ENTER_COMPLETES
        }
        Hit::Command(_) => words::prompt::ENTER_DOES,
        Hit::NoModel | Hit::App(_) | Hit::File { .. } | Hit::Page { .. } => words::prompt::ENTER_OPENS,
    };
    let (icon, title, sub) = match &hit {
        Hit::Objective => ("sparkles", words::prompt::ask(typed.trim()), String::new()),
        Hit::NoModel => {
            ("sparkles", words::prompt::NO_MODEL.to_owned(), words::prompt::NO_MODEL_MORE.to_owned())
        }
        Hit::App(app) => (app.icon, app.title.to_owned(), app.about.to_owned()),
        Hit::File { path, about } => {
            (file_kinds::icon_for(path.name()), path.name().to_owned(), about.clone())
        }
        Hit::Page { title, .. } => ("settings", (*title).to_owned(), words::apps::SETTINGS.to_owned()),
        Hit::Command(command) => ("chevron-right", command.name.to_owned(), format!(">{}", command.written)),
    };
    rsx! {
        div {
            id: "hit-{index}",
            class: if on { "hit on" } else { "hit" },
            role: "option",
            "aria-selected": on.to_string(),
            // Before the input loses the focus, so that the list is still there.
            onpointerdown: move |event| {
                event.prevent_default();
                onpick.call(index);
            },
            onpointerenter: move |_| onover.call(index),
            Icon { name: icon }
            b { "{title}" }
            small { "{sub}" }
            if on { kbd { class: "enter", "{enter}" } }
        }
    }
}
