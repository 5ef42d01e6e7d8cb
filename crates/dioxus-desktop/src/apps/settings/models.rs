//! Settings, Models: keys of providers, the model of each role, budgets, the local model, and grants.

use dioxus::prelude::*;
use gloo_timers::future::TimeoutFuture;
use shared_types::wire::{
    GrantLine, GrantList, KeyEntry, LocalModelLine, ModelLine, ModelList, ModelTestResult,
};

pub(crate) use super::budgets::BudgetForm;
use super::budgets::budgets;
use super::keys::{Key, brand, known};
use super::reading::{act, use_read};
use crate::api::{self, ApiResult, Method};
use crate::change_log::Change;
use crate::dom;
use crate::format::{money, price, role_icon, role_name, short};
use crate::icons::Icon;
use crate::state::app_state;
use crate::widgets::{IconButton, LoadError, Loading, button};
use crate::words;

#[component]
pub(crate) fn Models() -> Element {
    let refresh = use_signal(|| 0u32);
    let models = use_read::<ModelList>("/models", Change::is_of_models, refresh);
    let keys = use_read::<Vec<KeyEntry>>("/keys", |_| false, refresh);
    let grants = use_read::<GrantList>("/grants", Change::is_of_grants, refresh);
    // No event reports the progress of a download, so an open page polls.
    use_effect(move || {
        let mut refresh = refresh;
        if matches!(&*models.read(), Some(Ok(list)) if list.local.as_ref().is_some_and(|local| local.fetching))
        {
            spawn(async move {
                TimeoutFuture::new(1000).await;
                *refresh.write() += 1;
            });
        }
    });
    let (list, keys, grants) = match (&*models.read(), &*keys.read(), &*grants.read()) {
        (Some(Err(failure)), _, _) | (_, Some(Err(failure)), _) | (_, _, Some(Err(failure))) => {
            return rsx! { LoadError { failure: failure.clone() } };
        }
        (Some(Ok(list)), Some(Ok(keys)), Some(Ok(grants))) => {
            (list.clone(), keys.clone(), grants.grants.clone())
        }
        (None, _, _) | (_, None, _) | (_, _, None) => return rsx! { Loading {} },
    };
    let mut providers: Vec<String> = Vec::new();
    for provider in list.models.iter().map(|m| &m.provider).chain(keys.iter().map(|key| &key.provider)) {
        // Models on this machine need no key.
        if !["local", "ollama"].contains(&provider.as_str()) && !providers.contains(provider) {
            providers.push(provider.clone());
        }
    }
    rsx! {
        p { class: "quiet", {words::settings::models::ABOUT} }
        h2 { {words::settings::models::KEYS} }
        ul { class: "things",
            for provider in providers {
                Key { key: "{provider}", known: known(&keys, &provider), provider, refresh }
            }
        }
        if let Some(model) = &list.local { {local_model(model, refresh)} }
        h2 { {words::settings::models::ROLES} }
        {roles(&list)}
        h2 { {words::settings::models::MODELS} }
        ul { class: "things",
            for model in list.models.clone() { ModelRow { key: "{model.name}", model } }
        }
        h2 { {words::settings::models::BUDGETS} }
        {budgets(&list)}
        h2 { {words::settings::models::PERMISSIONS} }
        {permissions(&grants, refresh)}
    }
}

/// The local model: its download, its progress, and its speed.
fn local_model(model: &LocalModelLine, refresh: Signal<u32>) -> Element {
    let LocalModelLine { bytes, downloaded, fetching, ready, declined, .. } = *model;
    let about = match (ready, fetching) {
        (true, _) => speed_text(model),
        (false, true) => words::settings::models::fetched_of(downloaded, bytes),
        (false, false) => words::settings::models::to_be_fetched(bytes - downloaded.min(bytes)),
    };
    let go = |what: &str| {
        let path = format!("/models/local/{what}");
        move || act(api::send_json(Method::Post, &path, &api::Empty {}), "", refresh)
    };
    rsx! {
        h2 { {words::settings::models::ON_THIS_MACHINE} }
        div { class: "local",
            Icon { name: "hard-drive" }
            div { class: "two", b { "{model.name}" } small { "{about}" } }
            if fetching {
                progress { max: "{bytes}", value: "{downloaded}", "aria-label": words::settings::models::DOWNLOAD }
                {button("btn", "square", words::STOP, go("stop"))}
            } else if !ready {
                if !declined { {button("btn", "x", words::settings::models::DECLINE, go("decline"))} }
                {button("btn pri", "download", words::settings::models::fetch(bytes - downloaded.min(bytes)), go("fetch"))}
            }
        }
        if let Some(failure) = &model.failure { p { class: "note-line warn", Icon { name: "triangle-alert" } span { {words::settings::models::cannot_run(failure)} } } }
    }
}

/// The measured speed of the local model.
pub(crate) fn speed_text(model: &LocalModelLine) -> String {
    match model.speed {
        None => words::settings::models::NOT_TIMED.into(),
        Some((read, written)) => words::settings::models::speed(read / 100, written / 100),
    }
}

/// The model of each role.
fn roles(list: &ModelList) -> Element {
    let app_state = app_state();
    let models = &list.models;
    rsx! {
        ul { class: "things",
            for line in &list.roles {
                li {
                    Icon { name: role_icon(&line.role) }
                    div { class: "two",
                        b { {role_name(&line.role)} }
                        small {
                            {match &line.effective {
                                None => words::settings::models::NO_MODEL.to_owned(),
                                Some(gets) if *gets == line.model => models.iter().find(|m| m.name == *gets).map(price).unwrap_or_default(),
                                Some(gets) => words::settings::models::gets_for_now(gets),
                            }}
                        }
                    }
                    select {
                        "aria-label": words::settings::models::model_for(&line.role),
                        onchange: {
                            let key = format!("models.role.{}", line.role);
                            move |e: FormEvent| app_state.set(&key, e.value().into())
                        },
                        {options(models, Some(&line.model))}
                    }
                }
            }
        }
    }
}

/// The models to choose from, disabled where a model cannot be used.
pub(crate) fn options(models: &[ModelLine], chosen: Option<&str>) -> Element {
    let is_chosen = |model: &ModelLine| chosen == Some(&model.name);
    let other = chosen.filter(|name| !name.is_empty() && !models.iter().any(is_chosen));
    rsx! {
        if let Some(name) = other {
            option { value: name, selected: true, {name} }
        }
        for model in models {
            option {
                value: "{model.name}",
                selected: is_chosen(model),
                disabled: !model.usable && !is_chosen(model),
                "{model.name}"
                if !model.usable { {words::settings::models::NOT_READY} }
            }
        }
    }
}

/// A model with a button that tests it.
#[component]
fn ModelRow(model: ModelLine) -> Element {
    let mut said = use_signal(String::new);
    let path = format!("/models/{}/test", dom::encode(&model.name));
    let test = move || {
        said.set(words::settings::models::ASKING.into());
        let path = path.clone();
        api::run(async move {
            let answer: ApiResult<ModelTestResult> = api::post(&path, &api::Empty {}).await;
            let words = match answer {
                Ok(tried) => {
                    let paid = tried.micros.map(money).unwrap_or_default();
                    words::settings::models::tried(tried.ok, tried.millis, &tried.text, &paid)
                }
                Err(failure) => failure.text(),
            };
            api::update_if_open(said, |said| *said = words);
        });
    };
    rsx! {
        li {
            i { class: if model.usable { "dot ready" } else { "dot s" } }
            div { class: "two",
                b { "{model.name}" }
                small { {words::settings::models::about_model(&brand(&model.provider), &price(&model), &short(model.context))} }
                if let Some(reason) = &model.reason { small { "{reason}" } }
                if !said.read().is_empty() { small { class: "tried", role: "status", "{said}" } }
            }
            {button("btn", "", words::TEST, move || test.clone()())}
        }
    }
}

/// The grants: calls that are allowed in a run or always.
fn permissions(grants: &[GrantLine], refresh: Signal<u32>) -> Element {
    rsx! {
        p { class: "quiet", {words::settings::models::PERMISSIONS_ABOUT} }
        ul { class: "things",
            for grant in grants {
                li {
                    Icon { name: "shield-check" }
                    div { class: "two",
                        b { code { "{grant.pattern}" } }
                        small { {if grant.run.is_none() { words::settings::models::granted_always(&grant.tool) } else { words::settings::models::granted_in_run(&grant.tool) }} }
                    }
                    IconButton { icon: "trash-2", label: words::settings::account::revoke(&grant.pattern), onclick: {
                        let grant = grant.grant;
                        move |_| act(api::delete(&format!("/grants/{grant}")), words::settings::models::PERMISSION_REVOKED, refresh)
                    } }
                }
            }
        }
        if grants.is_empty() { p { class: "quiet", {words::settings::models::NO_PERMISSIONS} } }
    }
}
