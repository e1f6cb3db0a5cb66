//! Arguments of `holdfast webhook`.

use clap::Subcommand;
use holdfast_accounts::{Reference, verbs};
use uuid::Uuid;

use super::read::Rows;
use super::request::VerbOrder;
use super::{Why, value};

#[derive(Debug, Subcommand)]
pub enum Webhook {
    /// Create a webhook and print its secret, once
    Create {
        /// URL of the receiver: https://, port 443, a public address, or an origin of webhooks.allow
        url: String,
        /// Id or name of the wallet whose events it gets [default: the operator's, which gets all]
        #[arg(long, value_name = "WALLET")]
        wallet: Option<Reference>,
        /// A kind of events that it gets, like wallet.low; more than once for several [default: all]
        #[arg(long)]
        kind: Vec<String>,
        /// Purpose: 1 to 200 printable characters
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
        #[command(flatten)]
        why: Why,
    },
    /// List webhooks, newest first; never their secrets
    List {
        /// Only those of this wallet: its id or name
        #[arg(long, value_name = "WALLET")]
        wallet: Option<Reference>,
        #[command(flatten)]
        rows: Rows,
    },
    /// Show a webhook
    Show {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
    },
    #[command(flatten)]
    Change(WebhookChange),
    /// List deliveries to a webhook, newest first, with their results
    Deliveries {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        #[command(flatten)]
        rows: Rows,
    },
}

/// Changes of a webhook that is there.
#[derive(Debug, Subcommand)]
pub enum WebhookChange {
    /// Change what people set on a webhook
    Update {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        /// Another address
        #[arg(long)]
        url: Option<String>,
        /// The kinds of events that it gets from now on
        #[arg(long, conflicts_with = "all_kinds")]
        kind: Vec<String>,
        /// Every kind from now on
        #[arg(long)]
        all_kinds: bool,
        /// Another description
        #[arg(long, value_name = "TEXT", conflicts_with = "no_description")]
        description: Option<String>,
        /// Remove the description
        #[arg(long)]
        no_description: bool,
        #[command(flatten)]
        why: Why,
    },
    /// Create another secret and print it, once; the previous one also signs, for 24 hours
    Rotate {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        #[command(flatten)]
        why: Why,
    },
    #[command(flatten)]
    Verb(WebhookVerb),
    /// Have a server send a webhook.test event, in one try; `deliveries` has its result
    Test {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        #[command(flatten)]
        why: Why,
    },
    /// Have a server send an event again whose delivery succeeded or failed for good, or send a waiting one at once
    Resend {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        /// Id of the event
        #[arg(value_name = "EVENT", value_parser = value::id)]
        event: Uuid,
        #[command(flatten)]
        why: Why,
    },
}

/// Verbs of a webhook.
#[derive(Debug, Subcommand)]
pub enum WebhookVerb {
    /// Stop all deliveries to a webhook
    Disable {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        #[command(flatten)]
        why: Why,
    },
    /// Enable a disabled webhook, which gets the events from now on
    Enable {
        /// Id of the webhook
        #[arg(value_name = "UUID", value_parser = value::id)]
        id: Uuid,
        #[command(flatten)]
        why: Why,
    },
}

impl WebhookVerb {
    /// Row of the verb, its resource, and why.
    pub(crate) fn order(self) -> VerbOrder<Uuid> {
        let (verb, subject, why) = match self {
            Self::Disable { id, why } => (&verbs::DISABLE_WEBHOOK, id, why),
            Self::Enable { id, why } => (&verbs::ENABLE_WEBHOOK, id, why),
        };
        VerbOrder { verb, subject, consent: None, why }
    }
}
