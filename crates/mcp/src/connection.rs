//! A connection to a server, from the handshake to its end.

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

use crate::answer::{self, ToolAnswer, one_line};
use crate::definition::RawTool;
use crate::http::BoundedHttpClient;
use crate::process::{ProgramHandle, Programs};
use crate::settings::{Address, Program};
use crate::{Keys, Launch, LaunchedProgram};

/// The maximum bytes of a message; a longer one is dropped, and its call times out.
const MAX_MESSAGE: usize = 4 << 20;
/// The maximum pages of a tool list, because a server could continue forever.
const MAX_PAGES: usize = 20;

/// See the module documentation.
pub(crate) struct Connection {
    service: RunningService<RoleClient, ClientConfig>,
    /// The program, if the server is one, until the connection is ended.
    program: Mutex<Option<ProgramHandle>>,
    secrets: Vec<Zeroizing<String>>,
}

/// Why a call has no answer.
pub(crate) enum CallFailure {
    /// The server returned an error and keeps running.
    Refused(String),
    /// The server has disconnected.
    Disconnected(String),
    TimedOut,
}

impl Connection {
    /// Starts a program and performs the handshake.
    pub(crate) async fn to_program(
        name: &str,
        program: &Program,
        launch: Arc<dyn Launch>,
        keys: &Keys,
        programs: &Programs,
    ) -> Result<Self, String> {
        let mut secrets = Vec::new();
        for (variable, key) in &program.secrets {
            let secret = keys(key).ok_or_else(|| missing_key(key))?;
            secrets.push((variable.clone(), secret));
        }
        let kept: Vec<_> = secrets.iter().map(|(_, secret)| secret.clone()).collect();
        let started = programs.start(launch, name.to_owned(), program.clone(), secrets).await;
        let running = started.map_err(|e| one_line(&answer::redact(e.to_string(), &kept)))?;
        let stream = running.launched().map(split).ok_or("it could not be started")?;
        let (read, write) = tokio::io::split(stream.map_err(|e| e.to_string())?);
        let transport = AsyncRwTransport::new_client(read, write).with_max_line_length(MAX_MESSAGE);
        match client_config().serve(transport).await {
            Ok(service) => Ok(Self { service, program: Mutex::new(Some(running)), secrets: kept }),
            Err(error) => {
                let stderr = stderr_tail(&running);
                let reason = if stderr.is_empty() { handshake_error(&error) } else { stderr };
                Err(one_line(&answer::redact(reason, &kept)))
            }
        }
    }

    /// Performs the handshake with a server at a URL.
    pub(crate) async fn to_address(address: &Address, keys: &Keys) -> Result<Self, String> {
        let key = match &address.key {
            Some(name) => Some(keys(name).ok_or_else(|| missing_key(name))?),
            None => None,
        };
        let client = BoundedHttpClient::new(&address.url).map_err(|e| one_line(&e.to_string()))?;
        let mut config = StreamableHttpClientTransportConfig::with_uri(address.url.as_str())
            .max_sse_event_size(MAX_MESSAGE);
        if let Some(key) = &key {
            config = config.auth_header(key.as_str());
        }
        let mut secrets: Vec<_> = key.into_iter().collect();
        secrets.extend(address.url.query_pairs().map(|(_, value)| Zeroizing::new(value.into_owned())));
        let transport = StreamableHttpClientTransport::with_client(client, config);
        match client_config().serve(transport).await {
            Ok(service) => Ok(Self { service, program: Mutex::default(), secrets }),
            Err(error) => Err(one_line(&answer::redact(handshake_error(&error), &secrets))),
        }
    }

    fn program(&self) -> MutexGuard<'_, Option<ProgramHandle>> {
        self.program.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the program, even if other clones of the connection exist.
    pub(crate) fn end(&self) {
        drop(self.program().take());
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Checks that the program's restrictions still hold.
    pub(crate) async fn is_confined(&self) -> bool {
        let check =
            self.program().as_ref().and_then(ProgramHandle::launched).map(|it| Arc::clone(&it.is_confined));
        match check {
            Some(check) => tokio::task::spawn_blocking(move || check()).await.unwrap_or(false),
            None => true,
        }
    }

    /// Lists the server's tools.
    pub(crate) async fn tools(&self) -> Result<Vec<RawTool>, String> {
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let list = self.service.list_tools(page).await;
            let list = list.map_err(|e| self.sanitized(&e.to_string()))?;
            tools.extend(list.tools.into_iter().filter_map(|tool| self.raw_tool(tool)));
            cursor = list.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(tools)
    }

    /// Calls a tool. Dropping the future cancels the call.
    pub(crate) async fn call(
        &self,
        tool: &str,
        input: JsonObject,
        timeout: Duration,
    ) -> Result<ToolAnswer, CallFailure> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(input);
        let called = tokio::time::timeout(timeout, self.service.call_tool_once(params)).await;
        let Ok(called) = called else { return Err(CallFailure::TimedOut) };
        match called {
            Ok(CallToolResponse::Complete(result)) => Ok(answer::from_result(result, &self.secrets)),
            Ok(CallToolResponse::InputRequired(_)) => {
                Err(CallFailure::Refused("it asked for input from the person, which is not supported".into()))
            }
            Ok(_) => Err(CallFailure::Refused("it sent an unsupported kind of answer".into())),
            Err(ServiceError::McpError(error)) => Err(CallFailure::Refused(self.sanitized(&error.message))),
            Err(ServiceError::UnexpectedResponse) => {
                Err(CallFailure::Refused("it sent something that is not a result".into()))
            }
            Err(error) => Err(CallFailure::Disconnected(self.disconnect_reason(&error.to_string()))),
        }
    }

    /// A tool as the server describes it, with secrets redacted. A tool whose name contains a secret could not be
    /// called, so it is left out.
    fn raw_tool(&self, tool: Tool) -> Option<RawTool> {
        let redacted = |text: String| answer::redact(text, &self.secrets);
        let name = tool.name.into_owned();
        (redacted(name.clone()) == name).then(|| RawTool {
            tool: name,
            hint: tool.annotations.and_then(|hints| hints.read_only_hint).unwrap_or(false),
            description: redacted(tool.description.map(Into::into).or(tool.title).unwrap_or_default()),
            input: answer::redact_value(Value::Object((*tool.input_schema).clone()), &self.secrets),
        })
    }

    fn sanitized(&self, text: &str) -> String {
        one_line(&answer::redact(text.to_owned(), &self.secrets))
    }

    /// Prefers the program's standard error over the bare fact that it exited.
    fn disconnect_reason(&self, otherwise: &str) -> String {
        let stderr = self.program().as_ref().map(stderr_tail).unwrap_or_default();
        self.sanitized(if stderr.is_empty() { otherwise } else { &stderr })
    }
}

/// The chain of causes of a failed handshake, without type names.
fn handshake_error(error: &ClientInitializeError) -> String {
    let ClientInitializeError::TransportError { error, .. } = error else { return error.to_string() };
    let mut first: &(dyn Error + 'static) = &*error.error;
    // The SDK does not expose this error's cause.
    if let Some(StreamableHttpError::Client(error)) =
        first.downcast_ref::<StreamableHttpError<reqwest::Error>>()
    {
        first = error;
    }
    let causes = std::iter::successors(Some(first), |error| (**error).source());
    causes.map(ToString::to_string).fold(String::new(), |message, cause| match message {
        message if message.is_empty() => cause,
        // Many errors already include their cause.
        message if message.contains(&cause) => message,
        message => format!("{message}: {cause}"),
    })
}

fn missing_key(name: &str) -> String {
    format!("there is no key {name:?} in the vault; set it with: choir keys set {name}")
}

/// Our name and capabilities. We offer servers none: no sampling, no roots, no elicitation.
fn client_config() -> ClientConfig {
    let us = Implementation::new("choir", env!("CARGO_PKG_VERSION"));
    ClientConfig::new(ClientCapabilities::default(), us)
}

fn split(launched: &LaunchedProgram) -> std::io::Result<tokio::net::UnixStream> {
    let stream = launched.stream.try_clone()?;
    stream.set_nonblocking(true)?;
    tokio::net::UnixStream::from_std(stream)
}

fn stderr_tail(running: &ProgramHandle) -> String {
    running.launched().map(|launched| (launched.stderr_tail)()).unwrap_or_default()
}
