//! Signatures of Standard Webhooks: HMAC-SHA256 over id, time and body.
//!
//! `webhook-signature: v1,BASE64` of the HMAC of `ID.SECONDS.BODY`, with `webhook-id` and `webhook-timestamp` beside it
//! (standard-webhooks, spec/standard-webhooks.md, "Signature scheme").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A key to sign with.
#[derive(Clone)]
pub(crate) struct SigningKey(Vec<u8>);

impl SigningKey {
    /// `whsec_` and the key in base64; any other text is the key itself.
    pub(crate) fn new(text: &str) -> Self {
        let encoded = text.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok());
        Self(encoded.unwrap_or_else(|| text.as_bytes().to_vec()))
    }

    /// What `webhook-signature` says.
    pub(crate) fn sign(&self, id: &str, seconds: u64, body: &[u8]) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length is a key");
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference implementations.
    #[test]
    fn a_signature_is_that_of_the_specification() {
        let key = SigningKey::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
