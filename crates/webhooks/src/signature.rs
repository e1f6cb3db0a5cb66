//! Signatures of Standard Webhooks 1.0: `v1`, an HMAC-SHA256 that the receiver can repeat.
//!
//! ```text
//! signed            = id . seconds . body
//! webhook-signature = v1,<base64>[ v1,<base64>]      one for each key, the latest first
//! secret            = whsec_<base64 of the key>      what the receiver is given
//! ```
//!
//! The timestamp is signed with the rest, so that receivers refuse a copied delivery a few minutes later. No id
//! contains a full stop, so the parts cannot be shifted.

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use holdfast_domain::secret::WebhookKey;

/// Value of `webhook-signature` by these keys.
pub(crate) fn signatures(keys: &[WebhookKey], id: &str, seconds: i64, body: &[u8]) -> String {
    let signatures = keys.iter().map(|key| signature(key.expose(), id, seconds, body));
    signatures.collect::<Vec<_>>().join(" ")
}

fn signature(key: &[u8], id: &str, seconds: i64, body: &[u8]) -> String {
    let mut context = Context::with_key(&Key::new(HMAC_SHA256, key));
    context.update(format!("{id}.{seconds}.").as_bytes());
    context.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(context.sign()))
}

#[cfg(test)]
mod tests {
    use holdfast_domain::WebhookId;
    use holdfast_domain::secret::ServerSecret;

    use super::*;

    /// The vector that the libraries of Standard Webhooks test themselves with.
    #[test]
    fn the_vector_of_the_standard_is_met() {
        let key = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", br#"{"test": 2432232314}"#);
        assert_eq!(
            signature(&key, id, 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
    }

    #[test]
    fn both_generations_sign_and_neither_prints() {
        let server = ServerSecret::new(b"at least sixteen bytes").unwrap();
        let keys = [2, 1].map(|it| server.webhook_key(WebhookId::from_u128(1), it));
        let header = signatures(&keys, "id", 1, b"{}");
        let [first, second] = keys.each_ref().map(|key| signature(key.expose(), "id", 1, b"{}"));
        assert_eq!(header, format!("{first} {second}"));
        assert_eq!(format!("{:?}", keys[0]), "WebhookKey(…)");
    }
}
