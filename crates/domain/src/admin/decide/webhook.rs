//! The judgement of changes of webhooks.
//!
//! A test and a second sending want a webhook in force: what is due for a disabled one is dead as soon
//! as its time comes. Bounds are judged where something begins to be told: as a webhook is made, and as
//! it is enabled.

use super::super::command::{AccountEffect, AccountWrite};
use super::super::field_change::FieldChange;
use super::super::refusal::AccountRefusal;
use super::super::thing::Thing;
use super::super::webhook_action::{
    TESTS_MAX, WEBHOOKS_MAX, WebhookAction, WebhookFacts, WebhookPatch, WebhookRecord, WebhookWrite,
};
use crate::Timestamp;
use crate::admin::webhook::DisableReason;

/// Judges a change of a webhook.
pub(super) fn decide(
    action: &WebhookAction,
    facts: &WebhookFacts,
    bound: u32,
    now: Timestamp,
) -> Result<AccountEffect, AccountRefusal> {
    use WebhookAction as Action;
    let known = || facts.webhook.as_ref().ok_or(AccountRefusal::NoWebhook);
    match action {
        Action::Create(record) => {
            refuse_many(facts, bound_of(record, bound))?;
            let made = WebhookRecord { created_at: now, edited: 0, ..record.clone() };
            let (thing, changes) = (Thing::Webhook(made.id), made.changes_from(None));
            let writes = vec![AccountWrite::Webhook(WebhookWrite::Insert(made))];
            Ok(AccountEffect::done(writes, thing, changes))
        }
        Action::Edit { patch, expected, .. } => {
            let before = known()?;
            if expected.is_some_and(|expected| expected != before.edited) {
                return Err(AccountRefusal::EditConflict { edited: before.edited });
            }
            let mut after = before.clone();
            let WebhookPatch { url, kinds, description } = patch.clone();
            after.url = url.unwrap_or(after.url);
            after.kinds = kinds.unwrap_or(after.kinds);
            after.description = description.unwrap_or(after.description);
            Ok(changed(before, after))
        }
        Action::Rotate { server_secret, .. } => {
            let before = known()?;
            let secret = before.secret.rotated(*server_secret, now);
            Ok(changed(before, WebhookRecord { secret, ..before.clone() }))
        }
        Action::Disable(_) => {
            let before = known()?;
            let disabled = before.disabled.or(Some((now, DisableReason::Asked)));
            Ok(changed(before, WebhookRecord { disabled, ..before.clone() }))
        }
        Action::Enable(_) => {
            let before = known()?;
            if before.disabled.is_some() {
                refuse_many(facts, bound_of(before, bound))?;
            }
            Ok(changed(before, WebhookRecord { disabled: None, ..before.clone() }))
        }
        Action::Test { webhook, event } => {
            let before = known()?;
            refuse_disabled(before)?;
            if facts.recent_tests >= TESTS_MAX {
                return Err(AccountRefusal::TooManyTests);
            }
            let (event, webhook, wallet) = (*event, *webhook, before.wallet);
            let test = WebhookWrite::InsertTest { event, webhook, wallet, at: now };
            Ok(sent(before, test, FieldChange::set("tested", event)))
        }
        Action::Resend { webhook, event } => {
            let before = known()?;
            refuse_disabled(before)?;
            if !facts.has_delivery {
                return Err(AccountRefusal::NoDelivery);
            }
            let (event, webhook) = (*event, *webhook);
            let again = WebhookWrite::Resend { event, webhook, at: now };
            Ok(sent(before, again, FieldChange::set("sent_again", event)))
        }
    }
}

/// Bound of the owner of a webhook: the configured one is for wallets.
const fn bound_of(record: &WebhookRecord, of_wallet: u32) -> u32 {
    if record.wallet.is_some() { of_wallet } else { WEBHOOKS_MAX }
}

const fn refuse_many(facts: &WebhookFacts, bound: u32) -> Result<(), AccountRefusal> {
    if facts.others_in_force >= bound {
        return Err(AccountRefusal::TooManyWebhooks);
    }
    Ok(())
}

const fn refuse_disabled(record: &WebhookRecord) -> Result<(), AccountRefusal> {
    // Its delivery would be dead as soon as its time came.
    if record.disabled.is_some() { Err(AccountRefusal::WebhookDisabled) } else { Ok(()) }
}

fn changed(before: &WebhookRecord, mut after: WebhookRecord) -> AccountEffect {
    let thing = Thing::Webhook(before.id);
    if *before == after {
        return AccountEffect::done(Vec::new(), thing, Vec::new());
    }
    after.edited = before.edited.saturating_add(1);
    let changes = after.changes_from(Some(before));
    AccountEffect::done(vec![AccountWrite::Webhook(WebhookWrite::Update(after))], thing, changes)
}

fn sent(of: &WebhookRecord, write: WebhookWrite, change: FieldChange) -> AccountEffect {
    AccountEffect::done(vec![AccountWrite::Webhook(write)], Thing::Webhook(of.id), vec![change])
}
