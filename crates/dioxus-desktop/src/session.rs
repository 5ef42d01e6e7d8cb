//! Signing in. The secret of a sign-in link is in the fragment of the address; it is removed from there and used once.
//! Without a session the sign-in screen offers a passkey, a recovery code, and how to get another link.

use dioxus::prelude::*;
use shared_types::wire::{CeremonyStart, FinishCeremony, Me, RecoveryLogin, SignInLink};
use wasm_bindgen::JsValue;

use crate::api::{self, ApiFailure, ApiResult};
use crate::desktop::{self, Desktop};
use crate::icons::Icon;
use crate::state::AppState;
use crate::widgets::SOME_WORDS;
use crate::words;
use crate::{connection, dom};

/// The state of signing in.
#[derive(Debug, Clone, PartialEq)]
enum SignInState {
    Asking,
    SignedOut(Option<String>),
    SignedIn,
}

/// The whole page.
#[component]
pub(crate) fn Root() -> Element {
    let app_state = use_context_provider(AppState::new);
    let mut state = use_signal(|| SignInState::Asking);
    use_hook(move || {
        spawn(async move {
            let refused = spend_link().await;
            state.set(enter(app_state, refused).await);
        });
    });
    // The connection clears `me` when the session has ended.
    use_effect(move || {
        if app_state.me.read().is_none() && *state.peek() == SignInState::SignedIn {
            state.set(SignInState::SignedOut(Some(words::sign_in::SESSION_ENDED.into())));
        }
    });
    // The theme is a setting of a user, so none applies before sign-in.
    use_effect(move || {
        if matches!(*state.read(), SignInState::SignedOut(_)) {
            desktop::theme(None);
        }
    });
    use_effect(move || {
        if *state.read() != SignInState::Asking
            && let Some(shell) = dom::by_id("shell")
        {
            shell.remove();
        }
    });
    match state() {
        SignInState::Asking => rsx! {},
        SignInState::SignedIn => rsx! { Desktop {} },
        SignInState::SignedOut(why) => rsx! {
            SignIn {
                why,
                // A new session starts with a fresh page, so that no state of the old one is left.
                onenter: move |()| {
                    if let Some(window) = dom::window() {
                        let _ = window.location().reload();
                    }
                },
            }
        },
    }
}

/// Uses the secret in the address, if there is one; returns the reason if it was refused.
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
    api::send_once(route, &SignInLink { secret }).await.err().map(|failure| failure.text())
}

async fn enter(mut app_state: AppState, refused: Option<String>) -> SignInState {
    let me: ApiResult<Me> = api::get("/me").await;
    match me {
        Ok(me) => {
            app_state.me.set(Some(me));
            connection::start(app_state);
            SignInState::SignedIn
        }
        Err(failure) if failure.status() == 401 => SignInState::SignedOut(refused),
        Err(failure) => SignInState::SignedOut(Some(failure.text())),
    }
}

/// A passkey ceremony from its start to its finish.
pub(crate) async fn sign_in_with_passkey() -> ApiResult<()> {
    let CeremonyStart { ceremony, options } =
        api::post_once("/auth/passkeys/login/start", &api::Empty {}).await?;
    let credential = crate::apps::settings::webauthn::get(&options).await?;
    api::send_once("/auth/passkeys/login/finish", &FinishCeremony { ceremony, credential }).await
}

#[component]
fn SignIn(why: Option<String>, onenter: EventHandler<()>) -> Element {
    let mut error = use_signal(|| why.clone());
    let mut by_code = use_signal(|| false);
    let mut user = use_signal(|| "owner".to_owned());
    let mut code = use_signal(String::new);
    let mut busy = use_signal(|| false);
    let mut finish = move |answer: std::result::Result<(), ApiFailure>| {
        busy.set(false);
        match answer {
            Ok(()) => onenter.call(()),
            Err(failure) => error.set(Some(failure.text())),
        }
    };
    rsx! {
        main { class: "sign-in",
            div { class: "card",
                div { class: "mark", Icon { name: "feather" } }
                h1 { {words::sign_in::CHOIR_OS} }
                p { class: "lead", {words::sign_in::LEAD} }
                if let Some(text) = error() {
                    p { class: "trouble", role: "alert", Icon { name: "triangle-alert" } span { "{text}" } }
                }
                button {
                    class: "btn pri wide",
                    disabled: busy(),
                    onclick: move |_| {
                        busy.set(true);
                        spawn(async move { finish(sign_in_with_passkey().await) });
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
                            spawn(async move { finish(api::send_once("/auth/recover", &body).await) });
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
