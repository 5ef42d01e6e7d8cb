//! Error responses in the documented form of each provider.

use std::time::Duration;

use super::*;

fn error_of(status: u16, headers: &[(&'static str, &str)], body: &str) -> ProviderError {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, value.parse().unwrap());
    }
    from_response(StatusCode::from_u16(status).unwrap(), &map, body.as_bytes())
}

fn class(status: u16, body: &str) -> ErrorClass {
    error_of(status, &[], body).class
}

#[test]
fn errors_of_anthropic_are_classified() {
    let error = |kind: &str, message: &str| {
        format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}},"request_id":"r"}}"#)
    };
    let cases = [
        (400, "invalid_request_error", "max_tokens: must be positive", ErrorClass::BadRequest),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210000 tokens > 200000 maximum",
            ErrorClass::ContextTooLong,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 3",
            ErrorClass::ContextTooLong,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the Anthropic API.",
            ErrorClass::Auth,
        ),
        (401, "authentication_error", "invalid x-api-key", ErrorClass::Auth),
        (402, "billing_error", "pay", ErrorClass::Auth),
        (403, "permission_error", "no", ErrorClass::Auth),
        (404, "not_found_error", "model: claude-9", ErrorClass::Unavailable),
        (413, "request_too_large", "ChatRequest exceeds the maximum size", ErrorClass::ContextTooLong),
        (429, "rate_limit_error", "slow", RATE_LIMITED),
        (500, "api_error", "oops", ErrorClass::Retryable),
        (504, "timeout_error", "slow", ErrorClass::Retryable),
        (529, "overloaded_error", "Overloaded", ErrorClass::Overloaded),
    ];
    for (status, kind, message, expected) in cases {
        assert_eq!(class(status, &error(kind, message)), expected, "{status} {kind}: {message}");
    }
}

#[test]
fn errors_of_openai_and_compatible_servers_are_classified() {
    let cases = [
        (
            "OpenAI",
            401,
            r#"{"error":{"message":"Incorrect API key","type":"invalid_request_error","code":"invalid_api_key"}}"#,
            ErrorClass::Auth,
        ),
        (
            "OpenAI",
            429,
            r#"{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}"#,
            RATE_LIMITED,
        ),
        (
            "OpenAI",
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            ErrorClass::Auth,
        ),
        (
            "OpenAI",
            400,
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}"#,
            ErrorClass::ContextTooLong,
        ),
        (
            "OpenAI",
            400,
            r#"{"error":{"message":"Unknown parameter","type":"invalid_request_error","code":null}}"#,
            ErrorClass::BadRequest,
        ),
        (
            "OpenAI",
            404,
            r#"{"error":{"message":"The model does not exist","code":"model_not_found"}}"#,
            ErrorClass::Unavailable,
        ),
        (
            "OpenAI",
            500,
            r#"{"error":{"message":"The server had an error","type":"server_error"}}"#,
            ErrorClass::Retryable,
        ),
        (
            "OpenAI",
            503,
            r#"{"error":{"message":"The engine is currently overloaded"}}"#,
            ErrorClass::Overloaded,
        ),
        ("Z.ai", 429, r#"{"error":{"code":"1302","message":"High concurrency"}}"#, RATE_LIMITED),
        ("Z.ai", 429, r#"{"error":{"code":"1113","message":"Insufficient balance"}}"#, ErrorClass::Auth),
        (
            "Z.ai",
            400,
            r#"{"error":{"code":"1261","message":"Prompt exceeds max length"}}"#,
            ErrorClass::ContextTooLong,
        ),
        ("Z.ai", 400, r#"{"error":{"code":"1211","message":"Unknown Model"}}"#, ErrorClass::Unavailable),
        (
            "Moonshot",
            429,
            r#"{"error":{"type":"engine_overloaded_error","message":"busy"}}"#,
            ErrorClass::Overloaded,
        ),
        (
            "Moonshot",
            429,
            r#"{"error":{"type":"exceeded_current_quota_error","message":"recharge"}}"#,
            ErrorClass::Auth,
        ),
        ("Moonshot", 429, r#"{"error":{"type":"rate_limit_reached_error","message":"rpm"}}"#, RATE_LIMITED),
        (
            "Moonshot",
            400,
            r#"{"error":{"type":"invalid_request_error","message":"Your request exceeded model token limit: 8192"}}"#,
            ErrorClass::ContextTooLong,
        ),
        ("Ollama", 404, r#"{"error":"model \"x\" not found"}"#, ErrorClass::Unavailable),
        (
            "vLLM",
            400,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","code":400}"#,
            ErrorClass::ContextTooLong,
        ),
        (
            "llama.cpp",
            400,
            r#"{"error":{"code":400,"message":"too large","type":"exceed_context_size_error"}}"#,
            ErrorClass::ContextTooLong,
        ),
        (
            "llama.cpp",
            503,
            r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
            ErrorClass::Overloaded,
        ),
        ("a proxy", 502, "<html>Bad Gateway</html>", ErrorClass::Retryable),
        ("a redirect", 301, "", ErrorClass::Unavailable),
    ];
    for (server, status, body, expected) in cases {
        assert_eq!(class(status, body), expected, "{server} {status} {body}");
    }
}

#[test]
fn errors_of_bedrock_are_classified_by_exception_name() {
    let cases = [
        (403, "AccessDeniedException", "You don't have access to the model", ErrorClass::Auth),
        (403, "UnrecognizedClientException", "The security token is invalid", ErrorClass::Auth),
        (403, "ExpiredTokenException", "The security token is expired", ErrorClass::Auth),
        (400, "ValidationException", "Malformed input request", ErrorClass::BadRequest),
        (400, "ValidationException", "Input is too long for requested model.", ErrorClass::ContextTooLong),
        (404, "ResourceNotFoundException", "Could not resolve the model", ErrorClass::Unavailable),
        (408, "ModelTimeoutException", "slow", ErrorClass::Retryable),
        (424, "ModelErrorException", "failed", ErrorClass::Retryable),
        (429, "ThrottlingException", "Too many tokens", RATE_LIMITED),
        (429, "ModelNotReadyException", "not ready", ErrorClass::Overloaded),
        (400, "ServiceQuotaExceededException", "quota", RATE_LIMITED),
        (500, "InternalServerException", "oops", ErrorClass::Retryable),
        (503, "ServiceUnavailableException", "later", ErrorClass::Overloaded),
    ];
    for (status, exception, message, expected) in cases {
        let name = format!("{exception}:http://internal.amazon.com/coral/com.amazon.bedrock/");
        let body = format!(r#"{{"message":"{message}"}}"#);
        let error = error_of(status, &[("x-amzn-errortype", &name)], &body);
        assert_eq!(error.class, expected, "{exception}");
    }
}

#[test]
fn a_rate_limit_includes_its_retry_delay() {
    let after = |seconds| ErrorClass::RateLimit { after: Some(Duration::from_secs(seconds)) };
    assert_eq!(error_of(429, &[("retry-after", "7")], "{}").class, after(7));
    // A date in the past means no delay.
    assert_eq!(error_of(429, &[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")], "{}").class, after(0));
    assert_eq!(error_of(529, &[("retry-after", "7")], "{}").class, ErrorClass::Overloaded);
}

#[test]
fn the_message_quotes_the_provider_and_gives_advice() {
    let error = error_of(401, &[], r#"{"error":{"message":"Incorrect API key.","code":"invalid_api_key"}}"#);
    assert_eq!(
        error.message,
        "Incorrect API key (HTTP 401). Check the key and the account in Settings, Models."
    );
    assert_eq!(error_of(500, &[], "").message, "The provider returned an empty error (HTTP 500)");
    assert!(error_of(500, &[], &"x".repeat(10_000)).message.len() < 500);
}
