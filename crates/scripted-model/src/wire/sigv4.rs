//! Verifies AWS Signature Version 4 as the service does: "Create a signed AWS API request" in the IAM user guide.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::Request;

/// The only known access key; its secret is the server's key.
pub const ACCESS_KEY: &str = "AKIASCRIPTEDMODEL000";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "bedrock";
const BLOCK: usize = 64;

/// Whether the request was signed with our access key and this secret. The age of the signature is not checked.
pub(super) fn is_valid(request: &Request, authorization: &str, secret: &str) -> bool {
    expected(request, authorization, secret).is_some_and(|(given, expected)| given == expected)
}

/// The signature in the request, and the correct one.
fn expected(request: &Request, authorization: &str, secret: &str) -> Option<(String, String)> {
    let parts = authorization.strip_prefix(ALGORITHM)?;
    let part = |name: &str| parts.split(',').find_map(|part| part.trim().strip_prefix(name));
    let (credential, signed, given) = (part("Credential=")?, part("SignedHeaders=")?, part("Signature=")?);
    let scope = credential.strip_prefix(ACCESS_KEY)?.strip_prefix('/')?;
    let [date, region, SERVICE, "aws4_request"] = scope.split('/').collect::<Vec<_>>()[..] else {
        return None;
    };
    let moment = request.header("x-amz-date").filter(|moment| moment.starts_with(date))?;
    if !["host", "x-amz-date"].iter().all(|name| signed.split(';').any(|header| header == *name)) {
        return None;
    }
    let canonical = canonical(request, signed)?;
    let to_sign = format!("{ALGORITHM}\n{moment}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
    let key = [date, region, SERVICE, "aws4_request"]
        .iter()
        .fold(format!("AWS4{secret}").into_bytes(), |key, part| hmac(&key, part.as_bytes()).to_vec());
    Some((given.to_owned(), hex(&hmac(&key, to_sign.as_bytes()))))
}

fn canonical(request: &Request, signed: &str) -> Option<String> {
    // All services but S3 encode the path once more than it was sent.
    let mut text = format!("POST\n{}\n\n", encode(&request.path));
    for name in signed.split(';') {
        let value = request.header(name)?.split_whitespace().collect::<Vec<_>>().join(" ");
        let _ = writeln!(text, "{name}:{value}");
    }
    let _ = write!(text, "\n{signed}\n{}", hex(&Sha256::digest(&request.body)));
    Some(text)
}

fn encode(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// HMAC-SHA256 (RFC 2104).
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use hyper::{HeaderMap, Method};

    use super::*;

    #[test]
    fn hmac_matches_rfc_4231() {
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(&hmac(b"Jefe", b"what do ya want for nothing?")), expected);
        let expected = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(
            hex(&hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            expected
        );
    }

    #[test]
    fn a_signature_is_valid_for_one_secret_and_one_body() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("host", "127.0.0.1:1"), ("x-amz-date", "20260101T000000Z")] {
            headers.insert(name, value.parse().unwrap());
        }
        let path = "/model/a%3A0/invoke-with-response-stream".to_owned();
        let mut request = Request { method: Method::POST, path, headers, body: "{}".into() };
        let authorization = |signature: &str| {
            format!(
                "{ALGORITHM} Credential={ACCESS_KEY}/20260101/eu-central-1/bedrock/aws4_request, \
                 SignedHeaders=host;x-amz-date, Signature={signature}"
            )
        };
        let (_, signature) = expected(&request, &authorization(""), "secret").unwrap();
        // From an independent implementation in Python.
        assert_eq!(signature, "74e2b64a17644394a07adb45934b13cea574af091cf086e1f82eb13c6d374126");
        assert!(is_valid(&request, &authorization(&signature), "secret"));
        assert!(!is_valid(&request, &authorization(&signature), "other"));
        request.body = "{ }".into();
        assert!(!is_valid(&request, &authorization(&signature), "secret"));
    }
}
