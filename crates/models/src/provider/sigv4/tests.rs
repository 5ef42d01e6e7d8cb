//! Signatures compared with those of the AWS documentation and of botocore.

use std::time::Duration;

use super::*;

#[test]
fn the_signature_matches_the_example_of_the_aws_documentation() {
    // "Signature Version 4 signing process", the request for ListUsers.
    let key = AccessKey::parse("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY").unwrap();
    let signing = Signing { key, region: "us-east-1", service: "iam", now: SystemTime::UNIX_EPOCH };
    let headers = [
        ("content-type", "application/x-www-form-urlencoded; charset=utf-8".to_owned()),
        ("host", "iam.amazonaws.com".to_owned()),
        ("x-amz-date", "20150830T123600Z".to_owned()),
    ];
    let query = "Action=ListUsers&Version=2010-05-08";
    let signed = signing.authorize("20150830T123600Z", "GET", "/", query, &headers, b"");
    let signature = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7";
    assert!(signed.authorization.ends_with(signature), "{}", signed.authorization);
}

#[test]
fn the_signature_of_a_bedrock_request_matches_botocore() {
    let cases = [
        ("", "52ec207b33c73d79fdc112215395b53eefa8b089f801275578a1543d47e7f4d8"),
        (":TOKEN/with+chars==", "d1172febe7b90643fd2c0c33df488515272526c42f7cd8ebd195098411c80352"),
    ];
    for (session, signature) in cases {
        let key = format!("AKIDEXAMPLE:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY{session}");
        let key = AccessKey::parse(&key).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_746_096);
        let signing = Signing { key, region: "us-east-1", service: "bedrock", now };
        let path = "model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/invoke-with-response-stream";
        let url = Url::parse(&format!("https://bedrock-runtime.us-east-1.amazonaws.com/{path}")).unwrap();
        let signed = signing.sign(&url, "application/json", br#"{"max_tokens":1}"#).unwrap();
        assert_eq!(signed.date, "20261115T123456Z");
        assert!(signed.authorization.ends_with(signature), "{}", signed.authorization);
    }
}

#[test]
fn an_api_key_is_not_parsed_as_an_access_key() {
    assert!(AccessKey::parse("ABSKQmVkcm9jaw==").is_none());
    assert!(AccessKey::parse(":secret").is_none());
}
