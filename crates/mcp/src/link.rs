//! A server that answers: the connection to it, from the handshake to its end.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ClientConfig, Implementation, JsonObject,
    PaginatedRequestParams, Tool,
};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rmcp::{RoleClient, ServiceExt};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::http::Bounded;
use crate::offer::Told;
use crate::running::{Programs, Running};
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
    /// The program, where it is one of ours, until the link is ended.
    program: Mutex<Option<Running>>,
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
        programs: &Programs,
    ) -> Result<Self, String> {
        let mut secrets = Vec::new();
        for (variable, key) in &program.secrets {
            let secret = keys(key).ok_or_else(|| no_key(key))?;
            secrets.push((variable.clone(), secret));
        }
        let kept: Vec<_> = secrets.iter().map(|(_, secret)| secret.clone()).collect();
        let started = programs.start(launch, name.to_owned(), program.clone(), secrets).await;
        let running = started.map_err(|e| reason(&words::without(e.to_string(), &kept)))?;
        let stream = running.launched().map(split).ok_or("it could not be started")?;
        let (read, write) = tokio::io::split(stream.map_err(|e| e.to_string())?);
        let transport = AsyncRwTransport::new_client(read, write).with_max_line_length(LONGEST_MESSAGE);
        match us().serve(transport).await {
            Ok(service) => Ok(Self { service, program: Mutex::new(Some(running)), secrets: kept }),
            Err(error) => {
                let said = complaints(&running);
                let said = if said.is_empty() { why(&error) } else { said };
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
            Ok(service) => Ok(Self { service, program: Mutex::default(), secrets }),
            Err(error) => Err(reason(&words::without(why(&error), &secrets))),
        }
    }

    fn program(&self) -> MutexGuard<'_, Option<Running>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the program, whoever else still has the link.
    pub(crate) fn end(&self) {
        drop(self.program().take());
    }

    pub(crate) fn is_over(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Whether the program still sees nothing that it may not.
    pub(crate) async fn is_confined(&self) -> bool {
        let check = self.program().as_ref().and_then(Running::launched).map(|it| Arc::clone(&it.is_confined));
        match check {
            Some(check) => tokio::task::spawn_blocking(move || check()).await.unwrap_or(false),
            None => true,
        }
    }

    /// What the server says of its tools.
    pub(crate) async fn tools(&self) -> Result<Vec<Told>, String> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..PAGES {
            let page = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let list = self.service.list_tools(page).await;
            let list = list.map_err(|e| self.clean(&e.to_string()))?;
            tools.extend(list.tools.into_iter().filter_map(|tool| self.told(tool)));
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

    /// A tool in the server's words, without its secrets. One that has a secret for a name could not be called.
    fn told(&self, tool: Tool) -> Option<Told> {
        let without = |text: String| words::without(text, &self.secrets);
        let name = tool.name.into_owned();
        (without(name.clone()) == name).then(|| Told {
            tool: name,
            hint: tool.annotations.and_then(|hints| hints.read_only_hint).unwrap_or(false),
            description: without(tool.description.map(Into::into).or(tool.title).unwrap_or_default()),
            input: words::all_without(Value::Object((*tool.input_schema).clone()), &self.secrets),
        })
    }

    fn clean(&self, text: &str) -> String {
        reason(&words::without(text.to_owned(), &self.secrets))
    }

    /// What a program said before it ended tells more than that it did.
    fn last_words(&self, otherwise: &str) -> String {
        let said = self.program().as_ref().map(complaints).unwrap_or_default();
        self.clean(if said.is_empty() { otherwise } else { &said })
    }
}

/// Why nobody answered, down to its causes and without names of types.
fn why(error: &ClientInitializeError) -> String {
    let ClientInitializeError::TransportError { error, .. } = error else { return error.to_string() };
    let mut first: &(dyn Error + 'static) = &*error.error;
    // The SDK does not name this one's cause.
    if let Some(StreamableHttpError::Client(error)) =
        first.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        first = error;
    }
    let causes = std::iter::successors(Some(first), |error| (**error).source());
    causes.map(ToString::to_string).fold(String::new(), |said, cause| match said {
        said if said.is_empty() => cause,
        // Most repeat the one below.
        said if said.contains(&cause) => said,
        said => format!("{said}: {cause}"),
    })
}

fn no_key(name: &str) -> String {
    format!("there is no key {name:?} in the vault; set it with: choir keys set {name}")
}

/// Who we say we are, and that we do nothing for a server: no models, no folders, no questions to the person.
fn us() -> ClientConfig {
    let us = Implementation::new("choir", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us)
}

fn split(launched: &Launched) -> std::io::Result<tokio::net::UnixStream> {
    let stream = launched.stream.try_clone()?;
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

fn complaints(running: &Running) -> String {
    running.launched().map(|launched| (launched.complaints)()).unwrap_or_default()
}
