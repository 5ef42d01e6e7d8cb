//! People that the owner invites: an invitation is a link that makes an account with a computer of its own.

use dioxus::prelude::*;
use shared_types::wire::{CreatedInvitation, Invitation, InvitationRequest};

use super::account::remove;
use crate::api::{self, ApiResult};
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::state::app_state;
use crate::widgets::{IconButton, LoadError, Loading, SOME_WORDS};
use crate::words;

#[component]
pub(crate) fn People() -> Element {
    let app_state = app_state();
    let mut refresh = use_signal(|| 0u32);
    let mut name = use_signal(String::new);
    let mut made = use_signal(|| None::<CreatedInvitation>);
    let invitations = api::use_fetched::<Vec<Invitation>>(move || {
        drop(refresh.read());
        "/auth/invitations".to_owned()
    });
    let invite = move |event: FormEvent| {
        event.prevent_default();
        let body = InvitationRequest { name: name.peek().trim().to_owned() };
        spawn(async move {
            let answer: ApiResult<CreatedInvitation> = api::post("/auth/invitations", &body).await;
            match answer {
                Ok(invited) => {
                    made.set(Some(invited));
                    name.set(String::new());
                    *refresh.write() += 1;
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", {words::settings::account::PEOPLE_ABOUT} }
        p { class: "quiet", {words::settings::account::PEOPLE_AND_SHELLS} }
        form { class: "line", onsubmit: invite,
            input { class: "field", placeholder: words::settings::account::PERSON_NAME_EXAMPLE, "aria-label": words::settings::account::PERSON_NAME, required: true, pattern: SOME_WORDS, value: "{name}", oninput: move |e| name.set(e.value()) }
            button { class: "btn pri", r#type: "submit", Icon { name: "plus" } {words::settings::account::INVITE} }
        }
        if let Some(CreatedInvitation { link, invitation }) = made() {
            div { class: "secret", role: "status",
                p { {words::settings::account::give_link(&invitation.name, &clock::full(invitation.expires))} }
                code { id: "invitation-link", "{link}" }
                button { class: "btn", onclick: move |_| dom::copy(&link), Icon { name: "copy" } {words::COPY} }
            }
        }
        match &*invitations.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(open)) if open.is_empty() => rsx! { p { class: "quiet", {words::settings::account::NO_INVITATIONS} } },
            Some(Ok(open)) => rsx! {
                ul { class: "things",
                    for invitation in open.clone() {
                        li { key: "{invitation.id}",
                            Icon { name: "user" }
                            div { class: "two", b { "{invitation.name}" } small { {words::settings::account::not_accepted(&clock::full(invitation.expires))} } }
                            IconButton {
                                icon: "trash-2",
                                label: words::settings::account::withdraw(&invitation.name),
                                onclick: move |_| {
                                    made.set(None);
                                    remove(format!("/auth/invitations/{}", dom::encode(&invitation.id)), words::settings::account::INVITATION_WITHDRAWN, refresh);
                                },
                            }
                        }
                    }
                }
            },
        }
    }
}
