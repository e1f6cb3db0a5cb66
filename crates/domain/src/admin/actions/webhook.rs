//! Changes of webhooks.

use super::{AccountCommand, Creation, expect};
use crate::admin::field_change::FieldChange;
use crate::admin::webhook::DisableReason;
use crate::admin::{
    AccountEffect, AccountRefusal, AccountWrite, Count, Facts, ResourceId, TESTS_MAX, UseCase,
    WEBHOOKS_MAX, WebhookPatch, WebhookRecord, WebhookWrite,
};
use crate::secret::ServerSecretId;
use crate::{EventId, WebhookId};

/// Change of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookAction {
    /// Make one.
    Create(WebhookRecord),
    /// Edit one.
    Edit {
        /// The webhook.
        webhook: WebhookId,
        /// The edit.
        patch: WebhookPatch,
        /// Number of edits that the actor has seen, if that matters.
        expected: Option<u32>,
    },
    /// Begin another generation of its secret.
    Rotate {
        /// The webhook.
        webhook: WebhookId,
        /// Server secret that the generation is derived from.
        server_secret: ServerSecretId,
    },
    /// Stop deliveries.
    Disable(WebhookId),
    /// Deliver events from now on.
    Enable(WebhookId),
    /// Send it an event without content.
    Test {
        /// The webhook.
        webhook: WebhookId,
        /// Id of the event.
        event: EventId,
    },
    /// Send it an event again, or now.
    Resend {
        /// The webhook.
        webhook: WebhookId,
        /// Id of the event.
        event: EventId,
    },
}

impl WebhookAction {
    pub(super) const fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Create(it) => {
                (UseCase::WebhookCreate, Creation::Resource(ResourceId::Webhook(it.id)))
            }
            Self::Edit { .. } => (UseCase::WebhookUpdate, Creation::Nothing),
            Self::Rotate { .. } => (UseCase::WebhookRotate, Creation::Nothing),
            Self::Disable(_) => (UseCase::WebhookDisable, Creation::Nothing),
            Self::Enable(_) => (UseCase::WebhookEnable, Creation::Nothing),
            Self::Test { .. } => (UseCase::WebhookTest, Creation::Nothing),
            Self::Resend { .. } => (UseCase::WebhookResend, Creation::Nothing),
        }
    }

    /// Use case that the action belongs to.
    #[must_use]
    pub const fn use_case(&self) -> UseCase {
        self.row().0
    }

    /// The webhook.
    #[must_use]
    pub const fn webhook(&self) -> WebhookId {
        match self {
            Self::Create(record) => record.id,
            Self::Disable(webhook)
            | Self::Enable(webhook)
            | Self::Edit { webhook, .. }
            | Self::Rotate { webhook, .. }
            | Self::Test { webhook, .. }
            | Self::Resend { webhook, .. } => *webhook,
        }
    }

    /// Judges a change. A test and a second sending need a webhook in force: what is due for a disabled one is dead as
    /// soon as its time comes. Bounds are judged when deliveries begin: as a webhook is made, and as it is enabled.
    pub(super) async fn decide<F: Facts>(
        &self,
        command: &AccountCommand,
        facts: &mut F,
    ) -> Result<AccountEffect, F::Error> {
        let (now, bound) = (facts.now(), command.bounds.webhooks);
        Ok(match self {
            Self::Create(record) => {
                let others = facts.count(Count::WebhooksOf(record.wallet, record.id)).await?;
                refuse_many(others, bound_of(record, bound))?;
                let made = WebhookRecord { created_at: now, edited: 0, ..record.clone() };
                AccountEffect::created(made, |it| AccountWrite::Webhook(WebhookWrite::Insert(it)))
            }
            Self::Edit { webhook, patch, expected } => {
                let before = known(facts, *webhook).await?;
                expect(*expected, before.edited)?;
                let mut after = before.clone();
                let WebhookPatch { url, kinds, description } = patch.clone();
                after.url = url.unwrap_or(after.url);
                after.kinds = kinds.unwrap_or(after.kinds);
                after.description = description.unwrap_or(after.description);
                changed(&before, after)
            }
            Self::Rotate { webhook, server_secret } => {
                let before = known(facts, *webhook).await?;
                let secret = before.secret.rotated(*server_secret, now);
                changed(&before, WebhookRecord { secret, ..before.clone() })
            }
            Self::Disable(id) => {
                let before = known(facts, *id).await?;
                // The first reason stays: a webhook whose receiver was gone keeps that in its row.
                let disabled = before.disabled.or(Some((now, DisableReason::Asked)));
                changed(&before, WebhookRecord { disabled, ..before.clone() })
            }
            Self::Enable(id) => {
                let before = facts.webhook(*id).await?;
                let others = facts.count(Count::WebhooksBeside(*id)).await?;
                let before = before.ok_or(AccountRefusal::NoWebhook)?;
                // One that is enabled counts already: the bound must not refuse to enable it again.
                if before.disabled.is_some() {
                    refuse_many(others, bound_of(&before, bound))?;
                }
                changed(&before, WebhookRecord { disabled: None, ..before.clone() })
            }
            Self::Test { webhook, event } => {
                let before = facts.webhook(*webhook).await?;
                let recent = facts.count(Count::RecentTests(*webhook)).await?;
                let wallet = in_force(before)?.wallet;
                if recent >= TESTS_MAX {
                    return Err(AccountRefusal::TooManyTests.into());
                }
                let (event, webhook) = (*event, *webhook);
                let test = WebhookWrite::InsertTest { event, webhook, wallet, at: now };
                sent(webhook, test, FieldChange::set("tested", event))
            }
            Self::Resend { webhook, event } => {
                let before = facts.webhook(*webhook).await?;
                let deliveries = facts.count(Count::Deliveries(*webhook, *event)).await?;
                in_force(before)?;
                if deliveries == 0 {
                    return Err(AccountRefusal::NoDelivery.into());
                }
                let (event, webhook) = (*event, *webhook);
                let again = WebhookWrite::Resend { event, webhook, at: now };
                sent(webhook, again, FieldChange::set("sent_again", event))
            }
        })
    }
}

async fn known<F: Facts>(facts: &mut F, id: WebhookId) -> Result<WebhookRecord, F::Error> {
    Ok(facts.webhook(id).await?.ok_or(AccountRefusal::NoWebhook)?)
}

/// A webhook that is not disabled: the delivery of another one would be dead as soon as its time came.
fn in_force(webhook: Option<WebhookRecord>) -> Result<WebhookRecord, AccountRefusal> {
    let webhook = webhook.ok_or(AccountRefusal::NoWebhook)?;
    if webhook.disabled.is_some() { Err(AccountRefusal::WebhookDisabled) } else { Ok(webhook) }
}

/// Bound of the owner of a webhook: the configured one is for wallets.
const fn bound_of(record: &WebhookRecord, of_wallet: u32) -> u32 {
    if record.wallet.is_some() { of_wallet } else { WEBHOOKS_MAX }
}

const fn refuse_many(others: u32, bound: u32) -> Result<(), AccountRefusal> {
    if others >= bound { Err(AccountRefusal::TooManyWebhooks) } else { Ok(()) }
}

fn changed(before: &WebhookRecord, mut after: WebhookRecord) -> AccountEffect {
    after.edited = before.edited.saturating_add(u32::from(*before != after));
    let update = |after| AccountWrite::Webhook(WebhookWrite::Update(after));
    AccountEffect::changed(before, after, update)
}

fn sent(of: WebhookId, write: WebhookWrite, change: FieldChange) -> AccountEffect {
    AccountEffect::done(vec![AccountWrite::Webhook(write)], ResourceId::Webhook(of), vec![change])
}
