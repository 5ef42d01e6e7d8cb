//! Streams of Bedrock's, whole, cut and with exceptions.

use super::{super::frames::encode, *};
use crate::chat::Stop;

fn chunk(event: &str) -> Vec<u8> {
    let payload = format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(event));
    encode(&[(":message-type", "event"), (":event-type", "chunk")], payload.as_bytes())
}

fn exception(name: &str, message: &str) -> Vec<u8> {
    let payload = format!(r#"{{"message":"{message}"}}"#);
    encode(&[(":message-type", "exception"), (":exception-type", name)], payload.as_bytes())
}

fn read(stream: &[u8]) -> Result<RawReply, Failure> {
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
fn a_whole_reply_is_read() {
    let reply = read(&whole()).unwrap();
    assert_eq!((reply.text.as_str(), reply.stop), ("Hello", Stop::End));
    assert_eq!(reply.usage.map(|usage| (usage.input, usage.output)), Some((3, 2)));
}

#[test]
fn a_stream_cut_anywhere_is_no_reply() {
    let whole = whole();
    for length in 0..whole.len() {
        let class = read(&whole[..length]).map_err(|failure| failure.class);
        assert_eq!(class, Err(ErrorClass::Retryable), "after {length} bytes");
    }
}

#[test]
fn every_exception_has_its_class() {
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
        let failure = read(&exception(name, message)).unwrap_err();
        assert_eq!(failure.class, class, "{name}");
        assert!(failure.message.starts_with(message.trim_end_matches('.')), "{}", failure.message);
    }
}

#[test]
fn an_error_without_a_model_is_retryable() {
    let frame = encode(
        &[
            (":message-type", "error"),
            (":error-code", "InternalError"),
            (":error-message", "An internal error"),
        ],
        b"",
    );
    let failure = read(&frame).unwrap_err();
    assert_eq!((failure.class, failure.message.as_str()), (ErrorClass::Retryable, "An internal error"));
}
