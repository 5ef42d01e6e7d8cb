//! A test tool, never part of the product: a server that speaks the wire protocol of each model provider and answers
//! from a script.
//!
//! | protocol | request | answer |
//! |---|---|---|
//! | [`Wire::Anthropic`] | `POST /v1/messages` | server-sent events, with a ping |
//! | [`Wire::OpenAi`] | `POST /v1/chat/completions` (or any path that ends so) | server-sent events, `[DONE]` |
//! | [`Wire::Bedrock`] | `POST /model/{id}/invoke-with-response-stream` | AWS event stream |
//!
//! ```
//! use scripted_model::{Script, ScriptedServer, Wire};
//! let script = Script::parse("[[agent]]\nrole = \"writer\"\n[[agent.step]]\ntext = \"Done.\"")?;
//! let server = ScriptedServer::start(script);
//! // ... point the client at server.url(Wire::Anthropic), with server.key(), then:
//! assert!(server.refusals().is_empty());
//! # Ok::<(), scripted_model::ScriptError>(())
//! ```
//!
//! # Strictness
//!
//! The server rejects every request that the real service rejects, with the same status and JSON: a missing or wrong
//! key, a missing version, unknown fields, empty messages and text blocks, tools without an object schema, and calls
//! without exactly one result in the next message. Only streams are served: `stream: false` gets a 400. Anthropic's
//! versions 2023-06-01 and 2026-10-21 are supported (the latter rejects sampling parameters); its key may be in
//! `x-api-key` or a bearer token. Bedrock accepts a bearer token or a signature with [`ACCESS_KEY`].
//!
//! # Scripts
//!
//! ```toml
//! objective = "solar"       # optional: see "Several scripts"
//! again = "once more"       # optional: this text in a message repeats the last turn, without checking `expect`
//! left_out = "are gone"     # optional: "7 are gone" in the first message counts as seven turns
//! context = 8000            # optional: a request with more tokens gets `context_too_long`
//!
//! [[agent]]                 # the first agent in the file that matches is played
//! role = "researcher"       # the system prompt has "You are the researcher" (in any case); without it: any prompt
//! when = "panels"           # optional: the first message has this text
//!
//! [[agent.step]]            # step N answers a request with N assistant turns in it
//! text = "I will look."
//! calls = [ { tool = "read", input = { path = "a.md" } } ]
//! usage = { input = 120, output = 30, cache_read = 0, cache_write = 0 }  # by default bytes / 4, in all protocols
//!
//! [[agent.step]]
//! expect = ["in the last message or in a tool result"]           # all of them, or 400
//! expect_not = ["in neither"]                                    # none of them, or 400
//! fault = "rate_limit"      # see below
//! times = 1                 # how often it happens before the step is played; 1 by default
//! retry_after = 2           # seconds; only with rate_limit
//! delay_ms = 5              # before the first byte; with `slow`, between chunks
//! text = "Done."
//! ```
//!
//! | fault | Anthropic | OpenAI | Bedrock |
//! |---|---|---|---|
//! | `rate_limit` | 429 `rate_limit_error` | 429 `rate_limit_exceeded` | 429 `ThrottlingException` |
//! | `overloaded` | 529 `overloaded_error` | 503 `server_error` | 503 `ServiceUnavailableException` |
//! | `auth` | 401 `authentication_error` | 401 `invalid_api_key` | 403 `UnrecognizedClientException` |
//! | `bad_request` | 400 `invalid_request_error` | 400 `invalid_request_error` | 400 `ValidationException` |
//! | `context_too_long` | 400 "prompt is too long" | 400 `context_length_exceeded` | 400 "Input is too long" |
//! | `server_error` | 500 `api_error` | 500 `server_error` | 500 `InternalServerException` |
//! | `stream_error` | event `error`, overloaded | a chunk with `error` | exception frame `throttlingException` |
//! | `refuse` | `stop_reason: refusal` | `finish_reason: content_filter` | as Anthropic |
//! | `length` | `stop_reason: max_tokens`, half the text | `finish_reason: length` | as Anthropic |
//!
//! The same in all protocols: `cut` (the connection breaks halfway, inside an event), `cut_at_once` (it breaks after the
//! headers), `bad_json` (the input of the first call is broken), `slow` (half an event at a time, `delay_ms` apart),
//! `silent` (no answer until the client disconnects). Refused and shortened replies have no calls.
//!
//! # Determinism
//!
//! Only on the request: a client that crashed and repeats its request gets the same bytes. The number of assistant turns
//! is the number of the step; consecutive assistant messages are one turn, and a repeated turn does not count. Call ids
//! consist of agent, turn, number and a hash of the first message: conversations with the same first message have the
//! same ids. The only state is how often the fault of each step has happened, over all conversations.
//!
//! A request gets a 400 with a message that starts with `scripted model:` if no agent matches, if it goes beyond the
//! last step (`script is over for agent X at step N`), or if an expectation fails; see [`ScriptedServer::refusals`].
//!
//! # Several scripts
//!
//! With a folder of scripts (`scripted-model FOLDER`, or [`ServerOptions`]), scripts whose `objective` is in the first
//! message come first, sorted by name, then those without one. The brief of a worker may lack the objective, so an agent
//! whose `when` matches is then found in any script. With a single script, its objective is ignored.
//!
//! The program prints `{"urls": {"anthropic": …, "openai": …, "bedrock": …}, "key": …, "access_key": …}` on one line
//! and serves until it is killed. `GET /requests` returns all requests so far, like [`ScriptedServer::requests`].

mod conversation;
mod failure;
mod player;
mod recording;
mod reply;
mod script;
mod server;
mod step_choice;
mod wire;

pub use recording::{RecordedRequest, RequestOutcome};
pub use script::{Agent, Call, Fault, Script, ScriptError, ScriptedTurn, Usage};
pub use server::{ScriptedServer, ServerOptions};
pub use wire::{ACCESS_KEY, Wire};
