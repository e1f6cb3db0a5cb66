//! Resources of rows of the audit log, and their names there.

use std::fmt;

use uuid::Uuid;

use super::UseCase;
use crate::{AdminKeyId, ApiKeyId, JobId, OperationId, PersonId, PostingId, WalletId, WebhookId};

/// Resource that a command created or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResourceId {
    /// A wallet.
    Wallet(WalletId),
    /// An API key.
    ApiKey(ApiKeyId),
    /// A posting.
    Posting(PostingId),
    /// An operation.
    Operation(OperationId),
    /// An admin key.
    AdminKey(AdminKeyId),
    /// A person.
    Person(PersonId),
    /// A webhook.
    Webhook(WebhookId),
    /// A job.
    Job(JobId),
    /// The person of an e-mail address that no person with a password has.
    Unknown,
}

impl ResourceId {
    /// The name of its kind in rows and answers.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Wallet(_) => "wallet",
            Self::ApiKey(_) => "api_key",
            Self::Posting(_) => "posting",
            Self::Operation(_) => "operation",
            Self::AdminKey(_) => "admin_key",
            Self::Person(_) => "person",
            Self::Webhook(_) => "webhook",
            Self::Job(_) => "job",
            Self::Unknown => "unknown",
        }
    }

    /// Use case that reads it; `None` for [`ResourceId::Unknown`].
    #[must_use]
    pub const fn read_use_case(self) -> Option<UseCase> {
        Some(match self {
            Self::Wallet(_) => UseCase::WalletRead,
            Self::ApiKey(_) => UseCase::ApiKeyRead,
            Self::Posting(_) => UseCase::PostingRead,
            Self::Operation(_) => UseCase::OperationRead,
            Self::AdminKey(_) => UseCase::AdminKeyRead,
            Self::Person(_) => UseCase::PersonRead,
            Self::Webhook(_) => UseCase::WebhookRead,
            Self::Job(_) => UseCase::JobRead,
            Self::Unknown => return None,
        })
    }

    /// The id of the resource.
    #[must_use]
    pub const fn id(self) -> [u8; 16] {
        match self {
            Self::Wallet(id) => id.to_bytes(),
            Self::ApiKey(id) => id.to_bytes(),
            Self::Posting(id) => id.to_bytes(),
            Self::Operation(id) => id.to_bytes(),
            Self::AdminKey(id) => id.to_bytes(),
            Self::Person(id) => id.to_bytes(),
            Self::Webhook(id) => id.to_bytes(),
            Self::Job(id) => id.to_bytes(),
            Self::Unknown => [0; 16],
        }
    }

    /// Reads a text that [`ResourceId`] wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (kind, id) = text.split_once(':')?;
        Self::from_row(kind, Uuid::try_parse(id).ok()?.into_bytes())
    }

    /// Reads the values that [`ResourceId::kind`] and [`ResourceId::id`] wrote.
    #[must_use]
    pub fn from_row(kind: &str, id: [u8; 16]) -> Option<Self> {
        let things = [
            Self::Wallet(WalletId::from_bytes(id)),
            Self::ApiKey(ApiKeyId::from_bytes(id)),
            Self::Posting(PostingId::from_bytes(id)),
            Self::Operation(OperationId::from_bytes(id)),
            Self::AdminKey(AdminKeyId::from_bytes(id)),
            Self::Person(PersonId::from_bytes(id)),
            Self::Webhook(WebhookId::from_bytes(id)),
            Self::Job(JobId::from_bytes(id)),
            Self::Unknown,
        ];
        // Compared by the id too: `unknown` is a resource only with an id of zeros.
        things.into_iter().find(|thing| thing.kind() == kind && thing.id() == id)
    }
}

impl fmt::Display for ResourceId {
    /// Kind and id, as `wallet:<id>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind(), Uuid::from_bytes(self.id()))
    }
}
