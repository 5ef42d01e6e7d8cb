//! A server that answers: the connection to it, from the handshake to its end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation, JsonObject,
    PaginatedRequestParams, Tool,
};
use rmcp::service::{RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceExt};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::http::Bounded;
use crate::offer::Told;
use crate::settings::{Address, Program};
use crate::words::{self, Said, reason};
use crate::{Keys, Launch, Launched};

/// Bytes of one message; a longer one is dropped, and its call runs out of time.
const LONGEST_MESSAGE: usize = 4 << 20;
/// Pages of a list, since a server could go on for ever.
const PAGES: usize = 20;

/// See the module.
pub(crate) struct Link {
    service: RunningService<RoleClient, ClientConfig>,
    /// The program, where it is one of ours. It ends with the link.
    program: Option<Launched>,
    secrets: Vec<Zeroizing<String>>,
}

/// Why a call has no answer.
pub(crate) enum Broken {
    /// The server said no, and goes on.
    Refused(String),
    /// There is nobody at the other end any more.
    Gone(String),
    Silent,
}

impl Link {
    /// Starts a program and shakes hands with it.
    pub(crate) async fn to_program(
        name: &str,
        program: &Program,
        launch: Arc<dyn Launch>,
        keys: &Keys,
    ) -> Result<Self, String> {
        let mut secrets = Vec::new();
        for (variable, key) in &program.secrets {
            let secret = keys(key).ok_or_else(|| no_key(key))?;
            secrets.push((variable.clone(), secret));
        }
        let kept = secrets.iter().map(|(_, secret)| secret.clone()).collect();
        let (own, wanted) = (name.to_owned(), program.clone());
        let started = tokio::task::spawn_blocking(move || launch.launch(&own, &wanted, secrets)).await;
        let mut launched =
            started.map_err(|_| "it could not be started")?.map_err(|e| reason(&e.to_string()))?;
        let stream = split(&mut launched).map_err(|e| e.to_string())?;
        let (read, write) = tokio::io::split(stream);
        let transport = AsyncRwTransport::new_client(read, write).with_max_line_length(LONGEST_MESSAGE);
        match us().serve(transport).await {
            Ok(service) => Ok(Self { service, program: Some(launched), secrets: kept }),
            Err(error) => {
                let said = (launched.complaints)();
                let said = if said.is_empty() { error.to_string() } else { said };
                Err(reason(&words::without(said, &kept)))
            }
        }
    }

    /// Shakes hands with a server that runs elsewhere.
    pub(crate) async fn to_address(address: &Address, keys: &Keys) -> Result<Self, String> {
        let key = match &address.key {
            Some(name) => Some(keys(name).ok_or_else(|| no_key(name))?),
            None => None,
        };
        let client = Bounded::new(&address.url).map_err(|e| reason(&e.to_string()))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
            .max_sse_event_size(LONGEST_MESSAGE);
        if let Some(key) = &key {
            config = config.auth_header(key.as_str());
        }
        let mut secrets: Vec<_> = key.into_iter().collect();
        secrets.extend(address.url.query_pairs().map(|(_, value)| Zeroizing::new(value.into_owned())));
        let transport = StreamableHttpClientTransport::with_client(client, config);
        match us().serve(transport).await {
            Ok(service) => Ok(Self { service, program: None, secrets }),
            Err(error) => Err(reason(&words::without(error.to_string(), &secrets))),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// What the server says of its tools.
    pub(crate) async fn tools(&self) -> Result<Vec<Told>, String> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let list = self.service.list_tools(page).await;
            let list = list.map_err(|e| self.clean(&e.to_string()))?;
            tools.extend(list.tools.into_iter().map(told));
            cursor = list.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(tools)
    }

    /// Makes a call. Whoever does not wait for its end cancels it.
    pub(crate) async fn call(
        &self,
        tool: &str,
        input: JsonObject,
        patience: Duration,
    ) -> Result<Said, Broken> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let called = tokio::time::timeout(patience, self.service.call_tool_once(params)).await;
        let Ok(called) = called else { return Err(Broken::Silent) };
        match called {
            Ok(CallToolResponse::Complete(result)) => Ok(words::of(result, &self.secrets)),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(Broken::Refused("it asks for more, and there is nobody to answer it".into()))
            }
            Ok(_) => Err(Broken::Refused("it answered in a way that is not known here".into())),
            Err(ServiceError::McpError(error)) => Err(Broken::Refused(self.clean(&error.message))),
            Err(ServiceError::UnexpectedResponse) => {
                Err(Broken::Refused("it answered with something that is no result".into()))
            }
            Err(error) => Err(Broken::Gone(self.last_words(&error.to_string()))),
        }
    }

    fn clean(&self, text: &str) -> String {
        reason(&words::without(text.to_owned(), &self.secrets))
    }

    /// What a program said before it ended tells more than that it did.
    fn last_words(&self, otherwise: &str) -> String {
        let said = self.program.as_ref().map(|program| (program.complaints)()).unwrap_or_default();
        self.clean(if said.is_empty() { otherwise } else { &said })
    }
}

fn no_key(name: &str) -> String {
    format!("there is no key {name:?} in the vault; set it with: choir keys set {name}")
}

/// Who we say we are, and that we do nothing for a server: no models, no folders, no questions to the person.
fn us() -> ClientConfig {
    let us = Implementation::new("choir", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us)
}

fn split(launched: &mut Launched) -> std::io::Result<tokio::net::UnixStream> {
    let stream = launched.stream.try_clone()?;
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

fn told(tool: Tool) -> Told {
    Told {
        hint: tool.annotations.as_ref().and_then(|hints| hints.read_only_hint).unwrap_or(false),
        description: tool.description.map(|words| words.into_owned()).or(tool.title).unwrap_or_default(),
        input: Value::Object((*tool.input_schema).clone()),
        tool: tool.name.into_owned(),
    }
}
