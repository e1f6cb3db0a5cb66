//! `webhooks`: addresses that events are sent to.

use std::collections::BTreeSet;

use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::webhook::{DisableReason, SecretGenerations};
use holdfast_domain::admin::{ActorId, WebhookRecord, WebhookSecret};
use holdfast_domain::private::Private;
use holdfast_domain::secret::ServerSecretId;
use holdfast_domain::{Timestamp, WalletId, WebhookId};

row! {
    "webhooks" as "h", webhook: WebhookRecord;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        id: WebhookId = webhook.id,
        wallet_id: Option<WalletId> = webhook.wallet,
        created_at: Timestamp = webhook.created_at,
        created_by: ActorId = webhook.created_by,
    }
    set {
        url: Private<String> = webhook.url,
        kinds: Option<BTreeSet<EventKind>> = webhook.kinds,
        description: Option<String> = webhook.description,
        generation: u32 = webhook.secret.generations.current,
        rotated_at: Option<Timestamp> = webhook.secret.generations.rotated_at,
        server_secret: ServerSecretId = webhook.secret.server_secret,
        previous_secret: Option<ServerSecretId> = webhook.secret.previous,
        edited: u32 = webhook.edited,
        disabled_at: Option<Timestamp> = webhook.disabled.map(|(at, _)| at),
        disabled_reason: Option<DisableReason> = webhook.disabled.map(|(_, reason)| reason),
    }
    {
        let generations = SecretGenerations { current: generation, rotated_at };
        WebhookRecord {
            id,
            wallet: wallet_id,
            url,
            kinds,
            description,
            secret: WebhookSecret { generations, server_secret, previous: previous_secret },
            edited,
            created_at,
            created_by,
            disabled: disabled_at.zip(disabled_reason),
        }
    }
}
