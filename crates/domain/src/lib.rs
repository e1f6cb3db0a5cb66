//! The rules of Holdfast: requests, money, and the life of one paid operation. No I/O, no clock, no
//! randomness, no serialization and no async runtime: other services embed this crate as it is.
//!
//! The heart is [`decide`]: a pure function from a [`Snapshot`] and an [`Event`] to a [`Transition`]
//! or a [`Refusal`]. [`conduct`] is the loop that carries such transitions to a [`Journal`] and
//! handles every lost commit and lost race; [`ports`] are the traits which a store and a provider
//! fulfil. The same `decide` runs in production and in the model checker.
//!
//! # Words
//!
//! | word | meaning |
//! |---|---|
//! | request key | the caller's `Idempotency-Key`, a canonical UUIDv4 |
//! | operation | the one logical unit of work that (API key, request key) stands for |
//! | fingerprint | keyed hash of the normalized request and its model contract |
//! | hold | funds reserved on a wallet for one operation |
//! | settlement | capture of the charge and return of the rest of the hold, in one step |
//! | claim id | 128 random bits of the task that offers a claim: who owns the operation |
//! | generation | number of an operation's hold, one more at every reopening |
//! | node | one running process: a name and an incarnation; operations are leased through it |
//! | meters | token counts by disjoint kinds, as reported, normalized |
//!
//! # Embedding
//!
//! A service that sells other work than chat brings a [`Journal`] and a closure with its work; everything that
//! concerns money and retries happens in here. `holdfast-embed` brings the store, the lease and the reconciler
//! along.
//!
//! | an embedder needs | from |
//! |---|---|
//! | the loop of a sale | [`conduct`]: `Conduct`, `ClaimOffer`, `ClaimOutcome`, `Ending` |
//! | the claim and its parts | [`operation`]: `Claim`, `Binding`, `Owner`, `Lease`, `SealedResult` |
//! | prices and meters | [`price`], [`usage`] |
//! | keys for digests of requests | [`secret`]: `ServerSecret` |
//! | wallets, API keys, deposits | [`admin`]: commands of [`admin::Administration`] |
//!
//! `examples/embed.rs` goes on with a replay and a conflict.
//!
//! ```
//! use holdfast_domain::conduct::{ClaimOutcome, Conduct, Ending};
//! use holdfast_testkit::{MemoryJournal, NoPause, sample};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), holdfast_domain::conduct::ClaimError> {
//! let journal = MemoryJournal::with_funds(1_000);
//! let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
//!
//! let claim = sample::claim().hold(100).build();
//! let sold = conduct
//!     .perform(&sample::order(&claim), async |operation| {
//!         // The hold of `operation` is committed. Do the work now: it is called for at most once.
//!         let (metered, result) = (sample::metered(20, 10), sample::result("sealed"));
//!         (Ending::Finished { metered, result }, Vec::new())
//!     })
//!     .await?;
//!
//! assert!(matches!(sold, ClaimOutcome::Ended(_)));
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs, clippy::arithmetic_side_effects, clippy::float_arithmetic)]

pub mod admin;
pub mod answer;
mod base62;
pub mod billing;
pub mod cell;
pub mod conduct;
pub mod credential;
mod error_chain;
pub mod hold;
pub mod identity;
pub mod ledger;
pub mod limits;
pub mod model;
pub mod money;
pub mod operation;
pub mod ports;
pub mod price;
pub mod private;
pub mod request;
pub mod restore;
pub mod secret;
pub mod state;
pub mod statistics;
pub mod text;
pub mod usage;
pub mod wallet;

pub use crate::error_chain::ErrorChain;
pub use crate::identity::{
    AdminKeyId, ApiKeyId, BadRequestKey, BrowserMarkId, ClaimId, CommandKey, CredentialId, EventId,
    HoldId, Incarnation, JobId, LinkId, NodeAddress, NodeName, OperationId, PersonId, PostingId,
    RelayNonce, RequestId, RequestKey, SessionId, SettlementId, UsageId, WalletId, WebhookId,
};
pub use crate::money::{Currency, Micros, Timestamp};
pub use crate::operation::{
    Event, Operation, Phase, Refusal, Situation, Snapshot, Transition, decide, situation,
};
pub use crate::ports::{ApiKeys, Journal, Nodes, Prices, Provider, Restores, Statistics, Wallets};
