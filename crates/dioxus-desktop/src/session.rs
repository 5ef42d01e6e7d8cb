//! Who is signed in. A link's secret travels in the fragment, is spent once and leaves the address; without a session
//! there is a sign-in screen with a passkey, a recovery code, and how to get another link.

use dioxus::prelude::*;
use shared_types::wire::{CeremonyStart, FinishCeremony, Me, RecoveryLogin, SignInLink};
use wasm_bindgen::JsValue;

use crate::api::{self, Answer, Failure, Method};
use crate::desktop::{self, Desktop};
use crate::icons::Icon;
use crate::parts::SOME_WORDS;
use crate::state::AppState;
use crate::words;
use crate::{connection, dom};

/// How far signing in has come.
#[derive(Debug, Clone, PartialEq)]
enum Stage {
    Asking,
    SignedOut(Option<String>),
    SignedIn,
}

/// The whole page.
#[component]
pub(crate) fn Root() -> Element {
    let app_state = use_context_provider(AppState::new);
    let mut stage = use_signal(|| Stage::Asking);
    use_hook(move || {
        spawn(async move {
            let refused = spend_link().await;
            stage.set(enter(app_state, refused).await);
        });
    });
    // The connection clears `me` when the session has ended.
    use_effect(move || {
        if app_state.me.read().is_none() && *stage.peek() == Stage::SignedIn {
            stage.set(Stage::SignedOut(Some(words::sign_in::SESSION_ENDED.into())));
        }
    });
    // Whose theme it would be is not known yet.
    use_effect(move || {
        if matches!(*stage.read(), Stage::SignedOut(_)) {
            desktop::theme(None);
        }
    });
    use_effect(move || {
        if *stage.read() != Stage::Asking
            && let Some(shell) = dom::by_id("shell")
        {
            shell.remove();
        }
    });
    match stage() {
        Stage::Asking => rsx! {},
        Stage::SignedIn => rsx! { Desktop {} },
        Stage::SignedOut(why) => rsx! {
            SignIn {
                why,
                // A new session begins with a fresh page: what an ended one left behind is gone.
                onenter: move |()| {
                    if let Some(window) = dom::window() {
                        let _ = window.location().reload();
                    }
                },
            }
        },
    }
}

/// Spends the secret in the address, if there is one; says why if it was refused.
async fn spend_link() -> Option<String> {
    let window = dom::window()?;
    let hash = window.location().hash().ok()?;
    let secret = hash.strip_prefix('#').filter(|s| s.len() >= 16)?.to_owned();
    let path = window.location().pathname().unwrap_or_else(|_| "/".into());
    if let Ok(history) = window.history() {
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&path));
    }
    let (route, secret) = match secret.strip_prefix("invite-") {
        Some(secret) => ("/auth/accept", secret.to_owned()),
        None => ("/auth/link", secret),
    };
    api::send_json(Method::Post, route, &SignInLink { secret }).await.err().map(|failure| failure.text())
}

async fn enter(mut app_state: AppState, refused: Option<String>) -> Stage {
    let me: Answer<Me> = api::get("/me").await;
    match me {
        Ok(me) => {
            app_state.me.set(Some(me));
            connection::start(app_state);
            Stage::SignedIn
        }
        Err(failure) if failure.status() == 401 => Stage::SignedOut(refused),
        Err(failure) => Stage::SignedOut(Some(failure.text())),
    }
}

/// A passkey ceremony from its start to its finish.
pub(crate) async fn sign_in_with_passkey() -> Answer<()> {
    let CeremonyStart { ceremony, options } = api::post("/auth/passkeys/login/start", &api::Empty {}).await?;
    let credential = crate::apps::settings::webauthn::get(&options).await?;
    api::send_json(Method::Post, "/auth/passkeys/login/finish", &FinishCeremony { ceremony, credential })
        .await
}

#[component]
fn SignIn(why: Option<String>, onenter: EventHandler<()>) -> Element {
    let mut trouble = use_signal(|| why.clone());
    let mut by_code = use_signal(|| false);
    let mut user = use_signal(|| "owner".to_owned());
    let mut code = use_signal(String::new);
    let mut busy = use_signal(|| false);
    let mut settle = move |answer: std::result::Result<(), Failure>| {
        busy.set(false);
        match answer {
            Ok(()) => onenter.call(()),
            Err(failure) => trouble.set(Some(failure.text())),
        }
    };
    rsx! {
        main { class: "sign-in",
            div { class: "card",
                div { class: "mark", Icon { name: "feather" } }
                h1 { {words::sign_in::CHOIR_OS} }
                p { class: "lead", {words::sign_in::LEAD} }
                if let Some(text) = trouble() {
                    p { class: "trouble", role: "alert", Icon { name: "triangle-alert" } span { "{text}" } }
                }
                button {
                    class: "btn pri wide",
                    disabled: busy(),
                    onclick: move |_| {
                        busy.set(true);
                        spawn(async move { settle(sign_in_with_passkey().await) });
                    },
                    Icon { name: "key-round" }
                    {words::sign_in::WITH_PASSKEY}
                }
                if by_code() {
                    form {
                        class: "stack",
                        onsubmit: move |event| {
                            event.prevent_default();
                            busy.set(true);
                            let body = RecoveryLogin { user: user(), code: code().trim().to_owned() };
                            spawn(async move { settle(api::send_json(Method::Post, "/auth/recover", &body).await) });
                        },
                        label { {words::sign_in::USER} input { class: "field", value: "{user}", autocomplete: "username", oninput: move |e| user.set(e.value()) } }
                        label { {words::sign_in::RECOVERY_CODE} input { class: "field mono", value: "{code}", autocomplete: "one-time-code", required: true, pattern: SOME_WORDS, autofocus: true, oninput: move |e| code.set(e.value()) } }
                        button { class: "btn wide", r#type: "submit", disabled: busy(), {words::sign_in::WITH_CODE} }
                    }
                } else {
                    button { class: "btn wide", onclick: move |_| by_code.set(true), {words::sign_in::USE_CODE} }
                }
                p { class: "hint", {words::sign_in::NO_PASSKEY_YET} code { {words::sign_in::LINK_COMMAND} } {words::sign_in::OPEN_PRINTED_LINK} }
            }
        }
    }
}
