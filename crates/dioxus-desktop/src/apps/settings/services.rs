//! Settings, Services: MCP servers and their tools, who searches the web, and where spans go. All of it is set up in
//! `choir.toml`; here it is seen, tried, and given its keys.

use dioxus::prelude::*;
use serde_json::Value;

use super::keys::{Key, brand, known};
use super::reading::{list_of, use_read};
use crate::api::{self, Method};
use crate::choir::read::{is, items, name, number, object, text};
use crate::clock;
use crate::desk::desk;
use crate::dom;
use crate::icons::Icon;
use crate::parts::{Trouble, Waiting, either, press};

const SERVER: &str = "[mcp.notes]\ncommand = [\"npx\", \"-y\", \"some-server\"]\nnetwork = [\"registry.npmjs.org\"]\nread_only = [\"list_notes\"]";
const SEARCH: &str =
    "[web.search]\nkind = \"searxng\"   # or \"brave\", \"tavily\"\nbase_url = \"http://127.0.0.1:8888\"";
const TELEMETRY: &str = "[telemetry]\notlp = \"http://127.0.0.1:4318\"";

#[component]
pub(crate) fn Services() -> Element {
    let turn = use_signal(|| 0u32);
    let servers = use_read("/mcp", turn);
    let services = use_read("/services", turn);
    let keys = list_of(&use_read("/keys", turn));
    let about = match (&*servers.read(), &*services.read()) {
        (Some(Err(failure)), _) | (_, Some(Err(failure))) => {
            return rsx! { Trouble { failure: failure.clone() } };
        }
        (Some(Ok(_)), Some(Ok(services))) => services.clone(),
        (None, _) | (_, None) => return rsx! { Waiting {} },
    };
    let servers = list_of(&servers);
    rsx! {
        p { class: "quiet", "What agents use beside models. It is set up in choir.toml of this machine and taken up when the server starts; ", code { "choir doctor" }, " shows where that file is, and what is wrong in it." }
        h2 { "MCP servers" }
        if servers.is_empty() {
            Example { said: "No MCP servers. Add one to choir.toml:", text: SERVER }
        }
        for server in servers {
            Server { key: "{text(&server, \"name\")}", keys: keys.clone(), server, turn }
        }
        h2 { "Web search" }
        if about["search"].is_null() {
            Example { said: "No web search: agents search the workspace only. Add one to choir.toml:", text: SEARCH }
        } else {
            Search { search: about["search"].clone(), keys, turn }
        }
        h2 { "Telemetry" }
        {telemetry(&about["telemetry"])}
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
fn needed(names: &[Value], keys: &[Value], turn: Signal<u32>) -> Element {
    rsx! {
        if !names.is_empty() {
            ul { class: "things",
                for provider in names.iter().filter_map(Value::as_str).map(str::to_owned) {
                    Key { key: "{provider}", known: known(keys, &provider), provider, turn }
                }
            }
        }
    }
}

/// How a server stands: in a word, how that looks, and what a press does about it.
fn standing(server: &Value) -> (&'static str, &'static str, &'static str) {
    match (text(server, "state"), text(server, "kind")) {
        ("up", "address") => ("connected", "chip ok", "Connect again"),
        ("up", _) => ("running", "chip ok", "Restart"),
        ("down", _) => ("failed", "chip bad", "Try again"),
        (_, "address") => ("not connected", "chip", "Connect"),
        _ => ("not started", "chip", "Start"),
    }
}

/// An MCP server with its tools.
#[component]
fn Server(server: Value, keys: Vec<Value>, turn: Signal<u32>) -> Element {
    let desk = desk();
    let mut busy = use_signal(|| false);
    let title = text(&server, "name").to_owned();
    let path = format!("/mcp/{}/restart", dom::encode(&title));
    let again = move |_| {
        let path = path.clone();
        if *busy.peek() {
            return;
        }
        busy.set(true);
        spawn(async move {
            if let Err(failure) = api::call(Method::Post, path, object(&[])).await {
                desk.fail(&failure);
            }
            busy.set(false);
            *turn.write() += 1;
        });
    };
    let (word, class, verb) = standing(&server);
    let word = either(busy(), "starting…", word);
    let is_far = text(&server, "kind") == "address";
    let kind = either(is_far, "Address", "Program");
    let roles: Vec<String> = items(&server, "roles").iter().filter_map(Value::as_str).map(name).collect();
    rsx! {
        div { class: "local", role: "group", "aria-label": "MCP server {title}",
            Icon { name: either(is_far, "link", "box") }
            div { class: "two",
                b { "{title}" span { class, role: "status", "{word}" } }
                small { "{kind} · " code { {text(&server, "way")} } }
                small { "For: " {roles.join(", ")} }
            }
            // It stays where the keyboard is, so it is never taken away.
            button { class: "btn", r#type: "button", "aria-disabled": busy().to_string(), "aria-label": "{verb} {title}", onclick: again, {either(busy(), "Starting…", verb)} }
            if !text(&server, "trouble").is_empty() && !busy() {
                p { class: "note-line bad", Icon { name: "triangle-alert" } span { {text(&server, "trouble")} } }
            }
            {tools(&title, items(&server, "tools"))}
            {needed(items(&server, "keys"), &keys, turn)}
        }
    }
}

/// The tools of a server, each with whether it asks first.
fn tools(server: &str, tools: &[Value]) -> Element {
    if tools.is_empty() {
        return rsx! { small { class: "quiet", "Its tools are known once it has answered." } };
    }
    let reading = tools.iter().filter(|tool| is(tool, "reads_only")).count() as u64;
    let own = format!("(by the server {server}) ");
    rsx! {
        details { class: "opens",
            summary { {clock::plural(tools.len() as u64, "tool")} ": {reading} only read, {tools.len() as u64 - reading} final" }
            ul { class: "tools",
                for tool in tools {
                    li {
                        code { {text(tool, "tool")} }
                        if is(tool, "reads_only") {
                            span { class: "chip ok", "only reads" }
                        } else {
                            span { class: "chip warn", "final: asks first" }
                        }
                        p { class: "quiet", {text(tool, "description").strip_prefix(&*own).unwrap_or_default()} }
                    }
                }
            }
        }
    }
}

/// Who searches the web, with a button that tries it.
#[component]
fn Search(search: Value, keys: Vec<Value>, turn: Signal<u32>) -> Element {
    let said = use_signal(String::new);
    let test = move || {
        let mut said = said;
        said.set("Searching…".into());
        spawn(async move {
            let answer = api::call(Method::Post, "/services/search/test".into(), object(&[])).await;
            said.set(match answer {
                Ok(tried) if is(&tried, "ok") => {
                    let found = clock::plural(number(&tried, "results"), "result");
                    format!("Answered in {} ms with {found}.", number(&tried, "millis"))
                }
                Ok(tried) => format!("Did not answer: {}", text(&tried, "trouble")),
                Err(failure) => failure.text(),
            });
        });
    };
    let needs: Vec<Value> = search.get("key").cloned().into_iter().collect();
    let free = either(needs.is_empty(), " · needs no key", "");
    rsx! {
        div { class: "local", role: "group", "aria-label": "Web search",
            Icon { name: "search" }
            div { class: "two",
                b { {brand(text(&search, "provider"))} }
                small { code { {text(&search, "address")} } "{free}" }
            }
            {press("btn", "", "Test", test)}
            p { class: "said", role: "status", "{said}" }
            {needed(&needs, &keys, turn)}
        }
    }
}

/// Where spans go.
fn telemetry(line: &Value) -> Element {
    if line.is_null() {
        return rsx! { Example { said: "Spans of agents go nowhere. To send them to an OpenTelemetry collector, add to choir.toml:", text: TELEMETRY } };
    }
    let with = either(is(line, "contents"), "with", "without");
    rsx! {
        div { class: "local", role: "group", "aria-label": "Telemetry",
            Icon { name: "activity" }
            div { class: "two", b { "OpenTelemetry" } small { "Spans go to " code { {text(line, "address")} } ", {with} what models and tools said." } }
        }
    }
}
