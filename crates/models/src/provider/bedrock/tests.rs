//! Bedrock's streams: complete, truncated and with exceptions.

use super::{super::event_stream::encode, *};
use crate::chat::StopReason;

fn chunk(event: &str) -> Vec<u8> {
    let payload = format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(event));
    encode(&[(":message-type", "event"), (":event-type", "chunk")], payload.as_bytes())
}

fn exception(name: &str, message: &str) -> Vec<u8> {
    let payload = format!(r#"{{"message":"{message}"}}"#);
    encode(&[(":message-type", "exception"), (":exception-type", name)], payload.as_bytes())
}

fn read(stream: &[u8]) -> Result<RawReply, ProviderError> {
    let mut reader = Bedrock.reader();
    for piece in stream.chunks(7) {
        reader.read(piece, &mut Vec::new())?;
    }
    reader.finish()
}

fn whole() -> Vec<u8> {
    [
        chunk(r#"{"type":"message_start","message":{"usage":{"input_tokens":3,"output_tokens":1}}}"#),
        chunk(r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
        chunk(r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#),
        chunk(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#),
        chunk(r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":3}}"#),
    ]
    .concat()
}

#[test]
fn a_complete_reply_is_decoded() {
    let reply = read(&whole()).unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("Hello", StopReason::End));
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((3, 2)));
}

#[test]
fn a_stream_truncated_anywhere_is_an_error() {
    let whole = whole();
    for length in 0..whole.len() {
        let class = read(&whole[..length]).map_err(|error| error.class);
        assert_eq!(class, Err(ErrorClass::Retryable), "after {length} bytes");
    }
}

#[test]
fn every_exception_is_classified() {
    let cases = [
        ("throttlingException", "Too many requests", ErrorClass::RateLimit { after: None }),
        ("modelStreamErrorException", "Model error", ErrorClass::Retryable),
        ("modelTimeoutException", "Too slow", ErrorClass::Retryable),
        ("internalServerException", "Oops", ErrorClass::Retryable),
        ("serviceUnavailableException", "Later", ErrorClass::Overloaded),
        ("validationException", "Malformed input", ErrorClass::BadRequest),
        ("validationException", "Input is too long for requested model.", ErrorClass::ContextTooLong),
        ("newIn2030Exception", "?", ErrorClass::Retryable),
    ];
    for (name, message, class) in cases {
        let stream = [whole()[..200].to_vec(), Vec::new()].concat();
        assert!(read(&stream).is_err());
        let error = read(&exception(name, message)).unwrap_err();
        assert_eq!(error.class, class, "{name}");
        assert!(error.message.starts_with(message.trim_end_matches('.')), "{}", error.message);
    }
}

#[test]
fn an_error_frame_without_an_exception_is_retryable() {
    let frame = encode(
        &[
            (":message-type", "error"),
            (":error-code", "InternalError"),
            (":error-message", "An internal error"),
        ],
        b"",
    );
    let error = read(&frame).unwrap_err();
    assert_eq!((error.class, error.message.as_str()), (ErrorClass::Retryable, "An internal error"));
}
