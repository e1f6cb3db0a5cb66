//! Deliveries as their receivers verify them: by a library of Standard Webhooks, which knows nothing
//! of the code that signs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, SystemTime};

use holdfast_accounts::SecretText;
use holdfast_domain::admin::webhook::{Endpoint, Origin, TryResult};
use holdfast_domain::private::Private;
use holdfast_domain::secret::{ServerSecret, WebhookKey};
use holdfast_domain::{EventId, Timestamp, WebhookId};
use holdfast_tests::Site;
use holdfast_webhooks::{Delivery, Sender, SenderOptions};

use crate::clients::PYTHON;

const WEBHOOK: WebhookId = WebhookId::from_u128(7);
const VERIFIED: TryResult = TryResult::Answered(204);
const REFUSED: TryResult = TryResult::Answered(401);

/// A receiver in Python that has the secrets of two generations.
struct Receiver {
    child: Child,
    origin: String,
    _site: Site,
}

impl Receiver {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python/webhooks.py");
        let script = std::fs::read_to_string(script).unwrap();
        let site = Site::empty();
        let mut command = PYTHON.on(&site, &script);
        for (name, generation) in [("FIRST", 1), ("SECOND", 2)] {
            command.env(name, SecretText::new(&key(generation)).expose());
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, origin: format!("http://127.0.0.1:{}", port.trim()), _site: site }
    }

    /// Delivers to where a receiver has the secret of this name.
    async fn deliver(&self, secret: &str, keys: &[WebhookKey], sent_at: Timestamp) -> TryResult {
        let allow = [Origin::try_from(self.origin.as_str()).unwrap()];
        let delivery = Delivery {
            event: EventId::from_u128(9),
            endpoint: Endpoint::parse(&format!("{}/{secret}", self.origin), &allow).unwrap(),
            keys: keys.to_vec(),
            sent_at,
            body: Private(r#"{"type":"wallet.low"}"#.into()),
        };
        let sender = Sender::new(SenderOptions::default()).unwrap();
        sender.send(sender.permit(None, WEBHOOK).unwrap(), delivery).await
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.child.stdin.take());
        drop(self.child.wait());
    }
}

fn key(generation: u32) -> WebhookKey {
    ServerSecret::new(b"at least sixteen bytes").unwrap().webhook_key(WEBHOOK, generation)
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_micros(0).after(since)
}

#[tokio::test]
async fn python_verifies_deliveries_by_either_secret_after_a_rotation() {
    let receiver = Receiver::start();
    let (before, rotated) = ([key(1)], [key(2), key(1)]);
    assert_eq!(receiver.deliver("FIRST", &before, now()).await, VERIFIED);
    assert_eq!(receiver.deliver("SECOND", &before, now()).await, REFUSED);
    assert_eq!(receiver.deliver("FIRST", &rotated, now()).await, VERIFIED);
    assert_eq!(receiver.deliver("SECOND", &rotated, now()).await, VERIFIED);
    assert_eq!(receiver.deliver("FIRST", &[key(2)], now()).await, REFUSED);
}

#[tokio::test]
async fn python_refuses_deliveries_of_another_moment() {
    let receiver = Receiver::start();
    let late = now().after(Duration::from_secs(600));
    assert_eq!(receiver.deliver("FIRST", &[key(1)], late).await, REFUSED);
    assert_eq!(receiver.deliver("FIRST", &[key(1)], now()).await, VERIFIED);
}
