//! The WebSocket: events in order and once, from the last event of the tab; and invalid messages.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::test_machine::{TestCredential, TestMachine};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Tab(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

pub(crate) async fn knock(machine: &TestMachine, query: &str, origin: &str) -> Result<Tab, Error> {
    let mut request =
        format!("ws://localhost:{}/api/v1/socket{query}", machine.port).into_client_request().unwrap();
    show(&machine.owners(), request.headers_mut());
    request.headers_mut().insert("origin", origin.parse().unwrap());
    connect_async(request).await.map(|(socket, _)| Tab(socket))
}

fn show(pass: &TestCredential, headers: &mut axum::http::HeaderMap) {
    match pass {
        TestCredential::None => None,
        TestCredential::Cookie(cookie) => headers.insert("cookie", cookie.parse().unwrap()),
        TestCredential::Token(token) => {
            headers.insert("authorization", format!("Bearer {token}").parse().unwrap())
        }
    };
}

/// A tab that does not use the owner's session.
pub(crate) async fn tab_of(machine: &TestMachine, pass: &TestCredential, query: &str) -> Tab {
    let address = format!("ws://localhost:{}/api/v1/socket{query}", machine.port);
    let mut request = address.into_client_request().unwrap();
    show(pass, request.headers_mut());
    if matches!(pass, TestCredential::Cookie(_)) {
        request.headers_mut().insert("origin", format!("http://localhost:{}", machine.port).parse().unwrap());
    }
    connect_async(request).await.map(|(socket, _)| Tab(socket)).unwrap()
}

pub(crate) async fn tab(machine: &TestMachine, query: &str) -> Tab {
    knock(machine, query, &format!("http://localhost:{}", machine.port)).await.unwrap()
}

impl Tab {
    pub(crate) async fn hear(&mut self) -> Message {
        tokio::time::timeout(PATIENCE, self.0.next()).await.expect("an answer in time").unwrap().unwrap()
    }

    pub(crate) async fn hear_json(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.hear().await {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    /// The next message of a kind.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        loop {
            let mut message = self.hear_json().await;
            if let Some(found) = message.get_mut(kind) {
                return found.take();
            }
        }
    }

    pub(crate) async fn say(&mut self, message: Message) {
        self.0.send(message).await.unwrap();
    }

    async fn events_through(&mut self, seq: u64) -> Vec<u64> {
        let mut seen = Vec::new();
        while seen.last().is_none_or(|last| *last < seq) {
            seen.push(self.until("event").await["event"]["seq"].as_u64().unwrap());
        }
        seen
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_gets_the_state_then_every_event_once_and_in_order() {
    let machine = TestMachine::new().await;
    let mut tab = tab(&machine, "").await;
    let state = tab.until("state").await["state"].take();
    let from = state["seq"].as_u64().unwrap();
    assert_eq!(state["windows"][0][1]["app"], "editor");
    for number in 0..20 {
        machine.write(&format!("{number}.txt"), "x").await;
    }
    let head = machine.head().await;
    assert_eq!(tab.events_through(head).await, (from + 1..=head).collect::<Vec<_>>());
    let projected = loop {
        let seq = tab.until("projected").await["seq"].as_u64().unwrap();
        if seq >= head {
            break seq;
        }
    };
    assert_eq!(projected, head);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_has_an_event_before_it_hears_that_the_lists_have_it() {
    let machine = TestMachine::new().await;
    let mut tab = tab(&machine, "").await;
    let mut got = tab.until("state").await["state"]["seq"].as_u64().unwrap();
    let enough = got + 300;
    let writing = async {
        for number in 0..300 {
            machine.write("a.txt", &number.to_string()).await;
        }
    };
    let reading = async {
        loop {
            let message = tab.hear_json().await;
            if let Some(seq) = message["event"]["event"]["seq"].as_u64() {
                got = seq;
            }
            if let Some(seq) = message["projected"]["seq"].as_u64() {
                assert!(seq <= got, "{seq} is projected, and {got} was sent");
                if seq >= enough {
                    return;
                }
            }
        }
    };
    tokio::join!(writing, reading);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_was_away_gets_what_it_missed_however_much_it_was() {
    let machine = TestMachine::new().await;
    let since = machine.head().await;
    // More than the bus keeps ready.
    for number in 0..30 {
        machine.write(&format!("{number}.txt"), "x").await;
    }
    let head = machine.head().await;
    for from in [since, head - 1] {
        let mut tab = tab(&machine, &format!("?since={from}")).await;
        assert_eq!(tab.events_through(head).await, (from + 1..=head).collect::<Vec<_>>());
    }
    let mut ahead = tab(&machine, &format!("?since={}", head + 100)).await;
    assert_eq!(ahead.until("state").await["state"]["seq"], head, "a seq that never was: it starts again");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_is_refused_and_the_connection_goes_on() {
    let machine = TestMachine::new().await;
    let mut tab = tab(&machine, "").await;
    for garbage in [
        Message::text("{"),
        Message::text(json!({ "explode": {} }).to_string()),
        Message::text(json!({ "attach": { "terminal": "x", "offset": 0 } }).to_string()),
        Message::binary(vec![1, 2, 3]),
        Message::binary(vec![0; 40]),
    ] {
        tab.say(garbage.clone()).await;
        let refused = tab.until("refused").await;
        assert!(!refused["detail"].as_str().unwrap().is_empty(), "{garbage:?}");
    }
    machine.write("after.txt", "x").await;
    assert_eq!(tab.until("event").await["event"]["type"], "file.write");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_is_not_let_in() {
    let machine = TestMachine::new().await;
    let refused = knock(&machine, "", "http://evil.example").await;
    assert!(matches!(refused, Err(Error::Http(answer)) if answer.status() == 403));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tab_that_reads_nothing_does_not_slow_others() {
    let machine = TestMachine::new().await;
    let _silent = tab(&machine, "").await;
    let mut other = tab(&machine, "").await;
    for number in 0..50 {
        machine.write("a.txt", &format!("{number} {}", "x".repeat(30_000))).await;
    }
    let head = machine.head().await;
    assert_eq!(other.events_through(head).await.last(), Some(&head));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_revoked_loses_its_open_sockets_at_once() {
    let machine = TestMachine::new().await;
    let mut tab = tab(&machine, "").await;
    tab.until("state").await;
    let sessions = machine.get("/api/v1/auth/sessions").await.json;
    for session in sessions.as_array().unwrap() {
        let path = format!("/api/v1/auth/sessions/{}", session["id"].as_str().unwrap());
        let sent = crate::test_machine::RequestBody::Empty;
        let revoked = machine.send(&machine.owners(), axum::http::Method::DELETE, &path, sent).await;
        assert_eq!(revoked.status, 204, "{revoked:?}");
    }
    let ended = tokio::time::timeout(PATIENCE, async {
        while let Some(Ok(message)) = tab.0.next().await {
            assert!(!message.is_binary());
        }
    });
    ended.await.expect("the socket is closed");
}
