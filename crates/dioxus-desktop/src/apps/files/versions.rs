//! The versions of a file: each with its diff to the present one, and a button that restores it.

use dioxus::prelude::*;
use shared_types::payload::file::FileNode;
use shared_types::wire::{ChangeResult, Comparison, Version};
use shared_types::{FilePath, Seq};

use crate::api::{self, ApiResult};
use crate::clock;
use crate::state::app_state;
use crate::state::use_changes;
use crate::widgets::{Changes, Empty, LoadError, Loading, author};
use crate::words;

#[component]
pub(crate) fn Versions(path: FilePath) -> Element {
    let (at, of) = (path.clone(), path.clone());
    let changes = use_changes(move |change| change.is_of_path(&of));
    let versions = api::use_fetched::<Vec<Version>>(move || {
        drop(changes.read());
        api::query("/versions", &[("path", at.as_str())])
    });
    let mut open = use_signal(|| None::<Seq>);
    match &*versions.read() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { LoadError { failure: failure.clone() } },
        Some(Ok(versions)) if versions.is_empty() => rsx! {
            Empty { icon: "history", title: words::files::NO_VERSIONS, p { {words::files::NO_VERSIONS_MORE} } }
        },
        Some(Ok(versions)) => rsx! {
            ol { class: "versions scroll",
                for (i, version) in versions.iter().cloned().enumerate() {
                    li { key: "{version.seq}",
                        button { class: if open() == Some(version.seq) { "version on" } else { "version" }, onclick: move |_| open.set(if open() == Some(version.seq) { None } else { Some(version.seq) }),
                            i { class: author(version.source, &version.actor) }
                            span { "{version.label}" }
                            time { "{clock::when(version.ts)}" }
                        }
                        if open() == Some(version.seq) {
                            div { class: "version-body",
                                if i == 0 {
                                    p { class: "quiet", {words::files::PRESENT_VERSION} }
                                } else {
                                    Difference { path: path.clone(), seq: version.seq }
                                    if let Some(FileNode::File { hash, .. }) = &version.node {
                                        button {
                                            class: "btn",
                                            onclick: {
                                                let (path, hash) = (path.clone(), hash.to_string());
                                                move |_| restore(path.clone(), hash.clone())
                                            },
                                            {words::files::RESTORE_VERSION}
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        },
    }
}

fn restore(path: FilePath, hash: String) {
    let app_state = app_state();
    api::run(async move {
        let answer: ApiResult<ChangeResult> = match api::bytes(&api::query("/content", &[("hash", &hash)]))
            .await
        {
            Ok((bytes, _)) => {
                api::put_bytes(&api::query("/content", &[("path", path.as_str()), ("base", "any")]), &bytes)
                    .await
            }
            Err(failure) => Err(failure),
        };
        app_state.report_operation(&words::files::restored(path.name()), &answer);
    });
}

#[component]
fn Difference(path: FilePath, seq: Seq) -> Element {
    let of = path.clone();
    let changes = use_changes(move |change| change.is_of_path(&of));
    let difference = api::use_fetched::<Comparison>(move || {
        drop(changes.read());
        api::query("/compare", &[("from", &seq.to_string()), ("path", path.as_str())])
    });
    match &*difference.read() {
        None => rsx! { Loading {} },
        Some(Err(failure)) => rsx! { p { class: "quiet", "{failure.text()}" } },
        Some(Ok(found)) if found.changes.is_empty() => {
            rsx! { p { class: "quiet", {words::files::SAME_AS_NOW} } }
        }
        Some(Ok(found)) => {
            rsx! { Changes { changes: found.changes.clone(), total: found.total, notes: Vec::new() } }
        }
    }
}
