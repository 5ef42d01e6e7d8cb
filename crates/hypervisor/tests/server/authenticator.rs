//! A passkey authenticator in software, together with the browser's part of WebAuthn.

use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::test_server::OWN_ORIGIN;

const PRESENT_AND_VERIFIED: u8 = 0b101;
const WITH_CREDENTIAL: u8 = 0b100_0000;

pub(crate) struct Authenticator {
    key: SigningKey,
    id: Vec<u8>,
    counter: u32,
    user: String,
    pub(crate) origin: String,
}

impl Authenticator {
    pub(crate) fn new(seed: u8) -> Self {
        let key = SigningKey::from_slice(&[seed; 32]).unwrap();
        Self { key, id: vec![seed; 16], counter: 0, user: String::new(), origin: OWN_ORIGIN.into() }
    }

    /// Answers `register/start`.
    pub(crate) fn create(&mut self, options: &Value) -> Value {
        let options = &options["publicKey"];
        assert_eq!(options["authenticatorSelection"]["residentKey"], "required");
        self.user = options["user"]["id"].as_str().unwrap().to_owned();
        let mut data = self.data(PRESENT_AND_VERIFIED | WITH_CREDENTIAL);
        data.extend([0; 16]);
        data.extend(u16::try_from(self.id.len()).unwrap().to_be_bytes());
        data.extend(&self.id);
        let point = self.key.verifying_key().to_sec1_point(false);
        data.extend([0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32]);
        data.extend(point.x().unwrap());
        data.extend([0x22, 0x58, 32]);
        data.extend(point.y().unwrap());
        let mut object = b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58".to_vec();
        object.push(u8::try_from(data.len()).unwrap());
        object.extend(data);
        let client = self.client("webauthn.create", &options["challenge"]);
        self.credential(json!({ "attestationObject": base64(&object), "clientDataJSON": base64(&client) }))
    }

    /// Answers `login/start`.
    pub(crate) fn get(&mut self, options: &Value) -> Value {
        self.counter += 1;
        let data = self.data(PRESENT_AND_VERIFIED);
        let client = self.client("webauthn.get", &options["publicKey"]["challenge"]);
        let mut signed = data.clone();
        signed.extend(Sha256::digest(&client));
        let signature: Signature = self.key.sign(&signed);
        self.credential(json!({
            "authenticatorData": base64(&data),
            "clientDataJSON": base64(&client),
            "signature": base64(signature.to_der().as_bytes()),
            "userHandle": self.user,
        }))
    }

    fn credential(&self, response: Value) -> Value {
        let id = base64(&self.id);
        json!({ "id": id, "rawId": id, "type": "public-key", "response": response, "extensions": {} })
    }

    fn client(&self, kind: &str, challenge: &Value) -> Vec<u8> {
        let data = json!({
            "type": kind, "challenge": challenge, "origin": self.origin, "crossOrigin": false,
        });
        data.to_string().into_bytes()
    }

    fn data(&self, flags: u8) -> Vec<u8> {
        let mut data = Sha256::digest(b"localhost").to_vec();
        data.push(flags);
        data.extend(self.counter.to_be_bytes());
        data
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let chunk = |three: &[u8]| {
        let bits = three.iter().chain(&[0, 0]).take(3).fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        let letters = [18, 12, 6, 0].map(|shift| char::from(LETTERS[bits >> shift & 63]));
        letters.into_iter().take(three.len() + 1).collect::<String>()
    };
    bytes.chunks(3).map(chunk).collect()
}
