//! Webhooks: made, listed, edited, rotated, disabled, tested; and what was sent to them.
//!
//! A webhook of a wallet is its holder's administrator's and the operator's; one without a wallet is only the
//! operator's, and does not exist for a holder. A holder creates webhooks of the own wallet.
//!
//! ```text
//! role, reach (404) ─▶ request key bound? ─▶ address (400) ─▶ command: request key, then the book
//!                            └─ yes ────────────────────────────▲
//! ```
//!
//! An address is judged here when it is created or changed, by its text and by the current addresses of its
//! name, and again at each attempt, because a name may get other addresses. The reach is judged first, so that
//! a webhook out of reach is answered as one that does not exist; and the request key, so that a late
//! repetition is answered even if the address has changed since.
//!
//! A secret is shown by the answer that creates it, and never by another one.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use holdfast_domain::admin::Endpoints;
use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::listing::{Page, PageRequest};
use holdfast_domain::admin::webhook::{DeliveryRecord, Endpoint, Origin, TryResult};
use holdfast_domain::admin::{
    AccountAction, AccountReceipt, Reach, ResourceId, UseCase, WebhookAction, WebhookPatch,
    WebhookRecord, WebhookSecret,
};
use holdfast_domain::debug_as;
use holdfast_domain::private::Private;
use holdfast_domain::secret::{ServerSecret, WebhookKey};
use holdfast_domain::{EventId, Timestamp, WalletId, WebhookId};
use uuid::Uuid;

use crate::{
    Accounts, AccountsError, Description, Edit, Outcome, Principal, Reference, Request,
    ResourceKind, Result,
};

/// A webhook to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWebhook {
    /// Wallet that it belongs to; `None`: the operator, or the wallet of the calling holder.
    pub wallet: Option<Reference>,
    /// URL of its receiver.
    pub url: Private<String>,
    /// Kinds of events that it receives; `None`: all.
    pub kinds: Option<BTreeSet<EventKind>>,
    /// Text for people.
    pub description: Option<Description>,
}

/// A webhook, and its secret if this very request created that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookWithSecret {
    /// The webhook.
    pub record: WebhookRecord,
    /// Secret that its receiver verifies by; `None` for a repetition.
    pub secret: Option<SecretText>,
}

/// Secret of a webhook as its receiver is given it: `whsec_…`. It does not print.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretText(String);

impl SecretText {
    /// The text of a key, as libraries of Standard Webhooks take it.
    #[must_use]
    pub fn new(key: &WebhookKey) -> Self {
        Self(format!("whsec_{}", BASE64_STANDARD.encode(key.expose())))
    }

    /// The whole text, shown once.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

debug_as!(SecretText: "SecretText(…)");

/// Judgement of addresses by their text only, for processes that send no webhooks.
#[derive(Debug)]
pub(crate) struct PublicEndpoints;

#[async_trait]
impl Endpoints for PublicEndpoints {
    fn allowed(&self) -> Arc<[Origin]> {
        Arc::new([])
    }

    async fn check(&self, _endpoint: &Endpoint) -> Result<(), TryResult> {
        // The sender judges the addresses of the name again at each attempt, so an address that
        // only this process cannot judge is not sent to unseen.
        Ok(())
    }
}

impl Accounts {
    /// Creates a webhook, and returns its secret.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`]; an address that may not be sent to is an invalid `url`.
    pub async fn create_webhook(
        &self,
        principal: &Principal,
        request: &Request,
        new: &NewWebhook,
    ) -> Result<Outcome<WebhookWithSecret>> {
        principal.authorize(UseCase::WebhookCreate)?;
        let wallet = match &new.wallet {
            Some(wallet) => Some(self.reachable_wallet(principal, wallet).await?.wallet.id),
            None => principal.only_wallet(),
        };
        // Before the command and outside its transaction: a name server that is slow must not hold
        // locks.
        self.judge_unless_done(principal, request, &new.url).await?;
        let record = WebhookRecord {
            id: WebhookId::from(Uuid::now_v7()),
            wallet,
            url: new.url.clone(),
            kinds: new.kinds.clone(),
            description: new.description.as_ref().map(|text| text.as_str().to_owned()),
            secret: WebhookSecret::first(self.writing_secret()?.id()),
            edited: 0,
            // The store's moment takes its place.
            created_at: Timestamp::from_micros(0),
            created_by: principal.actor,
            disabled: None,
        };
        let action = WebhookAction::Create(record);
        let done = self.change(principal, request, AccountAction::Webhook(action)).await?;
        self.webhook_with_secret(&done).await
    }

    /// The webhook of this id.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one that is out of reach too.
    pub async fn webhook(&self, principal: &Principal, id: WebhookId) -> Result<WebhookRecord> {
        principal.authorize(UseCase::WebhookRead)?;
        self.reachable_webhook(principal, id).await
    }

    /// Webhooks of a wallet, or all within reach, a page at a time.
    pub async fn webhooks(
        &self,
        principal: &Principal,
        wallet: Option<WalletId>,
        page: PageRequest,
    ) -> Result<Page<WebhookRecord>> {
        principal.authorize(UseCase::WebhookRead)?;
        let wallet = match (principal.reach, wallet) {
            (Reach::All, wallet) => wallet,
            (Reach::Wallet(own), Some(other)) if own != other => {
                return Ok(Page::empty());
            }
            (Reach::Wallet(own), _) => Some(own),
        };
        Ok(self.book.webhooks(wallet, page).await?)
    }

    /// Edits a webhook.
    ///
    /// # Errors
    ///
    /// An [`AccountsError`]; an address that may not be sent to is an invalid `url`.
    pub async fn edit_webhook(
        &self,
        principal: &Principal,
        request: &Request,
        id: WebhookId,
        edit: Edit<WebhookPatch>,
    ) -> Result<Outcome<WebhookRecord>> {
        let Edit { patch, expected } = edit;
        principal.authorize(UseCase::WebhookUpdate)?;
        if let Some(url) = &patch.url {
            // No name is looked up for a principal that does not reach the webhook.
            self.reachable_webhook(principal, id).await?;
            self.judge_unless_done(principal, request, url).await?;
        }
        let action = WebhookAction::Edit { webhook: id, patch, expected };
        self.change_webhook(principal, request, action).await
    }

    /// Begins another generation of a webhook's secret, and returns it. The one before it signs as well for a
    /// day.
    pub async fn rotate_webhook(
        &self,
        principal: &Principal,
        request: &Request,
        id: WebhookId,
    ) -> Result<Outcome<WebhookWithSecret>> {
        principal.authorize(UseCase::WebhookRotate)?;
        self.reachable_webhook(principal, id).await?;
        let server_secret = self.writing_secret()?.id();
        let action = WebhookAction::Rotate { webhook: id, server_secret };
        let done = self.change(principal, request, AccountAction::Webhook(action)).await?;
        self.webhook_with_secret(&done).await
    }

    /// Sends a webhook an event without content, in one attempt: the delivery records the outcome.
    pub async fn test_webhook(
        &self,
        principal: &Principal,
        request: &Request,
        id: WebhookId,
    ) -> Result<Outcome<DeliveryRecord>> {
        // By the request key: a repetition finds the event of the first one.
        let event = EventId::from_bytes(event_of(principal, request, id));
        let action = WebhookAction::Test { webhook: id, event };
        let done = self.change_webhook(principal, request, action).await?;
        self.delivery_of(id, event, done.replayed).await
    }

    /// Sends a webhook an event again, or now if it waits.
    pub async fn resend_delivery(
        &self,
        principal: &Principal,
        request: &Request,
        id: WebhookId,
        event: EventId,
    ) -> Result<Outcome<DeliveryRecord>> {
        let action = WebhookAction::Resend { webhook: id, event };
        let done = self.change_webhook(principal, request, action).await?;
        self.delivery_of(id, event, done.replayed).await
    }

    /// Deliveries to a webhook, a page at a time.
    pub async fn deliveries(
        &self,
        principal: &Principal,
        id: WebhookId,
        page: PageRequest,
    ) -> Result<Page<DeliveryRecord>> {
        principal.authorize(UseCase::WebhookRead)?;
        self.reachable_webhook(principal, id).await?;
        Ok(self.book.deliveries(id, page).await?)
    }

    async fn change_webhook(
        &self,
        principal: &Principal,
        request: &Request,
        action: WebhookAction,
    ) -> Result<Outcome<WebhookRecord>> {
        principal.authorize(action.use_case())?;
        self.reachable_webhook(principal, action.webhook()).await?;
        let done = self.change(principal, request, AccountAction::Webhook(action)).await?;
        let thing = self.changed_webhook(&done.things).await?;
        Ok(Outcome { thing, replayed: done.replayed })
    }

    async fn changed_webhook(&self, things: &[ResourceId]) -> Result<WebhookRecord> {
        let id =
            |thing: &ResourceId| if let ResourceId::Webhook(id) = thing { Some(*id) } else { None };
        let id =
            things.iter().find_map(id).ok_or(AccountsError::NotFound(ResourceKind::Webhook))?;
        let found = self.book.webhook(id).await?;
        found.ok_or(AccountsError::NotFound(ResourceKind::Webhook))
    }

    async fn webhook_with_secret(
        &self,
        done: &AccountReceipt,
    ) -> Result<Outcome<WebhookWithSecret>> {
        let record = self.changed_webhook(&done.things).await?;
        // Derived and not stored: by the server secret that the row names, which after a rotation
        // of secrets need not be the one that writes.
        let own = self.secrets.iter().find(|secret| secret.id() == record.secret.server_secret);
        let key = |secret: &ServerSecret| {
            secret.webhook_key(record.id, record.secret.generations.current)
        };
        let secret = own.filter(|_| !done.replayed).map(|secret| SecretText::new(&key(secret)));
        Ok(Outcome { thing: WebhookWithSecret { record, secret }, replayed: done.replayed })
    }

    async fn delivery_of(
        &self,
        webhook: WebhookId,
        event: EventId,
        replayed: bool,
    ) -> Result<Outcome<DeliveryRecord>> {
        let found = self.book.delivery(webhook, event).await?;
        // An old event is deleted, and its deliveries with it: a late repetition finds none.
        let thing = found.ok_or(AccountsError::NotFound(ResourceKind::Webhook))?;
        Ok(Outcome { thing, replayed })
    }

    /// The webhook of this id, if it is within reach.
    pub(crate) async fn reachable_webhook(
        &self,
        principal: &Principal,
        id: WebhookId,
    ) -> Result<WebhookRecord> {
        let missing = || AccountsError::NotFound(ResourceKind::Webhook);
        let found = self.book.webhook(id).await?.ok_or_else(missing)?;
        match (found.wallet, principal.reach) {
            (Some(wallet), _) => principal.reach(wallet, ResourceKind::Webhook)?,
            (None, Reach::All) => {}
            (None, Reach::Wallet(_)) => return Err(missing()),
        }
        Ok(found)
    }

    /// Judges an address, unless the request key is bound: a change that was made is answered again, even if
    /// its name or the list of addresses has changed since.
    async fn judge_unless_done(
        &self,
        principal: &Principal,
        request: &Request,
        url: &str,
    ) -> Result<()> {
        if self.book.request_record(principal.actor, request.key).await?.is_some() {
            return Ok(());
        }
        self.judge_url(url).await
    }

    async fn judge_url(&self, url: &str) -> Result<()> {
        let bad = |message: String| AccountsError::Invalid { field: "url", message };
        let endpoint = Endpoint::parse(url, &self.endpoints.allowed());
        let endpoint = endpoint.map_err(|error| bad(format!("this is {error}")))?;
        self.endpoints.check(&endpoint).await.map_err(|result| {
            bad(match result {
                TryResult::AddressRefused => format!(
                    "{} has an address that is not public: name a public one, or have the operator \
                     list its origin under allow in [webhooks]",
                    endpoint.origin()
                ),
                TryResult::HostNotFound
                | TryResult::Answered(_)
                | TryResult::UrlRefused
                | TryResult::Unreached
                | TryResult::TlsFailed
                | TryResult::Broken
                | TryResult::TimedOut
                | TryResult::Unsigned => format!(
                    "{} cannot be looked up at the moment: check the name, or send this again later",
                    endpoint.origin()
                ),
            })
        })
    }
}

/// Id of the event of a test: the same each time that the same request is sent.
fn event_of(principal: &Principal, request: &Request, webhook: WebhookId) -> [u8; 16] {
    let mut id = [0; 16];
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"webhook test").update(&request.key.to_bytes()).update(&request.digest);
    hasher.update(&webhook.to_bytes()).update(principal.actor.to_string().as_bytes());
    hasher.finalize_xof().fill(&mut id);
    id
}
