//! Settings, Services: MCP servers and their tools, who searches the web, and where spans go. All of it is set up in
//! `choir.toml`; here it is seen, tried, and given its keys.

use dioxus::prelude::*;
use shared_types::wire::{
    KeyEntry, McpServerKind, McpServerLine, McpServerState, McpToolLine, SearchLine, SearchTestResult,
    ServiceList, TelemetryLine,
};

use super::keys::{Key, brand, known};
use super::reading::use_read;
use crate::api::{self, Answer, Method};
use crate::change_log::Change;
use crate::dom;
use crate::format::role_name;
use crate::icons::Icon;
use crate::parts::{LoadError, Loading, either, press};
use crate::state::app_state;
use crate::words;

#[component]
pub(crate) fn Services() -> Element {
    let turn = use_signal(|| 0u32);
    let servers = use_read::<Vec<McpServerLine>>("/mcp", Change::is_of_tool_call, turn);
    let services = use_read::<ServiceList>("/services", |_| false, turn);
    let keys = use_read::<Vec<KeyEntry>>("/keys", |_| false, turn);
    let (servers, services, keys) = match (&*servers.read(), &*services.read(), &*keys.read()) {
        (Some(Err(failure)), _, _) | (_, Some(Err(failure)), _) | (_, _, Some(Err(failure))) => {
            return rsx! { LoadError { failure: failure.clone() } };
        }
        (Some(Ok(servers)), Some(Ok(services)), Some(Ok(keys))) => {
            (servers.clone(), services.clone(), keys.clone())
        }
        (None, _, _) | (_, None, _) | (_, _, None) => return rsx! { Loading {} },
    };
    rsx! {
        p { class: "quiet", {words::settings::services::ABOUT}, code { {words::settings::services::DOCTOR_COMMAND} }, {words::settings::services::ABOUT_DOCTOR} }
        h2 { {words::settings::services::MCP_SERVERS} }
        if servers.is_empty() {
            Example { said: words::settings::services::NO_MCP_SERVERS, text: words::settings::services::MCP_EXAMPLE }
        }
        for server in servers {
            Server { key: "{server.name}", keys: keys.clone(), server, turn }
        }
        h2 { {words::settings::services::WEB_SEARCH} }
        if let Some(search) = services.search {
            Search { search, keys, turn }
        } else {
            Example { said: words::settings::services::NO_SEARCH, text: words::settings::services::SEARCH_EXAMPLE }
        }
        h2 { {words::settings::services::TELEMETRY} }
        {telemetry(services.telemetry.as_ref())}
    }
}

/// What is not there yet, and the lines that set it up.
#[component]
fn Example(said: &'static str, text: &'static str) -> Element {
    rsx! {
        p { class: "quiet", "{said}" }
        div { class: "example",
            pre { class: "output", tabindex: "0", "aria-label": words::settings::services::EXAMPLE, "{text}" }
            {press("btn", "copy", words::COPY, move || dom::copy(text))}
        }
    }
}

/// The keys of the vault that something is given.
fn needed(names: &[String], keys: &[KeyEntry], turn: Signal<u32>) -> Element {
    rsx! {
        if !names.is_empty() {
            ul { class: "things",
                for provider in names.iter().cloned() {
                    Key { key: "{provider}", known: known(keys, &provider), provider, turn }
                }
            }
        }
    }
}

/// How a server stands: in a word, how that looks, and what a press does about it.
fn standing(server: &McpServerLine) -> (&'static str, &'static str, &'static str) {
    match (server.state, server.kind) {
        (McpServerState::Up, McpServerKind::Address) => {
            (words::settings::services::CONNECTED, "chip ok", words::settings::services::CONNECT_AGAIN)
        }
        (McpServerState::Up, McpServerKind::Program) => {
            (words::settings::services::RUNNING, "chip ok", words::settings::services::RESTART)
        }
        (McpServerState::Down, _) => (words::FAILED, "chip bad", words::TRY_AGAIN),
        (McpServerState::Idle, McpServerKind::Address) => {
            (words::settings::services::NOT_CONNECTED, "chip", words::settings::services::CONNECT)
        }
        (McpServerState::Idle, McpServerKind::Program) => {
            (words::settings::services::NOT_STARTED, "chip", words::settings::services::START)
        }
    }
}

/// An MCP server with its tools.
#[component]
fn Server(server: McpServerLine, keys: Vec<KeyEntry>, turn: Signal<u32>) -> Element {
    let app_state = app_state();
    let mut busy = use_signal(|| false);
    let title = server.name.clone();
    let path = format!("/mcp/{}/restart", dom::encode(&title));
    let again = move |_| {
        let path = path.clone();
        if *busy.peek() {
            return;
        }
        busy.set(true);
        spawn(async move {
            if let Err(failure) = api::send_json(Method::Post, &path, &api::Empty {}).await {
                app_state.report_failure(&failure);
            }
            busy.set(false);
            *turn.write() += 1;
        });
    };
    let (word, class, verb) = standing(&server);
    let word = either(busy(), words::settings::services::STARTING, word);
    let is_far = server.kind == McpServerKind::Address;
    let kind = either(is_far, words::settings::services::ADDRESS, words::settings::services::PROGRAM);
    let roles: Vec<String> = server.roles.iter().map(|role| role_name(role)).collect();
    rsx! {
        div { class: "local", role: "group", "aria-label": words::settings::services::mcp_server(&title),
            Icon { name: either(is_far, "link", "box") }
            div { class: "two",
                b { "{title}" span { class, role: "status", "{word}" } }
                small { {words::settings::services::way(kind)} code { "{server.target}" } }
                small { {words::settings::services::for_roles(&roles)} }
            }
            // It stays where the keyboard is, so it is never taken away.
            button { class: "btn", r#type: "button", "aria-disabled": busy().to_string(), "aria-label": words::settings::services::verb_on(verb, &title), onclick: again, {either(busy(), words::settings::services::STARTING_BUTTON, verb)} }
            if let Some(trouble) = server.problem.as_ref().filter(|_| !busy()) {
                p { class: "note-line bad", Icon { name: "triangle-alert" } span { "{trouble}" } }
            }
            {tools(&title, &server.tools)}
            {needed(&server.keys, &keys, turn)}
        }
    }
}

/// The tools of a server, each with whether it asks first.
fn tools(server: &str, tools: &[McpToolLine]) -> Element {
    if tools.is_empty() {
        return rsx! { small { class: "quiet", {words::settings::services::TOOLS_UNKNOWN} } };
    }
    let reading = tools.iter().filter(|tool| tool.reads_only).count() as u64;
    let own = format!("(by the server {server}) ");
    rsx! {
        details { class: "opens",
            summary { {words::settings::services::tools(tools.len() as u64, reading)} }
            ul { class: "tools",
                for tool in tools {
                    li {
                        code { "{tool.tool}" }
                        if tool.reads_only {
                            span { class: "chip ok", {words::settings::services::ONLY_READS} }
                        } else {
                            span { class: "chip warn", {words::settings::services::ASKS_FIRST} }
                        }
                        p { class: "quiet", {tool.description.strip_prefix(&*own).unwrap_or_default()} }
                    }
                }
            }
        }
    }
}

/// Who searches the web, with a button that tries it.
#[component]
fn Search(search: SearchLine, keys: Vec<KeyEntry>, turn: Signal<u32>) -> Element {
    let said = use_signal(String::new);
    let test = move || {
        let mut said = said;
        said.set(words::settings::services::SEARCHING.into());
        spawn(async move {
            let answer: Answer<SearchTestResult> = api::post("/services/search/test", &api::Empty {}).await;
            said.set(match answer {
                Ok(tried) if tried.ok => {
                    words::settings::services::search_answered(tried.millis, tried.results)
                }
                Ok(tried) => {
                    words::settings::services::search_failed(tried.problem.as_deref().unwrap_or_default())
                }
                Err(failure) => failure.text(),
            });
        });
    };
    let needs: Vec<String> = search.key.clone().into_iter().collect();
    let free = either(needs.is_empty(), words::settings::services::NEEDS_NO_KEY, "");
    rsx! {
        div { class: "local", role: "group", "aria-label": words::settings::services::WEB_SEARCH,
            Icon { name: "search" }
            div { class: "two",
                b { {brand(&search.provider)} }
                small { code { "{search.address}" } "{free}" }
            }
            {press("btn", "", words::TEST, test)}
            p { class: "said", role: "status", "{said}" }
            {needed(&needs, &keys, turn)}
        }
    }
}

/// Where spans go.
fn telemetry(line: Option<&TelemetryLine>) -> Element {
    let Some(line) = line else {
        return rsx! { Example { said: words::settings::services::NO_TELEMETRY, text: words::settings::services::TELEMETRY_EXAMPLE } };
    };
    let contents = either(
        line.contents,
        words::settings::services::WITH_CONTENTS,
        words::settings::services::WITHOUT_CONTENTS,
    );
    rsx! {
        div { class: "local", role: "group", "aria-label": words::settings::services::TELEMETRY,
            Icon { name: "activity" }
            div { class: "two", b { {words::settings::services::OPEN_TELEMETRY} } small { {words::settings::services::SPANS_GO_TO} code { "{line.address}" } "{contents}" } }
        }
    }
}
