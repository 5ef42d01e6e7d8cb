//! The prompt bar knows three kinds of words: an objective for the choir, the name of something to open, and a command
//! that begins with `>`. A last word that begins with `@` is a file to attach.

use dioxus::prelude::*;
use dioxus::web::WebEventExt;
use shared_types::FilePath;
use shared_types::payload::run::Budget;
use shared_types::wire::{FileMatch, MatchedIn, ModelList};

use super::prompt_commands::{self, Command};
use crate::api::{self, ApiResult};
use crate::app_list::{self, AppInfo};
use crate::apps;
use crate::apps::settings::models::{options, speed_text};
use crate::format::money;
use crate::icons::Icon;
use crate::runs::Objective;
use crate::state::{ToastAction, app_state};
use crate::upload::{self, dragged_path, dropped_files};
use crate::widgets::{IconButton, button, choose_text};
use crate::words;
use crate::{clock, dom, runs};

/// One line of the results.
#[derive(Clone, PartialEq)]
pub(crate) enum Hit {
    /// The text is an objective.
    Objective,
    /// There is no model that could take one.
    NoModel,
    App(&'static AppInfo),
    File(FileMatch),
    Page {
        title: &'static str,
        page: &'static str,
    },
    Command(Command),
}

fn local_hits(text: &str, with_files: bool) -> Vec<Hit> {
    if let Some(rest) = text.strip_prefix('>') {
        return prompt_commands::matching(rest).into_iter().map(Hit::Command).collect();
    }
    let words = text.trim().to_lowercase();
    let fits = |hay: &str| words.split_whitespace().all(|word| hay.to_lowercase().contains(word));
    let starts = |title: &str| !words.is_empty() && title.to_lowercase().starts_with(&words);
    // Names that begin with the text come first, then descriptions that contain it.
    let mut hits: Vec<(bool, Hit)> = app_list::APPS
        .iter()
        .filter(|app| fits(&format!("{} {}", app.title, app.about)))
        .map(|app| (!starts(app.title), Hit::App(app)))
        .collect();
    if !words.is_empty() {
        let pages = words::prompt::PAGES.iter().filter(|(title, _, more)| fits(&format!("{title} {more}")));
        hits.extend(pages.map(|(title, page, _)| (!starts(title), Hit::Page { title, page })));
    }
    let (later, first): (Vec<_>, Vec<_>) = hits.into_iter().partition(|(later, _)| *later);
    // The beginning of a name is most likely that name. Anything else is most likely an objective, and so is any text
    // with files attached.
    let at = if words.contains(' ') || with_files { 0 } else { first.len() };
    let mut hits: Vec<Hit> = first.into_iter().chain(later).map(|(_, hit)| hit).take(7).collect();
    if !words.is_empty() {
        hits.insert(at.min(hits.len()), Hit::Objective);
    }
    hits
}

/// The beginning of a file's name that is being attached: the last word, after its `@`.
fn attaching(text: &str) -> Option<&str> {
    text.rsplit(char::is_whitespace).next()?.strip_prefix('@').filter(|_| !text.starts_with('>'))
}

fn choose(hit: &Hit, text: &str) {
    let app_state = app_state();
    match hit {
        Hit::App(app) => app_state.open(app, None),
        Hit::File(found) => apps::files::open_path(app_state, found.path.as_str()),
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
        if words.is_empty() || words.starts_with('>') {
            found.set(Vec::new());
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
        });
    });
    let hits = use_memo(move || {
        let text = text.read();
        let with_files = coming() > 0 || !attached.read().is_empty();
        let mut hits = if attaching(&text).is_some() { Vec::new() } else { local_hits(&text, with_files) };
        // Until the list arrives, models count as usable.
        let none = matches!(&*models.read(), Some(Ok(list)) if !list.models.iter().any(|m| m.usable));
        for hit in hits.iter_mut().filter(|hit| none && **hit == Hit::Objective) {
            *hit = Hit::NoModel;
        }
        hits.extend(found.read().iter().cloned().map(Hit::File));
        hits
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
        let hit = hits.peek().get(index).cloned();
        let typed = text.peek().clone();
        match hit {
            None => {}
            Some(Hit::Objective) => ask(),
            Some(Hit::File(file)) if attaching(&typed).is_some() => {
                let word = attaching(&typed).map_or(0, |word| word.len() + 1);
                text.set(typed[..typed.len() - word].to_owned());
                attach(file.path);
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
                match dragged_path(&native) {
                    Some(path) => {
                        attach(path);
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
                            for (i, hit) in list.into_iter().enumerate() {
                                HitRow { key: "{i}", hit, typed: typed.clone(), index: i, on: i == at(), onpick: take, onover: move |i| at.set(i) }
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
                                "Enter" => take(now),
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
                option { value: "", {gets.map_or_else(|| words::prompt::MODELS_AS_SET.to_owned(), words::prompt::as_set)} }
                {options(&list.models, chosen.as_deref())}
            }
            select { "aria-label": words::prompt::BUDGET, onchange: move |e| {
                if let Some(amount) = app_state.read_choice::<u64>(&e.value()) {
                    app_state.set(BUDGET, amount.into());
                }
            },
                option { value: "", {usual.map_or_else(|| words::prompt::BUDGET_AS_SET.to_owned(), |usual| words::prompt::as_set(&money(usual)))} }
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
    let (icon, title, sub) = match &hit {
        Hit::Objective => ("sparkles", words::prompt::ask(typed.trim()), words::prompt::ENTER.to_owned()),
        Hit::NoModel => {
            ("sparkles", words::prompt::NO_MODEL.to_owned(), words::prompt::NO_MODEL_MORE.to_owned())
        }
        Hit::App(app) => (app.icon, app.title.to_owned(), app.about.to_owned()),
        Hit::File(found) => {
            let place = match found.matched {
                MatchedIn::Name => clock::size(found.size),
                MatchedIn::Text => words::files::IN_ITS_TEXT.to_owned(),
            };
            (
                apps::files::icon_for(found.path.name()),
                found.path.name().to_owned(),
                format!("{} · {place}", found.path),
            )
        }
        Hit::Page { title, .. } => ("settings", (*title).to_owned(), words::apps::SETTINGS.to_owned()),
        Hit::Command(command) => ("chevron-right", command.usage.to_owned(), command.about.to_owned()),
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
        }
    }
}
