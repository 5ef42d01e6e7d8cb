//! Pages about signing in: passkeys, sessions, tokens, recovery codes.

use dioxus::prelude::*;
use shared_types::wire::{
    ApiToken, CeremonyStart, FinishCeremony, NewPasskey, NewToken, Passkey, RecoveryCodes, Session,
    TokenScope,
};

use super::webauthn;
use crate::api::{self, ApiResult, Method};
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::state::{ToastAction, app_state};
use crate::widgets::{IconButton, LoadError, Loading, SOME_WORDS, choose_text};
use crate::words;

/// Deletes something by its route, then fetches the list again.
pub(super) fn remove(route: String, said: &'static str, refresh: Signal<u32>) {
    let app_state = app_state();
    api::run(async move {
        match api::delete(&route).await {
            Ok(()) => {
                app_state.toast(said, false, ToastAction::Nothing);
                api::update_if_open(refresh, |refresh| *refresh += 1);
            }
            Err(failure) => app_state.report_failure(&failure),
        }
    });
}

#[component]
pub(crate) fn Passkeys() -> Element {
    let app_state = app_state();
    let mut refresh = use_signal(|| 0u32);
    let mut name = use_signal(String::new);
    let mut busy = use_signal(|| false);
    let keys = api::use_fetched::<Vec<Passkey>>(move || {
        drop(refresh.read());
        "/auth/passkeys".to_owned()
    });
    let add = move |event: FormEvent| {
        event.prevent_default();
        let label = name.peek().trim().to_owned();
        let label = if label.is_empty() { words::settings::account::THIS_DEVICE.to_owned() } else { label };
        busy.set(true);
        spawn(async move {
            let answer = register(&label).await;
            busy.set(false);
            match answer {
                Ok(()) => {
                    name.set(String::new());
                    *refresh.write() += 1;
                    app_state.toast(words::settings::account::PASSKEY_ADDED, false, ToastAction::Nothing);
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", {words::settings::account::PASSKEYS_ABOUT} }
        form { class: "line", onsubmit: add,
            input { class: "field", placeholder: words::settings::account::PASSKEY_NAME_EXAMPLE, "aria-label": words::settings::account::PASSKEY_NAME, value: "{name}", oninput: move |e| name.set(e.value()) }
            button { class: "btn pri", r#type: "submit", disabled: busy(), Icon { name: "plus" } {words::settings::account::ADD_PASSKEY} }
        }
        match &*keys.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(keys)) if keys.is_empty() => rsx! { p { class: "quiet", {words::settings::account::NO_PASSKEYS} } },
            Some(Ok(keys)) => rsx! {
                ul { class: "things",
                    for key in keys.clone() {
                        li { key: "{key.id}",
                            Icon { name: "key-round" }
                            div { class: "two", b { "{key.name}" } small { {words::settings::account::added(&clock::when(key.created), key.used.map(clock::when).as_deref())} } }
                            IconButton { icon: "trash-2", label: words::settings::account::remove(&key.name), onclick: move |_| remove(format!("/auth/passkeys/{}", dom::encode(&key.id)), words::settings::account::PASSKEY_REMOVED, refresh) }
                        }
                    }
                }
            },
        }
    }
}

async fn register(name: &str) -> ApiResult<()> {
    let named = NewPasskey { name: name.to_owned() };
    let CeremonyStart { ceremony, options } = api::post("/auth/passkeys/register/start", &named).await?;
    let credential = webauthn::create(&options).await?;
    let finish = FinishCeremony { ceremony, credential };
    api::send_json(Method::Post, "/auth/passkeys/register/finish", &finish).await
}

#[component]
pub(crate) fn Sessions() -> Element {
    let refresh = use_signal(|| 0u32);
    let sessions = api::use_fetched::<Vec<Session>>(move || {
        drop(refresh.read());
        "/auth/sessions".to_owned()
    });
    rsx! {
        p { class: "quiet", {words::settings::account::SESSIONS_ABOUT} }
        match &*sessions.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(sessions)) => rsx! {
                ul { class: "things",
                    for session in sessions.clone() {
                        li { key: "{session.id}",
                            Icon { name: choose_text(session.browser.contains("Mobile"), "smartphone", "monitor") }
                            div { class: "two",
                                b { "{browser(&session.browser)}" if session.current { span { class: "chip ok", {words::settings::account::THIS_SESSION} } } }
                                small { {words::settings::account::session(&session.address, &clock::when(session.seen), &clock::when(session.created))} }
                            }
                            if !session.current {
                                button { class: "btn", onclick: move |_| remove(format!("/auth/sessions/{}", dom::encode(&session.id)), words::settings::account::SESSION_ENDED, refresh), {words::settings::account::END} }
                            }
                        }
                    }
                }
            },
        }
    }
}

/// The name of a browser by its user agent.
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
        ("Macintosh", "macOS"),
        ("Linux", "Linux"),
    ];
    let find = |table: &[(&str, &'static str)]| {
        table.iter().find(|(sign, _)| agent.contains(sign)).map(|(_, name)| *name)
    };
    match (find(&kinds), find(&systems)) {
        (Some(kind), Some(system)) => words::settings::account::browser_on(kind, system),
        (Some(kind), None) => kind.to_owned(),
        (None, _) => agent.chars().take(60).collect(),
    }
}

/// Days until a new token expires, unless the person chooses otherwise. `None` is a token that never expires.
const DEFAULT_DAYS: u32 = 90;

#[component]
pub(crate) fn Tokens() -> Element {
    let app_state = app_state();
    let mut refresh = use_signal(|| 0u32);
    let mut name = use_signal(String::new);
    let mut write = use_signal(|| false);
    let mut terminal = use_signal(|| false);
    let mut days = use_signal(|| Some(DEFAULT_DAYS));
    let mut secret = use_signal(|| None::<String>);
    let tokens = api::use_fetched::<Vec<ApiToken>>(move || {
        drop(refresh.read());
        "/auth/tokens".to_owned()
    });
    let make = move |event: FormEvent| {
        event.prevent_default();
        let mut scopes = vec![TokenScope::Read];
        if *write.peek() {
            scopes.push(TokenScope::Write);
        }
        if *terminal.peek() {
            scopes.push(TokenScope::Terminal);
        }
        let body = NewToken { name: name.peek().trim().to_owned(), scopes, days: *days.peek() };
        spawn(async move {
            let answer: ApiResult<ApiToken> = api::post("/auth/tokens", &body).await;
            match answer {
                Ok(token) => {
                    secret.set(token.secret);
                    name.set(String::new());
                    *refresh.write() += 1;
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", {words::settings::account::TOKENS_ABOUT} }
        form { class: "line", onsubmit: make,
            input { class: "field", placeholder: words::settings::account::TOKEN_NAME_EXAMPLE, "aria-label": words::settings::account::TOKEN_NAME, required: true, pattern: SOME_WORDS, value: "{name}", oninput: move |e| name.set(e.value()) }
            label { class: "check", input { r#type: "checkbox", checked: write(), onchange: move |e| write.set(e.checked()) } {words::settings::account::SCOPE_WRITE} }
            label { class: "check", input { r#type: "checkbox", checked: terminal(), onchange: move |e| terminal.set(e.checked()) } {words::settings::account::SCOPE_TERMINAL} }
            select { "aria-label": words::settings::account::HOW_LONG, onchange: move |e| {
                    if let Some(chosen) = app_state.read_choice(&e.value()) {
                        days.set(chosen);
                    }
                },
                option { value: "30", {words::settings::account::DAYS_30} }
                option { value: "90", selected: true, {words::settings::account::DAYS_90} }
                option { value: "365", {words::settings::account::A_YEAR} }
                option { value: "", {words::settings::account::FOR_EVER} }
            }
            button { class: "btn pri", r#type: "submit", {words::settings::account::MAKE} }
        }
        if let Some(text) = secret() {
            div { class: "secret", role: "status",
                p { {words::settings::account::COPY_NOW} }
                code { id: "token-secret", "{text}" }
                button { class: "btn", onclick: { let text = text.clone(); move |_| dom::copy(&text) }, Icon { name: "copy" } {words::COPY} }
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
                                small { {words::settings::account::token(&scopes(&token.scopes), &clock::when(token.created), token.expires.map(clock::when).as_deref())} }
                            }
                            IconButton { icon: "trash-2", label: words::settings::account::revoke(&token.name), onclick: move |_| remove(format!("/auth/tokens/{}", dom::encode(&token.id)), words::settings::account::TOKEN_REVOKED, refresh) }
                        }
                    }
                }
            },
        }
    }
}

fn scopes(scopes: &[TokenScope]) -> String {
    let names = scopes.iter().map(|scope| match scope {
        TokenScope::Read => words::settings::account::SCOPE_READ,
        TokenScope::Write => words::settings::account::SCOPE_WRITE,
        TokenScope::Terminal => words::settings::account::SCOPE_TERMINAL,
        TokenScope::Account => words::settings::account::SCOPE_ACCOUNT,
    });
    names.collect::<Vec<_>>().join(", ")
}

#[component]
pub(crate) fn Recovery() -> Element {
    let app_state = app_state();
    let mut codes = use_signal(Vec::<String>::new);
    let make = move |_| {
        spawn(async move {
            let answer: ApiResult<RecoveryCodes> = api::post("/auth/recovery", &api::Empty {}).await;
            match answer {
                Ok(made) => codes.set(made.codes),
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", {words::settings::account::CODES_ABOUT} }
        button { class: "btn", onclick: make, Icon { name: "shield-check" } {words::settings::account::MAKE_CODES} }
        if !codes.read().is_empty() {
            div { class: "secret", role: "status",
                p { {words::settings::account::CODES_SHOWN_ONCE} }
                ol { class: "codes", for code in codes() { li { key: "{code}", code { "{code}" } } } }
                button { class: "btn", onclick: move |_| dom::copy(&codes.peek().join("\n")), Icon { name: "copy" } {words::settings::account::COPY_ALL} }
            }
        }
    }
}
