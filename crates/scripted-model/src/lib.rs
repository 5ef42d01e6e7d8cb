//! A test tool, never part of the product: a server that speaks the wire protocol of each provider of models, and
//! answers from a script.
//!
//! | wire | request | answer |
//! |---|---|---|
//! | [`Wire::Anthropic`] | `POST /v1/messages` | server-sent events, with a ping |
//! | [`Wire::OpenAi`] | `POST /v1/chat/completions` (or any path that ends so) | server-sent events, `[DONE]` |
//! | [`Wire::Bedrock`] | `POST /model/{id}/invoke-with-response-stream` | AWS event stream |
//!
//! ```
//! use scripted_model::{Script, Server, Wire};
//! let script = Script::parse("[[agent]]\nrole = \"writer\"\n[[agent.step]]\ntext = \"Done.\"")?;
//! let server = Server::start(script);
//! // ... point the client at server.url(Wire::Anthropic), with server.key(), then:
//! assert!(server.refusals().is_empty());
//! # Ok::<(), scripted_model::ScriptError>(())
//! ```
//!
//! # Strictness
//!
//! What the real service refuses is refused, with its status and its JSON: a missing or wrong key, a missing version,
//! fields that it does not know, empty messages and text blocks, tools without a schema of an object, calls that were
//! not answered exactly once in the message that follows. Only streams are served: `stream: false` gets a 400.
//! Anthropic's versions 2023-06-01 and 2026-10-21 are known (the latter refuses sampling parameters), and its key is
//! taken from `x-api-key` or as a bearer; Bedrock takes a bearer or a signature of [`ACCESS_KEY`].
//!
//! # Scripts
//!
//! ```toml
//! objective = "solar"       # optional: see "Several scripts"
//! again = "once more"       # optional: whoever is told this takes its last turn again, whatever that turn expects
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
//! usage = { input = 120, output = 30, cache_read = 0, cache_write = 0 }  # by default bytes / 4, alike on all wires
//!
//! [[agent.step]]
//! expect = ["in the last message or in a result of its tools"]   # all of them, or 400
//! expect_not = ["in neither"]                                    # none of them, or 400
//! fault = "rate_limit"      # see below
//! times = 1                 # how often it happens before the step is played; 1 unless told
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
//! On all wires: `cut` (the connection breaks inside an event, half-way), `cut_at_once` (after the head), `bad_json`
//! (the input of the first call is broken), `slow` (half an event at a time, `delay_ms` apart), `silent` (no answer
//! until the client goes). Refused and shortened replies have no calls.
//!
//! # What an answer depends on
//!
//! On the request alone: a client that crashed and asks again gets the same bytes. The number of assistant turns is
//! the number of the step; messages of the assistant that follow each other are one turn, and a turn that is taken again
//! does not count. Ids of calls are made of agent, turn, number and a hash of the first message: two conversations that
//! begin alike have the same ids. The one
//! thing that is remembered is how often the fault of each step happened, for all conversations together.
//!
//! A request that no agent matches, that goes beyond the last step (`script is over for agent X at step N`) or that
//! is not as expected gets a 400 that says so, beginning with `scripted model:`; see [`Server::refusals`].
//!
//! # Several scripts
//!
//! With a folder of scripts (`scripted-model FOLDER`, or [`Options`]), those whose `objective` stands in the first
//! message come first, in the order of their names, then those without one. Since the brief of a worker need not
//! repeat the objective, an agent with a `when` that matches is then found in any script. Where there is one script
//! only, its objective does not matter.
//!
//! The program prints `{"urls": {"anthropic": …, "openai": …, "bedrock": …}, "key": …, "access_key": …}` on one line
//! and serves until it is killed. `GET /requests` gives what was asked so far, as [`Server::requests`] does.

mod choice;
mod conversation;
mod failure;
mod recorded;
mod reply;
mod script;
mod server;
mod stage;
mod wire;

pub use recorded::{Outcome, Recorded};
pub use script::{Agent, Call, Fault, Script, ScriptError, Step, Usage};
pub use server::{Options, Server};
pub use wire::{ACCESS_KEY, Wire};
