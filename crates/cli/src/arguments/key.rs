//! Arguments of `holdfast key` and `holdfast admin-key`.
//!
//! Limits, models and ends have the same arguments in an issue and in an edit. In an edit a missing argument keeps
//! the value, and `--no-…` and `--all-…` remove it.
//!
//! A secret is never an argument: the file of `--secrets` is written and not read from, and admin keys come from
//! the environment.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use holdfast_accounts::{ExternalId, Name, Reason, Reference, verbs};
use holdfast_domain::admin::Role;
use holdfast_domain::credential::{BalanceVisibility, UsageScope};
use holdfast_domain::limits::CountLimit;
use uuid::Uuid;

use super::grant::{self, Expiry, Models, Span, SpendCap};
use super::read::{ColumnChoice, Rows};
use super::request::VerbOrder;
use super::{Consent, CreationKey, RequestKey, Why};

#[derive(Debug, Subcommand)]
pub enum AdminKey {
    /// Issue an admin key and print it, once
    Issue {
        /// A unique name of 1 to 64 printable characters
        #[arg(long)]
        name: Name,
        /// Role: owner, operator, finance, support or auditor; for one wallet holder_admin, holder_developer or
        /// holder_viewer
        #[arg(long, value_parser = grant::role)]
        role: Role,
        /// Id or name of the wallet that a holder's role is for
        #[arg(long)]
        wallet: Option<Reference>,
        /// End: a date, a moment of RFC 3339, or a span from now like 30d [default: never]
        #[arg(long, value_name = "MOMENT|SPAN")]
        expires: Option<Expiry>,
        #[command(flatten)]
        why: Why,
    },
    /// Add a credential to an admin key, print it, once, and let the earlier ones end
    Rotate {
        /// Id of the admin key
        id: Uuid,
        /// Time that the earlier credentials are still accepted: a whole number and s, m, h or d
        #[arg(long, value_name = "SPAN", default_value = "24h")]
        grace: Span,
        #[command(flatten)]
        why: Why,
    },
    /// List the admin keys in force, newest first; never their secrets
    List {
        /// Include keys that have ended
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        rows: Rows,
    },
    /// Show an admin key
    Show {
        /// Id of the admin key
        id: Uuid,
    },
    /// End an admin key for good; the last owner's stays
    Revoke {
        /// Id of the admin key
        id: Uuid,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        why: Why,
    },
}

#[derive(Debug, Subcommand)]
pub enum Key {
    /// Issue an API key and print it, once
    Issue(Box<Issue>),
    /// List all API keys, oldest first; never their secrets
    List(KeyFilter),
    /// Show an API key with the readings of its counters
    Show {
        /// Id or name of the API key
        key: Reference,
    },
    #[command(flatten)]
    Change(KeyChange),
    /// Add a credential to an API key, print it, once, and let the earlier ones end
    Rotate {
        /// Id or name of the API key
        key: Reference,
        /// Time that the earlier credentials are still accepted: a whole number and s, m, h or d
        #[arg(long, value_name = "SPAN", default_value = "24h")]
        grace: Span,
        /// Reason for the audit log; over the network required of all callers except the wallet's holder
        #[arg(long, value_name = "TEXT")]
        reason: Option<Reason>,
        #[command(flatten)]
        request: RequestKey,
    },
}

/// API keys that a list is of: all filters apply.
#[derive(Debug, Args)]
pub struct KeyFilter {
    /// Only those of this name
    #[arg(long, value_parser = Name::sought)]
    pub name: Option<Name>,
    /// Only those of this wallet: its id or name
    #[arg(long, value_name = "WALLET")]
    pub wallet: Option<Reference>,
    /// Only those in this state; those that are suspended are in force as well
    #[arg(long, value_parser = ["in_force", "suspended", "ended", "revoked"])]
    pub state: Option<String>,
    /// Only those that may use this model: its public id
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// At most this many, the newest [default: all]
    #[arg(long, value_name = "N")]
    pub limit: Option<u32>,
    #[command(flatten)]
    pub columns: ColumnChoice,
}

/// Changes of an API key that is there.
#[derive(Debug, Subcommand)]
pub enum KeyChange {
    /// Change what an API key may do
    Update(Box<UpdateKey>),
    #[command(flatten)]
    Verb(KeyVerb),
}

/// Verbs of an API key.
#[derive(Debug, Subcommand)]
pub enum KeyVerb {
    /// Stop new runs for an API key; running operations finish, and bound keys still answer
    Suspend {
        /// Id or name of the API key
        key: Reference,
        /// Reason for the audit log: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        reason: Reason,
        #[command(flatten)]
        request: RequestKey,
    },
    /// Resume new runs for a suspended API key
    Resume {
        /// Id or name of the API key
        key: Reference,
        #[command(flatten)]
        why: Why,
    },
    /// End an API key for good; running operations finish, stored results become unreadable
    Revoke {
        /// Id or name of the API key
        key: Reference,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        why: Why,
    },
}

impl KeyVerb {
    /// Row of the verb, its resource, and why.
    pub(crate) fn order(self) -> VerbOrder<Reference> {
        let (verb, subject, consent, why) = match self {
            Self::Suspend { key, reason, request } => {
                (&verbs::SUSPEND_API_KEY, key, None, Why { reason: Some(reason), request })
            }
            Self::Resume { key, why } => (&verbs::RESUME_API_KEY, key, None, why),
            Self::Revoke { key, consent, why } => (&verbs::REVOKE_API_KEY, key, Some(consent), why),
        };
        VerbOrder { verb, subject, consent, why }
    }
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct Issue {
    /// Id or name of the wallet that pays
    #[arg(long)]
    pub wallet: Reference,
    /// A unique name of 1 to 64 printable characters [default: made from its id]
    #[arg(long)]
    pub name: Option<Name>,
    /// End, also after a rotation: a date like 2027-01-31 (its first moment in UTC), a moment of RFC 3339, or a
    /// span from now like 30d or 24h [default: never]
    #[arg(long, value_name = "MOMENT|SPAN")]
    pub expires: Option<Expiry>,
    /// The only models that it may use: public ids, or publisher/*, with commas between [default: all]
    #[arg(long, value_name = "ID,…")]
    pub models: Option<Models>,
    /// Spend limit: AMOUNT/total, AMOUNT/day or AMOUNT/month (UTC), like 25.00/month
    #[arg(long, value_name = "AMOUNT/WINDOW")]
    pub spend_limit: Option<SpendCap>,
    /// Requests per minute
    #[arg(long, value_name = "N", value_parser = grant::count, allow_negative_numbers = true)]
    pub rpm: Option<u64>,
    /// Tokens per minute, prompt and completion together
    #[arg(long, value_name = "N", value_parser = grant::count, allow_negative_numbers = true)]
    pub tpm: Option<u64>,
    /// Operations that it may run at once
    #[arg(long, value_name = "N", value_parser = grant::count, allow_negative_numbers = true)]
    pub concurrency: Option<u64>,
    /// Do not show the wallet's balance to its bearer
    #[arg(long)]
    pub hide_balance: bool,
    /// Usage that its bearer may read: its own, or that of all keys of the wallet [default: key]
    #[arg(long, value_name = "key|wallet", value_parser = grant::usage)]
    pub usage: Option<UsageScope>,
    /// Id in another system, such as your customers' database; unique within the wallet
    #[arg(long, value_name = "ID")]
    pub external_id: Option<ExternalId>,
    /// Reason for the audit log; over the network required of all callers except the wallet's holder
    #[arg(long, value_name = "TEXT")]
    pub reason: Option<Reason>,
    /// Issue a key for each line of this file: a name, or a name, a tab and an id of an outer system. All have the
    /// same limits; they are issued a hundred at a time. The same command with the same --key continues an
    /// interrupted one
    #[arg(
        long,
        value_name = "FILE",
        requires = "secrets",
        conflicts_with_all = ["name", "external_id"]
    )]
    pub from: Option<PathBuf>,
    /// File of the secrets of --from, readable only by you (0600): a line for each key with its id, its name and
    /// the key, and tabs between
    #[arg(long, value_name = "FILE", requires = "from")]
    pub secrets: Option<PathBuf>,
    /// Give another secret to each key of an earlier run that the file of --secrets lacks: secrets that were shown
    /// end at once
    #[arg(long, requires = "from")]
    pub rotate_missing: bool,
    /// Check whether the keys of --from would be issued, without a change of the ledger or of the file of --secrets
    #[arg(long, requires = "from", conflicts_with = "rotate_missing")]
    pub dry_run: bool,
    #[command(flatten)]
    pub request: CreationKey,
}

impl Issue {
    /// Bounds of the counted limits.
    pub fn counts(&self) -> [(CountLimit, Option<u64>); CountLimit::ALL.len()] {
        CountLimit::ALL.map(|limit| match limit {
            CountLimit::RequestsPerMinute => (limit, self.rpm),
            CountLimit::TokensPerMinute => (limit, self.tpm),
            CountLimit::Concurrency => (limit, self.concurrency),
        })
    }
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct UpdateKey {
    /// Id or name of the API key
    pub key: Reference,
    /// Another name
    #[arg(long)]
    pub name: Option<Name>,
    /// Another id in an outer system; unique within the wallet
    #[arg(long, value_name = "ID", conflicts_with = "no_external_id")]
    pub external_id: Option<ExternalId>,
    /// Remove the id in another system
    #[arg(long)]
    pub no_external_id: bool,
    /// Another end
    #[arg(long, value_name = "MOMENT|SPAN", conflicts_with = "no_expires")]
    pub expires: Option<Expiry>,
    /// No end any more
    #[arg(long)]
    pub no_expires: bool,
    /// Other models: public ids, or publisher/*, with commas between
    #[arg(long, value_name = "ID,…", conflicts_with = "all_models")]
    pub models: Option<Models>,
    /// All models from now on
    #[arg(long)]
    pub all_models: bool,
    /// Another bound on its spend: AMOUNT/total, AMOUNT/day or AMOUNT/month (UTC)
    #[arg(long, value_name = "AMOUNT/WINDOW", conflicts_with = "no_spend_limit")]
    pub spend_limit: Option<SpendCap>,
    /// Remove the bound of its spend
    #[arg(long)]
    pub no_spend_limit: bool,
    /// Requests per minute, or none for no limit
    #[arg(long, value_name = "N|none", value_parser = grant::limit)]
    pub rpm: Option<grant::Limit>,
    /// Tokens per minute, or none for no limit
    #[arg(long, value_name = "N|none", value_parser = grant::limit)]
    pub tpm: Option<grant::Limit>,
    /// Operations at once, or none for no limit
    #[arg(long, value_name = "N|none", value_parser = grant::limit)]
    pub concurrency: Option<grant::Limit>,
    /// Visibility of the wallet's balance to its bearer
    #[arg(long, value_name = "shown|hidden", value_parser = grant::balance)]
    pub balance: Option<BalanceVisibility>,
    /// Usage that its bearer may read: its own, or that of all keys of the wallet
    #[arg(long, value_name = "key|wallet", value_parser = grant::usage)]
    pub usage: Option<UsageScope>,
    #[command(flatten)]
    pub why: Why,
}

impl UpdateKey {
    /// Changes of the counted limits.
    pub fn counts(&self) -> [(CountLimit, Option<grant::Limit>); CountLimit::ALL.len()] {
        CountLimit::ALL.map(|limit| match limit {
            CountLimit::RequestsPerMinute => (limit, self.rpm),
            CountLimit::TokensPerMinute => (limit, self.tpm),
            CountLimit::Concurrency => (limit, self.concurrency),
        })
    }
}
