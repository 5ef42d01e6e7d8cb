//! People that the owner invites: an invitation is a link that makes an account with a computer of its own.

use dioxus::prelude::*;
use shared_types::wire::{Invitation, Invite, Invited};

use super::account::remove;
use crate::api::{self, Answer};
use crate::clock;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{IconButton, LoadError, Loading, SOME_WORDS};
use crate::state::app_state;

#[component]
pub(crate) fn People() -> Element {
    let app_state = app_state();
    let mut turn = use_signal(|| 0u32);
    let mut name = use_signal(String::new);
    let mut made = use_signal(|| None::<Invited>);
    let invitations = api::use_fetched::<Vec<Invitation>>(move || {
        drop(turn.read());
        "/auth/invitations".to_owned()
    });
    let invite = move |event: FormEvent| {
        event.prevent_default();
        let body = Invite { name: name.peek().trim().to_owned() };
        spawn(async move {
            let answer: Answer<Invited> = api::post("/auth/invitations", &body).await;
            match answer {
                Ok(invited) => {
                    made.set(Some(invited));
                    name.set(String::new());
                    *turn.write() += 1;
                }
                Err(failure) => app_state.report_failure(&failure),
            }
        });
    };
    rsx! {
        p { class: "quiet", "Somebody you invite gets a desktop, files and a history of their own on this machine. Neither of you sees what is the other's." }
        p { class: "quiet", "A plain shell reaches everything on the machine, so nobody is offered one while there is more than one account." }
        form { class: "line", onsubmit: invite,
            input { class: "field", placeholder: "Their name", "aria-label": "Name of the person", required: true, pattern: SOME_WORDS, value: "{name}", oninput: move |e| name.set(e.value()) }
            button { class: "btn pri", r#type: "submit", Icon { name: "plus" } "Invite" }
        }
        if let Some(Invited { link, invitation }) = made() {
            div { class: "secret", role: "status",
                p { "Give this link to {invitation.name}. It works once, until {clock::full(invitation.expires)}, and is shown only now." }
                code { id: "invitation-link", "{link}" }
                button { class: "btn", onclick: move |_| dom::copy(&link), Icon { name: "copy" } "Copy" }
            }
        }
        match &*invitations.read() {
            None => rsx! { Loading {} },
            Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
            Some(Ok(open)) if open.is_empty() => rsx! { p { class: "quiet", "No invitation is open." } },
            Some(Ok(open)) => rsx! {
                ul { class: "things",
                    for invitation in open.clone() {
                        li { key: "{invitation.id}",
                            Icon { name: "user" }
                            div { class: "two", b { "{invitation.name}" } small { "not accepted yet · until {clock::full(invitation.expires)}" } }
                            IconButton {
                                icon: "trash-2",
                                label: "Withdraw the invitation of {invitation.name}",
                                onclick: move |_| {
                                    made.set(None);
                                    remove(format!("/auth/invitations/{}", dom::encode(&invitation.id)), "Invitation withdrawn", turn);
                                },
                            }
                        }
                    }
                }
            },
        }
    }
}
