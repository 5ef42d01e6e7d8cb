//! Settings, Services: MCP servers and their tools, who searches the web, and where spans go. All of it is set up in
//! `choir.toml`; here it is seen, tried, and given its keys.

use dioxus::prelude::*;
use shared_types::wire::{
    KeyEntry, SearchLine, SearchTried, ServiceList, TelemetryLine, ToolLine, ToolServerKind, ToolServerLine,
    ToolServerState,
};

use super::keys::{Key, brand, known};
use super::reading::use_read;
use crate::api::{self, Answer, Method};
use crate::changes::Change;
use crate::clock;
use crate::dom;
use crate::format::role_name;
use crate::icons::Icon;
use crate::parts::{LoadError, Loading, either, press};
use crate::state::app_state;

const SERVER: &str = "[mcp.notes]\ncommand = [\"npx\", \"-y\", \"some-server\"]\nnetwork = [\"registry.npmjs.org\"]\nread_only = [\"list_notes\"]";
const SEARCH: &str =
    "[web.search]\nkind = \"searxng\"   # or \"brave\", \"tavily\"\nbase_url = \"http://127.0.0.1:8888\"";
const TELEMETRY: &str = "[telemetry]\notlp = \"http://127.0.0.1:4318\"";

#[component]
pub(crate) fn Services() -> Element {
    let turn = use_signal(|| 0u32);
    let servers = use_read::<Vec<ToolServerLine>>("/mcp", Change::is_of_tool_call, turn);
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
        p { class: "quiet", "What agents use beside models. It is set up in choir.toml of this machine and taken up when the server starts; ", code { "choir doctor" }, " shows where that file is, and what is wrong in it." }
        h2 { "MCP servers" }
        if servers.is_empty() {
            Example { said: "No MCP servers. Add one to choir.toml:", text: SERVER }
        }
        for server in servers {
            Server { key: "{server.name}", keys: keys.clone(), server, turn }
        }
        h2 { "Web search" }
        if let Some(search) = services.search {
            Search { search, keys, turn }
        } else {
            Example { said: "No web search: agents search the workspace only. Add one to choir.toml:", text: SEARCH }
        }
        h2 { "Telemetry" }
        {telemetry(services.telemetry.as_ref())}
    }
}

/// What is not there yet, and the lines that set it up.
#[component]
fn Example(said: &'static str, text: &'static str) -> Element {
    rsx! {
        p { class: "quiet", "{said}" }
        div { class: "example",
            pre { class: "output", tabindex: "0", "aria-label": "Example for choir.toml", "{text}" }
            {press("btn", "copy", "Copy", move || dom::copy(text))}
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
fn standing(server: &ToolServerLine) -> (&'static str, &'static str, &'static str) {
    match (server.state, server.kind) {
        (ToolServerState::Up, ToolServerKind::Address) => ("connected", "chip ok", "Connect again"),
        (ToolServerState::Up, ToolServerKind::Program) => ("running", "chip ok", "Restart"),
        (ToolServerState::Down, _) => ("failed", "chip bad", "Try again"),
        (ToolServerState::Idle, ToolServerKind::Address) => ("not connected", "chip", "Connect"),
        (ToolServerState::Idle, ToolServerKind::Program) => ("not started", "chip", "Start"),
    }
}

/// An MCP server with its tools.
#[component]
fn Server(server: ToolServerLine, keys: Vec<KeyEntry>, turn: Signal<u32>) -> Element {
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
    let word = either(busy(), "starting…", word);
    let is_far = server.kind == ToolServerKind::Address;
    let kind = either(is_far, "Address", "Program");
    let roles: Vec<String> = server.roles.iter().map(|role| role_name(role)).collect();
    rsx! {
        div { class: "local", role: "group", "aria-label": "MCP server {title}",
            Icon { name: either(is_far, "link", "box") }
            div { class: "two",
                b { "{title}" span { class, role: "status", "{word}" } }
                small { "{kind} · " code { "{server.way}" } }
                small { "For: " {roles.join(", ")} }
            }
            // It stays where the keyboard is, so it is never taken away.
            button { class: "btn", r#type: "button", "aria-disabled": busy().to_string(), "aria-label": "{verb} {title}", onclick: again, {either(busy(), "Starting…", verb)} }
            if let Some(trouble) = server.trouble.as_ref().filter(|_| !busy()) {
                p { class: "note-line bad", Icon { name: "triangle-alert" } span { "{trouble}" } }
            }
            {tools(&title, &server.tools)}
            {needed(&server.keys, &keys, turn)}
        }
    }
}

/// The tools of a server, each with whether it asks first.
fn tools(server: &str, tools: &[ToolLine]) -> Element {
    if tools.is_empty() {
        return rsx! { small { class: "quiet", "Its tools are known once it has answered." } };
    }
    let reading = tools.iter().filter(|tool| tool.reads_only).count() as u64;
    let own = format!("(by the server {server}) ");
    rsx! {
        details { class: "opens",
            summary { {clock::plural(tools.len() as u64, "tool")} ": {reading} only read, {tools.len() as u64 - reading} final" }
            ul { class: "tools",
                for tool in tools {
                    li {
                        code { "{tool.tool}" }
                        if tool.reads_only {
                            span { class: "chip ok", "only reads" }
                        } else {
                            span { class: "chip warn", "final: asks first" }
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
        said.set("Searching…".into());
        spawn(async move {
            let answer: Answer<SearchTried> = api::post("/services/search/test", &api::Empty {}).await;
            said.set(match answer {
                Ok(tried) if tried.ok => {
                    let found = clock::plural(tried.results, "result");
                    format!("Answered in {} ms with {found}.", tried.millis)
                }
                Ok(tried) => format!("Did not answer: {}", tried.trouble.unwrap_or_default()),
                Err(failure) => failure.text(),
            });
        });
    };
    let needs: Vec<String> = search.key.clone().into_iter().collect();
    let free = either(needs.is_empty(), " · needs no key", "");
    rsx! {
        div { class: "local", role: "group", "aria-label": "Web search",
            Icon { name: "search" }
            div { class: "two",
                b { {brand(&search.provider)} }
                small { code { "{search.address}" } "{free}" }
            }
            {press("btn", "", "Test", test)}
            p { class: "said", role: "status", "{said}" }
            {needed(&needs, &keys, turn)}
        }
    }
}

/// Where spans go.
fn telemetry(line: Option<&TelemetryLine>) -> Element {
    let Some(line) = line else {
        return rsx! { Example { said: "Spans of agents go nowhere. To send them to an OpenTelemetry collector, add to choir.toml:", text: TELEMETRY } };
    };
    let with = either(line.contents, "with", "without");
    rsx! {
        div { class: "local", role: "group", "aria-label": "Telemetry",
            Icon { name: "activity" }
            div { class: "two", b { "OpenTelemetry" } small { "Spans go to " code { "{line.address}" } ", {with} what models and tools said." } }
        }
    }
}
