//! Senders, endpoints and deliveries, valid until a test varies one thing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::admin::webhook::{Endpoint, Origin, TryResult};
use holdfast_domain::private::Private;
use holdfast_domain::secret::{ServerSecret, WebhookKey};
use holdfast_domain::{EventId, Timestamp, WebhookId};
use holdfast_webhooks::{Delivery, Resolver, Sender, SenderOptions};

pub(crate) const WEBHOOK: WebhookId = WebhookId::from_u128(7);
pub(crate) const BODY: &str = r#"{"type":"wallet.low","data":{"wallet":"acme"}}"#;

/// Time for a try that is to run out of it.
pub(crate) const SHORT: Duration = Duration::from_secs(2);

pub(crate) fn sender() -> Sender {
    Sender::new(SenderOptions::default()).unwrap()
}

/// A sender that learns addresses from this resolver.
pub(crate) fn sender_by<R: Resolver + 'static>(resolver: &Arc<R>) -> Sender {
    let resolver = Arc::<R>::clone(resolver);
    Sender::new(SenderOptions { resolver, ..SenderOptions::default() }).unwrap()
}

/// A sender whose tries have little time.
pub(crate) fn hasty_sender() -> Sender {
    Sender::new(SenderOptions { try_time_max: SHORT, ..SenderOptions::default() }).unwrap()
}

/// An endpoint whose origin the operator has listed.
pub(crate) fn allowed(url: &str) -> Endpoint {
    let (scheme, rest) = url.split_once("://").unwrap();
    let authority = rest.split('/').next().unwrap();
    let origin = Origin::try_from(format!("{scheme}://{authority}").as_str()).unwrap();
    Endpoint::parse(url, &[origin]).unwrap()
}

/// An endpoint that is judged.
pub(crate) fn judged(url: &str) -> Endpoint {
    Endpoint::parse(url, &[]).unwrap()
}

pub(crate) fn key(generation: u32) -> WebhookKey {
    ServerSecret::new(b"at least sixteen bytes").unwrap().webhook_key(WEBHOOK, generation)
}

pub(crate) fn delivery(endpoint: Endpoint) -> Delivery {
    Delivery {
        event: EventId::from_u128(9),
        endpoint,
        keys: vec![key(1)],
        sent_at: Timestamp::from_micros(1_800_000_000_000_000),
        body: Private(Bytes::from_static(BODY.as_bytes())),
    }
}

/// Result of one try to send a delivery to this endpoint.
pub(crate) async fn send(sender: &Sender, endpoint: Endpoint) -> TryResult {
    sender.send(sender.permit(None, WEBHOOK).unwrap(), delivery(endpoint)).await
}
