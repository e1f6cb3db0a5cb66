//! Arguments of `holdfast person`.

use clap::Subcommand;
use holdfast_accounts::{Name, Reference};
use holdfast_domain::admin::{EmailAddress, Role};
use uuid::Uuid;

use super::grant;
use super::read::Rows;
use super::{Consent, Why};

#[derive(Debug, Subcommand)]
pub enum Person {
    /// Offer a role to the owner of an e-mail address, and print a one-time link
    Invite {
        /// E-mail address
        email: EmailAddress,
        /// Role: owner, operator, finance, support or auditor; for one wallet holder_admin, holder_developer or
        /// holder_viewer
        #[arg(long, value_parser = grant::role)]
        role: Role,
        /// Id or name of the wallet that a holder's role is for
        #[arg(long)]
        wallet: Option<Reference>,
        /// A name of 1 to 64 printable characters
        #[arg(long)]
        name: Option<Name>,
        #[command(flatten)]
        why: Why,
    },
    /// List people, newest first
    List {
        #[command(flatten)]
        rows: Rows,
    },
    /// Show a person with their roles
    Show {
        /// Id of the person
        id: Uuid,
    },
    /// Create another one-time link for a person and print it; a person with a role loses password and sessions. An
    /// owner's link is created only with direct database access
    Link {
        /// Id of the person
        id: Uuid,
        #[command(flatten)]
        why: Why,
    },
    /// End a role of a person, or the offer of it
    Revoke {
        /// Id of the person
        id: Uuid,
        /// The role
        #[arg(long, value_parser = grant::role)]
        role: Role,
        /// Id or name of the wallet that a holder's role is for
        #[arg(long)]
        wallet: Option<Reference>,
        #[command(flatten)]
        why: Why,
    },
    /// End a person with all roles and sessions, for good; the last owner stays
    End {
        /// Id of the person
        id: Uuid,
        /// Erase their e-mail address and name as well
        #[arg(long)]
        erase: bool,
        #[command(flatten)]
        consent: Consent,
        #[command(flatten)]
        why: Why,
    },
}
