//! Verbs of one shape: a change of one resource that takes only a reason, whose answer is the resource.
//!
//! A verb is a row of [`VERBS`]. The API has one handler for all rows, the console one form, and the command line one
//! sender. Endpoint, command and page of a verb follow from its word and its resource, so the three interfaces cannot
//! differ in name, right or effect.
//!
//! A row has no hook: a verb with a body, a secret, a review or another answer is a function with a handler and a
//! form of its own. Never in here: a branch by verb. [`Accounts::carry_out`] knows its columns only.

use holdfast_domain::admin::{
    AccountAction, ApiKeyAction, UseCase, WalletAction, WalletRecord, WebhookAction, WebhookRecord,
};
use holdfast_domain::credential::ApiKey;
use holdfast_domain::{ApiKeyId, WalletId, WebhookId};
use uuid::Uuid;

use crate::{Accounts, Outcome, Principal, Reference, Request, Result};

pub mod forms;

/// A verb.
#[derive(Debug)]
pub struct Verb {
    /// Use case.
    pub use_case: UseCase,
    /// Kind of its resource.
    pub subject: SubjectKind,
    /// Last segment of its paths, last word of its command, and its operation in the API's description.
    pub word: &'static str,
    /// Participle, in sentences about its resource.
    pub done: &'static str,
    /// Title of its form.
    pub title: &'static str,
    /// Effect, as the API describes it.
    pub summary: &'static str,
    /// Effect, as the form explains it.
    pub hint: &'static str,
    /// Note that the command line prints after the change.
    pub note: Option<&'static str>,
    /// True if a reason is required.
    pub needs_reason: bool,
    /// True if its form warns by color.
    pub is_grave: bool,
    action: fn(Uuid) -> AccountAction,
}

/// Kind of a verb's resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubjectKind {
    /// A wallet.
    Wallet,
    /// An API key.
    ApiKey,
    /// A webhook.
    Webhook,
}

/// Nouns of a kind of resource.
#[derive(Debug, Clone, Copy)]
pub struct SubjectNouns {
    /// Name in sentences: `API key`.
    pub name: &'static str,
    /// Collection in the API: `api_keys`.
    pub collection: &'static str,
    /// Noun at the command line: `key`.
    pub command: &'static str,
    /// Collection of pages in the console: `keys`.
    pub pages: &'static str,
}

impl SubjectKind {
    /// Nouns of the resource.
    #[must_use]
    pub const fn nouns(self) -> SubjectNouns {
        let [name, collection, command, pages] = match self {
            Self::Wallet => ["wallet", "wallets", "wallet", "wallets"],
            Self::ApiKey => ["API key", "api_keys", "key", "keys"],
            Self::Webhook => ["webhook", "webhooks", "webhook", "webhooks"],
        };
        SubjectNouns { name, collection, command, pages }
    }
}

impl Verb {
    /// Path of its endpoint: `/api_keys/{id}/suspend`.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("/{}/{{id}}/{}", self.subject.nouns().collection, self.word)
    }

    /// Words of its command: `key suspend`.
    #[must_use]
    pub fn command(&self) -> String {
        format!("{} {}", self.subject.nouns().command, self.word)
    }

    /// Path of its form in the console: `/keys/{id}/suspend`.
    #[must_use]
    pub fn page(&self) -> String {
        format!("/{}/{{id}}/{}", self.subject.nouns().pages, self.word)
    }
}

/// Resource of a verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A wallet.
    Wallet(WalletRecord),
    /// An API key.
    ApiKey(ApiKey),
    /// A webhook.
    Webhook(WebhookRecord),
}

/// All verbs.
pub const VERBS: &[&Verb] = &[
    &SUSPEND_WALLET,
    &RESUME_WALLET,
    &SUSPEND_API_KEY,
    &RESUME_API_KEY,
    &REVOKE_API_KEY,
    &DISABLE_WEBHOOK,
    &ENABLE_WEBHOOK,
];

/// Stops new runs of a wallet.
pub const SUSPEND_WALLET: Verb = Verb {
    use_case: UseCase::WalletSuspend,
    subject: SubjectKind::Wallet,
    word: "suspend",
    done: "suspended",
    title: "Suspend",
    summary: "Stops new runs of a wallet; a reason is required.",
    hint: "No new run starts until the wallet is resumed. Running requests finish.",
    note: Some("a running `holdfast serve` accepts no new runs on it after 5 seconds at most"),
    needs_reason: true,
    is_grave: true,
    action: |id| AccountAction::Wallet(WalletAction::Suspend(WalletId::from(id))),
};

/// Ends a suspension of a wallet.
pub const RESUME_WALLET: Verb = Verb {
    use_case: UseCase::WalletResume,
    subject: SubjectKind::Wallet,
    word: "resume",
    done: "resumed",
    title: "Resume",
    summary: "Lets new runs of a wallet in.",
    hint: "New runs are accepted again.",
    note: None,
    needs_reason: false,
    is_grave: false,
    action: |id| AccountAction::Wallet(WalletAction::Resume(WalletId::from(id))),
};

/// Stops new runs of an API key.
pub const SUSPEND_API_KEY: Verb = Verb {
    use_case: UseCase::ApiKeySuspend,
    subject: SubjectKind::ApiKey,
    word: "suspend",
    done: "suspended",
    title: "Suspend",
    summary: "Stops new runs of an API key; a reason is required.",
    hint: "No new run starts until the key is resumed. Revoke a stolen key instead.",
    note: Some("a running `holdfast serve` obeys within 5 seconds"),
    needs_reason: true,
    is_grave: true,
    action: |id| AccountAction::ApiKey(ApiKeyAction::Suspend(ApiKeyId::from(id))),
};

/// Ends a suspension of an API key.
pub const RESUME_API_KEY: Verb = Verb {
    use_case: UseCase::ApiKeyResume,
    subject: SubjectKind::ApiKey,
    word: "resume",
    done: "resumed",
    title: "Resume",
    summary: "Lets new runs of an API key in.",
    hint: "New runs are accepted again.",
    note: Some("a running `holdfast serve` obeys within 5 seconds"),
    needs_reason: false,
    is_grave: false,
    action: |id| AccountAction::ApiKey(ApiKeyAction::Resume(ApiKeyId::from(id))),
};

/// Ends an API key for good.
pub const REVOKE_API_KEY: Verb = Verb {
    use_case: UseCase::ApiKeyRevoke,
    subject: SubjectKind::ApiKey,
    word: "revoke",
    done: "revoked",
    title: "Revoke",
    summary: "Ends an API key for good; running operations finish.",
    hint: "Permanent: every credential of the key is rejected. Running requests finish. This cannot be undone.",
    note: Some("a running `holdfast serve` turns it away within 5 seconds"),
    needs_reason: false,
    is_grave: true,
    action: |id| AccountAction::ApiKey(ApiKeyAction::Revoke(ApiKeyId::from(id))),
};

/// Ends the deliveries to a webhook.
pub const DISABLE_WEBHOOK: Verb = Verb {
    use_case: UseCase::WebhookDisable,
    subject: SubjectKind::Webhook,
    word: "disable",
    done: "disabled",
    title: "Disable",
    summary: "Stops all deliveries to a webhook. Waiting deliveries fail when they are due.",
    hint: "No event is delivered until the webhook is enabled again.",
    note: None,
    needs_reason: false,
    is_grave: true,
    action: |id| AccountAction::Webhook(WebhookAction::Disable(WebhookId::from(id))),
};

/// Begins deliveries to a disabled webhook.
pub const ENABLE_WEBHOOK: Verb = Verb {
    use_case: UseCase::WebhookEnable,
    subject: SubjectKind::Webhook,
    word: "enable",
    done: "enabled",
    title: "Enable",
    summary: "Sends a disabled webhook the events from now on.",
    hint: "New events are delivered. Events of the pause can be sent again.",
    note: None,
    needs_reason: false,
    is_grave: false,
    action: |id| AccountAction::Webhook(WebhookAction::Enable(WebhookId::from(id))),
};

impl Accounts {
    /// Resource of a verb, for a principal that may carry it out.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Forbidden`](crate::AccountsError::Forbidden), [`AccountsError::NotFound`](crate::AccountsError::NotFound) or [`AccountsError::Unavailable`](crate::AccountsError::Unavailable).
    pub async fn subject(&self, principal: &Principal, verb: &Verb, id: Uuid) -> Result<Subject> {
        principal.authorize(verb.use_case)?;
        let name = Reference::Id(id);
        Ok(match verb.subject {
            SubjectKind::Wallet => Subject::Wallet(self.reachable_wallet(principal, &name).await?),
            SubjectKind::ApiKey => {
                Subject::ApiKey(self.reachable_api_key(principal, &name, None).await?)
            }
            SubjectKind::Webhook => {
                Subject::Webhook(self.reachable_webhook(principal, WebhookId::from(id)).await?)
            }
        })
    }

    /// Carries out a verb on the resource of this id.
    ///
    /// # Errors
    ///
    /// An error of [`Accounts::subject`], and each refusal of the ledger.
    pub async fn carry_out(
        &self,
        principal: &Principal,
        request: &Request,
        verb: &Verb,
        id: Uuid,
    ) -> Result<Outcome<Subject>> {
        principal.authorize(verb.use_case)?;
        if verb.needs_reason {
            Self::want_reason(verb.use_case, request)?;
        }
        // A resource out of reach is not found before its state is judged.
        self.subject(principal, verb, id).await?;
        let done = self.change(principal, request, (verb.action)(id)).await?;
        let subject = self.subject(principal, verb, id).await?;
        Ok(Outcome { thing: subject, replayed: done.replayed })
    }
}
