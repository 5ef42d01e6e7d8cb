//! Settings, Services: MCP servers and their tools, web search, and telemetry. They are configured in `choir.toml`; this
//! page shows and tests them and sets their keys.

use dioxus::prelude::*;
use shared_types::wire::{
    KeyEntry, McpServerKind, McpServerLine, McpServerState, McpToolLine, SearchLine, SearchTestResult,
    ServiceList, TelemetryLine,
};

use super::keys::{Key, brand, known};
use super::reading::use_read;
use crate::api::{self, ApiResult, Method};
use crate::change_log::Change;
use crate::dom;
use crate::format::role_name;
use crate::icons::Icon;
use crate::state::app_state;
use crate::widgets::{LoadError, Loading, button, choose_text};
use crate::words;

#[component]
pub(crate) fn Services() -> Element {
    let refresh = use_signal(|| 0u32);
    let servers = use_read::<Vec<McpServerLine>>("/mcp", Change::is_of_tool_call, refresh);
    let services = use_read::<ServiceList>("/services", |_| false, refresh);
    let keys = use_read::<Vec<KeyEntry>>("/keys", |_| false, refresh);
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
            Server { key: "{server.name}", keys: keys.clone(), server, refresh }
        }
        h2 { {words::settings::services::WEB_SEARCH} }
        if let Some(search) = services.search {
            Search { search, keys, refresh }
        } else {
            Example { said: words::settings::services::NO_SEARCH, text: words::settings::services::SEARCH_EXAMPLE }
        }
        h2 { {words::settings::services::TELEMETRY} }
        {telemetry(services.telemetry.as_ref())}
    }
}

/// A service that is not configured, and the lines that configure it.
#[component]
fn Example(said: &'static str, text: &'static str) -> Element {
    rsx! {
        p { class: "quiet", "{said}" }
        div { class: "example",
            pre { class: "output", tabindex: "0", "aria-label": words::settings::services::EXAMPLE, "{text}" }
            {button("btn", "copy", words::COPY, move || dom::copy(text))}
        }
    }
}

/// The keys that a service needs.
fn required_keys(names: &[String], keys: &[KeyEntry], refresh: Signal<u32>) -> Element {
    rsx! {
        if !names.is_empty() {
            ul { class: "things",
                for provider in names.iter().cloned() {
                    Key { key: "{provider}", known: known(keys, &provider), provider, refresh }
                }
            }
        }
    }
}

/// The state of a server: its name, its class, and the label of the button.
fn server_state(server: &McpServerLine) -> (&'static str, &'static str, &'static str) {
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
fn Server(server: McpServerLine, keys: Vec<KeyEntry>, refresh: Signal<u32>) -> Element {
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
            *refresh.write() += 1;
        });
    };
    let (word, class, verb) = server_state(&server);
    let word = choose_text(busy(), words::settings::services::STARTING, word);
    let is_far = server.kind == McpServerKind::Address;
    let kind = choose_text(is_far, words::settings::services::ADDRESS, words::settings::services::PROGRAM);
    let roles: Vec<String> = server.roles.iter().map(|role| role_name(role)).collect();
    rsx! {
        div { class: "local", role: "group", "aria-label": words::settings::services::mcp_server(&title),
            Icon { name: choose_text(is_far, "link", "box") }
            div { class: "two",
                b { "{title}" span { class, role: "status", "{word}" } }
                small { {words::settings::services::way(kind)} code { "{server.target}" } }
                small { {words::settings::services::for_roles(&roles)} }
            }
            // It stays where the keyboard is, so it is never taken away.
            button { class: "btn", r#type: "button", "aria-disabled": busy().to_string(), "aria-label": words::settings::services::verb_on(verb, &title), onclick: again, {choose_text(busy(), words::settings::services::STARTING_BUTTON, verb)} }
            if let Some(problem) = server.problem.as_ref().filter(|_| !busy()) {
                p { class: "note-line bad", Icon { name: "triangle-alert" } span { "{problem}" } }
            }
            {tools(&server.tools)}
            {required_keys(&server.keys, &keys, refresh)}
        }
    }
}

/// The tools of a server, each with whether it asks first.
fn tools(tools: &[McpToolLine]) -> Element {
    if tools.is_empty() {
        return rsx! { small { class: "quiet", {words::settings::services::TOOLS_UNKNOWN} } };
    }
    let reading = tools.iter().filter(|tool| tool.reads_only).count() as u64;
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
                        p { class: "quiet", "{tool.own_description}" }
                    }
                }
            }
        }
    }
}

/// The web search, with a button that tests it.
#[component]
fn Search(search: SearchLine, keys: Vec<KeyEntry>, refresh: Signal<u32>) -> Element {
    let said = use_signal(String::new);
    let test = move || {
        let mut said = said;
        said.set(words::settings::services::SEARCHING.into());
        spawn(async move {
            let answer: ApiResult<SearchTestResult> =
                api::post("/services/search/test", &api::Empty {}).await;
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
    let free = choose_text(needs.is_empty(), words::settings::services::NEEDS_NO_KEY, "");
    rsx! {
        div { class: "local", role: "group", "aria-label": words::settings::services::WEB_SEARCH,
            Icon { name: "search" }
            div { class: "two",
                b { {brand(&search.provider)} }
                small { code { "{search.address}" } "{free}" }
            }
            {button("btn", "", words::TEST, test)}
            p { class: "said", role: "status", "{said}" }
            {required_keys(&needs, &keys, refresh)}
        }
    }
}

/// Where spans are sent.
fn telemetry(line: Option<&TelemetryLine>) -> Element {
    let Some(line) = line else {
        return rsx! { Example { said: words::settings::services::NO_TELEMETRY, text: words::settings::services::TELEMETRY_EXAMPLE } };
    };
    let contents = choose_text(
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
