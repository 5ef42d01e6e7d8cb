//! Pages about signing in: passkeys, sessions, tokens, recovery codes.

use dioxus::prelude::*;
use shared_types::wire::{
    ApiToken, CeremonyStart, FinishCeremony, NewPasskey, NewToken, Passkey, RecoveryCodes, Scope, Session,
};

use super::webauthn;
use crate::api::{self, Answer, Method};
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{IconButton, LoadError, Loading, SOME_WORDS, either};
use crate::state::{Offer, app_state};

/// Removes something by its route, then reads the list again.
pub(super) fn remove(route: String, said: &'static str, turn: Signal<u32>) {
    let app_state = app_state();
    api::run(async move {
        match api::delete(&route).await {
            Ok(()) => {
                app_state.toast(said, false, Offer::Nothing);
                api::put(turn, |turn| *turn += 1);
            }
            Err(failure) => app_state.report_failure(&failure),
        }
    });
}

#[component]
pub(crate) fn Passkeys() -> Element {
    let app_state = app_state();
    let mut turn = use_signal(|| 0u32);
    let mut name = use_signal(String::new);
    let mut busy = use_signal(|| false);
    let keys = api::use_fetched::<Vec<Passkey>>(move || {
        drop(turn.read());
        "/auth/passkeys".to_owned()
    });
    let add = move |event: FormEvent| {
        event.prevent_default();
        let label = name.peek().trim().to_owned();
        let label = if label.is_empty() { "This device".to_owned() } else { label };
        busy.set(true);
        spawn(async move {
            let answer = register(&label).await;
            busy.set(false);
            match answer {
                Ok(()) => {
                    name.set(String::new());
                    *turn.write() += 1;
                    app_state.toast("Passkey added", false, Offer::Nothing);
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", "A passkey signs you in with this device's lock: no password, nothing to type." }
        form { class: "line", onsubmit: add,
            input { class: "field", placeholder: "Name, such as Laptop", "aria-label": "Name of the passkey", value: "{name}", oninput: move |e| name.set(e.value()) }
            button { class: "btn pri", r#type: "submit", disabled: busy(), Icon { name: "plus" } "Add a passkey" }
        }
        match &*keys.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(keys)) if keys.is_empty() => rsx! { p { class: "quiet", "There is none yet. Until then only a link from the machine itself signs you in." } },
            Some(Ok(keys)) => rsx! {
                ul { class: "things",
                    for key in keys.clone() {
                        li { key: "{key.id}",
                            Icon { name: "key-round" }
                            div { class: "two", b { "{key.name}" } small { "added {clock::when(key.created)}" if let Some(used) = key.used { ", used {clock::when(used)}" } } }
                            IconButton { icon: "trash-2", label: "Remove {key.name}", onclick: move |_| remove(format!("/auth/passkeys/{}", dom::encode(&key.id)), "Passkey removed", turn) }
                        }
                    }
                }
            },
        }
    }
}

async fn register(name: &str) -> Answer<()> {
    let named = NewPasskey { name: name.to_owned() };
    let CeremonyStart { ceremony, options } = api::post("/auth/passkeys/register/start", &named).await?;
    let credential = webauthn::create(&options).await?;
    let finish = FinishCeremony { ceremony, credential };
    api::send_json(Method::Post, "/auth/passkeys/register/finish", &finish).await
}

#[component]
pub(crate) fn Sessions() -> Element {
    let turn = use_signal(|| 0u32);
    let sessions = api::use_fetched::<Vec<Session>>(move || {
        drop(turn.read());
        "/auth/sessions".to_owned()
    });
    rsx! {
        p { class: "quiet", "Every browser that is signed in. Ending one signs it out at once." }
        match &*sessions.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(sessions)) => rsx! {
                ul { class: "things",
                    for session in sessions.clone() {
                        li { key: "{session.id}",
                            Icon { name: either(session.browser.contains("Mobile"), "smartphone", "monitor") }
                            div { class: "two",
                                b { "{browser(&session.browser)}" if session.current { span { class: "chip ok", "this one" } } }
                                small { "{session.address} · seen {clock::when(session.seen)} · since {clock::when(session.created)}" }
                            }
                            if !session.current {
                                button { class: "btn", onclick: move |_| remove(format!("/auth/sessions/{}", dom::encode(&session.id)), "Session ended", turn), "End" }
                            }
                        }
                    }
                }
            },
        }
    }
}

/// The name of a browser in what it says of itself.
fn browser(agent: &str) -> String {
    let kinds = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Safari/", "Safari"),
    ];
    let systems = [
        ("Windows", "Windows"),
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("Mac OS", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(sign, _)| agent.contains(sign)).map(|(_, name)| *name)
    };
    match (find(&kinds), find(&systems)) {
        (Some(kind), Some(system)) => format!("{kind} on {system}"),
        (Some(kind), None) => kind.to_owned(),
        (None, _) => agent.chars().take(60).collect(),
    }
}

#[component]
pub(crate) fn Tokens() -> Element {
    let app_state = app_state();
    let mut turn = use_signal(|| 0u32);
    let mut name = use_signal(String::new);
    let mut write = use_signal(|| false);
    let mut terminal = use_signal(|| false);
    let mut days = use_signal(|| "90".to_owned());
    let mut secret = use_signal(|| None::<String>);
    let tokens = api::use_fetched::<Vec<ApiToken>>(move || {
        drop(turn.read());
        "/auth/tokens".to_owned()
    });
    let make = move |event: FormEvent| {
        event.prevent_default();
        let mut scopes = vec![Scope::Read];
        if *write.peek() {
            scopes.push(Scope::Write);
        }
        if *terminal.peek() {
            scopes.push(Scope::Terminal);
        }
        let body = NewToken { name: name.peek().trim().to_owned(), scopes, days: days.peek().parse().ok() };
        spawn(async move {
            let answer: Answer<ApiToken> = api::post("/auth/tokens", &body).await;
            match answer {
                Ok(token) => {
                    secret.set(token.secret);
                    name.set(String::new());
                    *turn.write() += 1;
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", "For scripts. A token can do only what its scopes say, and its secret is shown once." }
        form { class: "line", onsubmit: make,
            input { class: "field", placeholder: "What it is for", "aria-label": "Name of the token", required: true, pattern: SOME_WORDS, value: "{name}", oninput: move |e| name.set(e.value()) }
            label { class: "check", input { r#type: "checkbox", checked: write(), onchange: move |e| write.set(e.checked()) } "write" }
            label { class: "check", input { r#type: "checkbox", checked: terminal(), onchange: move |e| terminal.set(e.checked()) } "terminal" }
            select { "aria-label": "How long", onchange: move |e| days.set(e.value()),
                option { value: "30", "30 days" }
                option { value: "90", selected: true, "90 days" }
                option { value: "365", "a year" }
                option { value: "", "for ever" }
            }
            button { class: "btn pri", r#type: "submit", "Make" }
        }
        if let Some(text) = secret() {
            div { class: "secret", role: "status",
                p { "Copy it now; it will not be shown again." }
                code { id: "token-secret", "{text}" }
                button { class: "btn", onclick: { let text = text.clone(); move |_| dom::copy(&text) }, Icon { name: "copy" } "Copy" }
            }
        }
        match &*tokens.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(tokens)) => rsx! {
                ul { class: "things",
                    for token in tokens.clone() {
                        li { key: "{token.id}",
                            Icon { name: "ticket" }
                            div { class: "two",
                                b { "{token.name}" }
                                small { "{scopes(&token.scopes)} · made {clock::when(token.created)}" if let Some(end) = token.expires { " · ends {clock::when(end)}" } }
                            }
                            IconButton { icon: "trash-2", label: "Revoke {token.name}", onclick: move |_| remove(format!("/auth/tokens/{}", dom::encode(&token.id)), "Token revoked", turn) }
                        }
                    }
                }
            },
        }
    }
}

fn scopes(scopes: &[Scope]) -> String {
    let names = scopes.iter().map(|scope| match scope {
        Scope::Read => "read",
        Scope::Write => "write",
        Scope::Terminal => "terminal",
        Scope::Account => "account",
    });
    names.collect::<Vec<_>>().join(", ")
}

#[component]
pub(crate) fn Recovery() -> Element {
    let app_state = app_state();
    let mut codes = use_signal(Vec::<String>::new);
    let make = move |_| {
        spawn(async move {
            let answer: Answer<RecoveryCodes> = api::post("/auth/recovery", &api::Empty {}).await;
            match answer {
                Ok(made) => codes.set(made.codes),
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", "Ten codes, each good for one sign-in, for the day when every passkey is lost. Making new ones ends the old ones. Keep them on paper." }
        button { class: "btn", onclick: make, Icon { name: "shield-check" } "Make ten new codes" }
        if !codes.read().is_empty() {
            div { class: "secret", role: "status",
                p { "They are shown only now." }
                ol { class: "codes", for code in codes() { li { key: "{code}", code { "{code}" } } } }
                button { class: "btn", onclick: move |_| dom::copy(&codes.peek().join("\n")), Icon { name: "copy" } "Copy all" }
            }
        }
    }
}
