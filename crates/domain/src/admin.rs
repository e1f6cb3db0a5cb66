//! Administration: wallets, API keys, postings and admin keys, as people change them.
//!
//! ```text
//! AccountCommand ─▶ decide, which reads Facts (of the store, under its locks) ─┬▶ AccountEffect
//!                                                                            └▶ AccountRefusal
//! AccountEffect = writes + the row of the trail + the binding of the request key + events: one transaction
//! ```
//!
//! A command names one change, for any actor and interface. [`decide`] judges it only by its [`Facts`]; a store
//! reads those, and writes the effect with its row of the audit log ([`crate::admin::audit`]), all of it or
//! none. Commands come one after the other: each takes the head of the audit log first, so that no other
//! command changes the facts that it has read.
//!
//! The request key makes a command safe to repeat, for ever: it is bound in the transaction of the change, and
//! only by that. A refusal binds no key.
//!
//! Never in here: authorization of a person, which is judged before a command is made ([`role`]);
//! the phases of an operation, which are [`mod@crate::operation`]'s.
//!
//! ```
//! use holdfast_domain::admin::{
//!     AccountAction, AccountCommand, AccountRefusal, ActorId, RequestBinding, RequestRecord,
//!     WalletAction, WalletBounds, replay,
//! };
//! use holdfast_testkit::sample;
//!
//! let suspend = AccountCommand {
//!     actor: ActorId::Local,
//!     address: None,
//!     request: RequestBinding { key: sample::fresh(), digest: [1; 32], canonical: None },
//!     reason: Some("unpaid".to_owned()),
//!     bounds: WalletBounds::DEFAULT,
//!     is_after_restore: false,
//!     action: AccountAction::Wallet(WalletAction::Suspend(sample::WALLET)),
//! };
//! // The transaction of the change bound the request key to this record.
//! let record = RequestRecord { digest: [1; 32], canonical: None, things: Vec::new(), at: sample::NOW };
//! assert!(replay(&record, &suspend, None).unwrap().replayed);
//!
//! // Another request with the same key changes nothing.
//! let request = RequestBinding { digest: [2; 32], ..suspend.request };
//! let other = AccountCommand { request, ..suspend };
//! assert_eq!(replay(&record, &other, None), Err(AccountRefusal::RequestKeyConflict));
//! ```

mod actions;
mod actor;
mod admin_key;
mod api_key;
pub mod audit;
mod bounds;
mod browser_mark;
mod effect;
mod email_address;
pub mod event;
mod facts;
mod field_change;
mod invitation;
pub mod job;
mod job_state;
pub mod ledger_root;
pub mod listing;
pub mod offer;
mod person;
mod person_write;
pub mod ports;
mod posting;
mod refusal;
pub mod report;
mod request;
mod resource;
pub mod role;
pub mod search;
mod wallet;
pub mod webhook;
mod webhook_record;

pub use self::actions::admin_key::AdminKeyAction;
pub use self::actions::api_key::ApiKeyAction;
pub use self::actions::command::{AccountCommand, RequestRecord};
pub use self::actions::job::JobAction;
pub use self::actions::note::Note;
pub use self::actions::person::PersonAction;
pub use self::actions::wallet::WalletAction;
pub use self::actions::webhook::WebhookAction;
pub use self::actions::{AccountAction, Creation, decide, replay};
pub use self::actor::{ActorId, BadActorId};
pub use self::admin_key::{AdminBearer, AdminCredential, AdminKey, KnownAdminCredential};
pub use self::api_key::ApiKeyPatch;
pub use self::bounds::{BoundedKind, WalletBounds};
pub use self::browser_mark::{BROWSER_MARKS_MAX, BrowserMark, NewBrowserMark};
pub use self::effect::{AccountEffect, AccountReceipt, AccountWrite};
pub use self::email_address::{BadEmailAddress, EmailAddress};
pub use self::facts::{Count, Facts, FoundPerson, NameScope, Names, Owners, PersonBy, TakenNames};
pub use self::field_change::{FieldChange, Fields, TrailFields};
pub use self::invitation::PersonInvitation;
pub use self::person::{
    Authority, FIRST_OWNER_LIFETIME, FRESH_FOR, KnownLink, KnownPassword, KnownSession,
    LINK_LIFETIME, LinkPurpose, NewSession, PasswordHash, Person, PersonGrant, PersonLink,
    PersonRecord, PersonState, SESSION_IDLE, SESSION_LIFETIME, SESSIONS_MAX, Session,
};
pub use self::person_write::{EndedSessions, NewLink, PersonWrite};
pub use self::ports::{
    Administration, CommandError, Deliveries, Directory, DueDelivery, Endpoints, EventOutbox,
    Events, HourlyRefusals, Jobs, LedgerRoots, Outbox, RefusalFilter, RefusedRequests,
    RouteReports, Sessions, Webhooks,
};
pub use self::posting::{
    DepositReference, KnownPosting, NewPosting, OWN_SOURCE, PostingDetails, RefundableOperation,
};
pub use self::refusal::{AccountRefusal, Rejection};
pub use self::report::Reports;
pub use self::request::{CanonicalDigest, RequestBinding};
pub use self::resource::ResourceId;
pub use self::role::{Reach, Role, UseCase};
pub use self::wallet::{WalletPatch, WalletRecord, WalletState};
pub use self::webhook_record::{
    TESTS_MAX, WEBHOOKS_MAX, WebhookPatch, WebhookRecord, WebhookSecret, WebhookWrite,
};
