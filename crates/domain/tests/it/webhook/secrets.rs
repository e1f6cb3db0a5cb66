//! Secrets: derived from all that they are for, and the generations that sign after a rotation.

use std::time::Duration;

use holdfast_domain::admin::webhook::SecretGenerations;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{Timestamp, WebhookId};

const WEBHOOK: WebhookId = WebhookId::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
const DAY: Duration = Duration::from_secs(86_400);

#[test]
fn the_key_of_a_webhook_is_what_the_formula_says() {
    let server = [7; 16];
    let parts = [&server[..], &WEBHOOK.to_bytes()[..], &3_u32.to_be_bytes()[..]];
    let material =
        parts.map(|part| [&u64::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat());
    let whole = blake3::derive_key("holdfast 2026-11 webhook v1", &material.concat());
    assert_eq!(*ServerSecret::new(&server).unwrap().webhook_key(WEBHOOK, 3).expose(), whole);
}

#[test]
fn the_key_of_a_webhook_depends_on_all_that_it_is_for_and_never_prints() {
    let [one, two] = [[1; 16], [2; 16]].map(|secret| ServerSecret::new(&secret).unwrap());
    let key = one.webhook_key(WEBHOOK, 1);
    for other in [
        two.webhook_key(WEBHOOK, 1),
        one.webhook_key(WebhookId::from_u128(1), 1),
        one.webhook_key(WEBHOOK, 2),
    ] {
        assert_ne!(key.expose(), other.expose());
    }
    assert_eq!(format!("{key:?}"), "WebhookKey(…)");
}

#[test]
fn the_generation_before_a_rotation_signs_for_a_day() {
    let rotated_at = Timestamp::from_micros(1_000_000);
    let signing = |current, rotated_at, now| {
        SecretGenerations { current, rotated_at }.signing(now).collect::<Vec<_>>()
    };
    let last = rotated_at.after(DAY - Duration::from_micros(1));
    assert_eq!(signing(3, Some(rotated_at), rotated_at), [3, 2]);
    assert_eq!(signing(3, Some(rotated_at), last), [3, 2]);
    assert_eq!(signing(3, Some(rotated_at), rotated_at.after(DAY)), [3]);
    assert_eq!(signing(1, None, last), [1]);
    // A clock that was set back does not take the older one away.
    assert_eq!(signing(2, Some(last), rotated_at), [2, 1]);
}
