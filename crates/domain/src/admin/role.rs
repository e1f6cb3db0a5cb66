//! Roles: the use cases that are open to each, and the wallets that it is for. One table, [`UseCase::roles`].
//!
//! A role gives a set of (use case, wallet or all). An actor grants only rights that they have: a key is issued
//! by an actor with every use case of its role ([`Role::may_grant`]).
//!
//! Never in here: an interface. `holdfast-accounts` has the endpoints and commands of each use case, and a test
//! compares them with this table.
//!
//! ```
//! use holdfast_domain::WalletId;
//! use holdfast_domain::admin::role::{Reach, Role, UseCase};
//!
//! assert!(Role::Support.may(UseCase::PostingRefund));
//! assert!(!Role::Support.may(UseCase::PostingDeposit));
//! // A right can be granted only by an actor that has it.
//! assert!(Role::Owner.may_grant(Role::Support));
//! assert!(!Role::Support.may_grant(Role::Finance));
//! // To a holder other wallets do not exist.
//! let [own, other] = [1, 2].map(WalletId::from_u128);
//! assert!(Reach::Wallet(own).covers(own) && !Reach::Wallet(own).covers(other));
//! ```

use std::fmt;

use crate::WalletId;

/// Role of an admin key or a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Everything, people and admin keys too.
    Owner,
    /// Runs the service: API keys, suspensions, operations, the operator's webhooks.
    Operator,
    /// Moves money: wallets, deposits, adjustments, refunds, statements, reports.
    Finance,
    /// Helps customers: reads all but people and costs, suspends and resumes API keys.
    Support,
    /// Reads all but people and admin keys, the trail among it, and starts verifications.
    Auditor,
    /// A customer's administrator, for one wallet.
    HolderAdmin,
    /// A customer's developer, for one wallet: its API keys.
    HolderDeveloper,
    /// A customer's reader, for one wallet.
    HolderViewer,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 8] = [
        Self::Owner,
        Self::Operator,
        Self::Finance,
        Self::Support,
        Self::Auditor,
        Self::HolderAdmin,
        Self::HolderDeveloper,
        Self::HolderViewer,
    ];

    /// The name in rows, options and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Operator => "operator",
            Self::Finance => "finance",
            Self::Support => "support",
            Self::Auditor => "auditor",
            Self::HolderAdmin => "holder_admin",
            Self::HolderDeveloper => "holder_developer",
            Self::HolderViewer => "holder_viewer",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.label() == label)
    }

    /// True for roles that see one wallet alone.
    #[must_use]
    pub const fn is_holder(self) -> bool {
        matches!(self, Self::HolderAdmin | Self::HolderDeveloper | Self::HolderViewer)
    }

    /// True if the use case is open to the role, for some wallet at least.
    #[must_use]
    pub fn may(self, use_case: UseCase) -> bool {
        use_case.roles().contains(&self)
    }

    /// True if the holder of this role has all rights of the other one.
    #[must_use]
    pub fn may_grant(self, other: Self) -> bool {
        // A holder's role gives things of one wallet: whoever may do them for all may grant it.
        UseCase::ALL.iter().all(|use_case| !other.may(*use_case) || self.may(*use_case))
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Wallets that a role is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All of them, those to come too.
    All,
    /// Only one wallet: resources of any other do not exist under this reach.
    Wallet(WalletId),
}

impl Reach {
    /// True if resources of this wallet are visible.
    #[must_use]
    pub fn covers(self, wallet: WalletId) -> bool {
        match self {
            Self::All => true,
            Self::Wallet(own) => own == wallet,
        }
    }
}

/// Writes the use cases with their names and roles.
macro_rules! use_cases {
    ($($(#[$doc:meta])* $name:ident = $label:literal: $($role:ident)+;)+) => {
        /// Use case of administration: the unit of permission, and what the trail names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum UseCase {
            $($(#[$doc])* $name),+
        }

        impl UseCase {
            /// Every use case.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in the trail, in answers and in metrics.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),+ }
            }

            /// True if the audit log has a row of the first one of a day, for each actor and wallet.
            #[must_use]
            pub const fn is_noted_read(self) -> bool {
                matches!(
                    self,
                    Self::StatementRead | Self::UsageRead | Self::AuditRead | Self::PersonRead
                )
            }

            /// The use case of this name.
            #[must_use]
            pub fn from_label(label: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|use_case| use_case.label() == label)
            }

            /// Roles that it is open to. An owner may do everything, and stands in no row.
            #[must_use]
            pub const fn roles(self) -> &'static [Role] {
                match self {
                    $(Self::$name => &[Role::Owner, $(Role::$role),+]),+
                }
            }
        }
    };
}

use_cases! {
    /// A wallet is made.
    WalletCreate = "wallet.create": Finance;
    /// Wallets are listed, and one is shown.
    WalletRead = "wallet.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// A wallet's name, external id and thresholds are changed.
    WalletUpdate = "wallet.update": Finance;
    /// New runs of a wallet are stopped.
    WalletSuspend = "wallet.suspend": Operator Finance;
    /// New runs of a wallet are let in again.
    WalletResume = "wallet.resume": Operator Finance;
    /// An empty wallet is closed for good.
    WalletClose = "wallet.close": Finance;
    /// Funds are added.
    PostingDeposit = "posting.deposit": Finance;
    /// Available money is corrected, for a reason.
    PostingAdjust = "posting.adjust": Finance;
    /// A part of a charge is given back.
    PostingRefund = "posting.refund": Finance Support;
    /// Postings are listed, and one is shown.
    PostingRead = "posting.read": Operator Finance Support Auditor HolderAdmin HolderViewer HolderDeveloper;
    /// API keys are issued, one or many.
    ApiKeyIssue = "api_key.issue": Operator HolderAdmin HolderDeveloper;
    /// API keys are listed, and one is shown with its counters.
    ApiKeyRead = "api_key.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Limits, models, end and name of an API key are changed.
    ApiKeyUpdate = "api_key.update": Operator HolderAdmin HolderDeveloper;
    /// New runs of an API key are stopped.
    ApiKeySuspend = "api_key.suspend": Operator Support;
    /// New runs of an API key are let in again.
    ApiKeyResume = "api_key.resume": Operator Support;
    /// An API key gets another credential.
    ApiKeyRotate = "api_key.rotate": Operator HolderAdmin HolderDeveloper;
    /// An API key is ended for good.
    ApiKeyRevoke = "api_key.revoke": Operator HolderAdmin HolderDeveloper;
    /// Operations are listed, found, and shown.
    OperationRead = "operation.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// The end of a running operation is requested.
    OperationCancel = "operation.cancel": Operator;
    /// An operation whose owner is gone is ended.
    OperationReconcile = "operation.reconcile": Operator;
    /// Refused requests of callers are listed, found and counted.
    RefusalRead = "refusal.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Events are listed, and one is shown.
    EventRead = "event.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Usage is summed, by groups.
    UsageRead = "usage.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Costs that no run can have caused are taken out of the sums of usage: beside the database alone.
    UsageExcludeCosts = "usage.exclude_costs": Owner;
    /// The statement of a wallet is read.
    StatementRead = "statement.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Models on offer are listed; with their routes for principals that may see them.
    ModelRead = "model.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Price versions are listed.
    PriceRead = "price.read": Operator Finance Support Auditor HolderAdmin HolderDeveloper HolderViewer;
    /// Nodes are listed.
    NodeRead = "node.read": Operator Finance Support Auditor;
    /// Routes of providers are listed, and one is shown, with their errors.
    RouteRead = "route.read": Operator Finance Support Auditor;
    /// Roots of the ledger are listed, and an operation is proven to be in one.
    RootRead = "root.read": Operator Finance Support Auditor;
    /// A job is started: an audit of the ledger, which changes no row of it.
    JobCreate = "job.create": Operator Finance Auditor;
    /// Jobs are listed, and one is shown.
    JobRead = "job.read": Operator Finance Auditor;
    /// Admin keys are listed, and one is shown.
    AdminKeyRead = "admin_key.read": Owner;
    /// The trail is read.
    AuditRead = "audit.read": Auditor;
    /// An admin key is issued.
    AdminKeyIssue = "admin_key.issue": Owner;
    /// An admin key gets another credential.
    AdminKeyRotate = "admin_key.rotate": Owner;
    /// An admin key is ended for good.
    AdminKeyRevoke = "admin_key.revoke": Owner;
    /// People are listed, and one is shown.
    PersonRead = "person.read": HolderAdmin;
    /// A person is given a role, by a link.
    PersonInvite = "person.invite": HolderAdmin;
    /// A person without a password gets another link.
    PersonLink = "person.link": HolderAdmin;
    /// A person, or a role of one, is ended.
    PersonEnd = "person.end": HolderAdmin;
    /// A person takes what a link gives: they do it themselves.
    PersonAccept = "person.accept": Owner;
    /// A person changes the password that they have: they do it themselves.
    PersonPassword = "person.password": Owner;
    /// A sign-in has failed: a client does it without a role.
    PersonSignInFailed = "person.sign_in_failed": Owner;
    /// A webhook is made.
    WebhookCreate = "webhook.create": Operator HolderAdmin;
    /// Webhooks and their deliveries are listed, and one is shown.
    WebhookRead = "webhook.read": Operator Support Auditor HolderAdmin;
    /// URL, kinds and description of a webhook are changed.
    WebhookUpdate = "webhook.update": Operator HolderAdmin;
    /// A webhook gets another secret.
    WebhookRotate = "webhook.rotate": Operator HolderAdmin;
    /// Deliveries to a webhook are stopped.
    WebhookDisable = "webhook.disable": Operator HolderAdmin;
    /// Deliveries to a webhook are resumed.
    WebhookEnable = "webhook.enable": Operator HolderAdmin;
    /// A webhook is sent an event without content.
    WebhookTest = "webhook.test": Operator HolderAdmin;
    /// A webhook is sent an event again.
    WebhookResend = "webhook.resend": Operator HolderAdmin;
}

impl fmt::Display for UseCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        let names: BTreeSet<_> = UseCase::ALL.iter().map(|use_case| use_case.label()).collect();
        assert_eq!(names.len(), UseCase::ALL.len());
        for use_case in UseCase::ALL {
            assert_eq!(UseCase::from_label(use_case.label()), Some(*use_case));
        }
        for role in Role::ALL {
            assert_eq!(Role::from_label(role.label()), Some(role));
        }
    }

    #[test]
    fn an_owner_may_do_everything_and_an_auditor_changes_nothing() {
        assert!(UseCase::ALL.iter().all(|use_case| Role::Owner.may(*use_case)));
        for use_case in UseCase::ALL.iter().filter(|use_case| Role::Auditor.may(**use_case)) {
            // An audit is what an auditor is for, and it changes nothing in the book.
            let is_audit = *use_case == UseCase::JobCreate;
            assert!(is_audit || use_case.label().ends_with(".read"), "an auditor may {use_case}");
        }
    }

    #[test]
    fn nobody_grants_what_they_have_not() {
        use Role::{Auditor, Finance, HolderAdmin, HolderDeveloper, Operator, Owner, Support};
        assert!(Role::ALL.into_iter().all(|role| Owner.may_grant(role)));
        for (grantor, role, may) in [
            (HolderAdmin, HolderDeveloper, true),
            (HolderDeveloper, HolderAdmin, false),
            (Support, Finance, false),
            (Operator, Owner, false),
            (Auditor, Support, false),
        ] {
            assert_eq!(grantor.may_grant(role), may, "{grantor} grants {role}");
        }
    }

    #[test]
    fn a_holder_reaches_one_wallet() {
        let own = Reach::Wallet(WalletId::from_u128(1));
        assert!(own.covers(WalletId::from_u128(1)) && !own.covers(WalletId::from_u128(2)));
        assert!(Reach::All.covers(WalletId::from_u128(2)));
    }
}
