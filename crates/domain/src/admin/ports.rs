//! Ports of administration: its changes, lists, reports and notifications. The sale of a request needs none of
//! them.
//!
//! | port | keeps or does |
//! |---|---|
//! | [`Administration`] | changes of people, with the audit log of them |
//! | [`Directory`] | finds and lists wallets, API keys and operations |
//! | [`Events`], [`EventOutbox`] | events of a wallet; events that no change has |
//! | [`RefusedRequests`] | lists and counts requests that were refused |
//! | [`LedgerRoots`] | signed roots of the ledger, and proofs that an operation is in one |
//! | [`RouteReports`] | attempts, failures and circuit breakers of routes |
//! | [`Jobs`] | long work of operators, a page at a time |
//! | [`Webhooks`], [`Deliveries`] | webhooks; the deliveries that are due, and the lease of each |
//! | [`Sessions`] | sessions of people, and their passwords and links |
//! | [`Endpoints`] | judges the addresses of receivers |
//!
//! The rules of [`crate::ports`] hold here as well. Never in here: a rule about money.
//!
//! ```
//! use std::sync::Arc;
//!
//! use async_trait::async_trait;
//! use holdfast_domain::admin::Endpoints;
//! use holdfast_domain::admin::webhook::{Endpoint, Origin, TryResult};
//!
//! /// Reaches only the receivers that the operator has listed.
//! struct Listed(Arc<[Origin]>);
//!
//! #[async_trait]
//! impl Endpoints for Listed {
//!     fn allowed(&self) -> Arc<[Origin]> {
//!         Arc::clone(&self.0)
//!     }
//!
//!     async fn check(&self, endpoint: &Endpoint) -> Result<(), TryResult> {
//!         let is_listed = self.0.contains(endpoint.origin());
//!         if is_listed { Ok(()) } else { Err(TryResult::AddressRefused) }
//!     }
//! }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let listed = Listed([Origin::of_url("http://10.0.0.7:8080")?].into());
//! let outside = Endpoint::parse("https://example.com/hook", &listed.allowed())?;
//! assert_eq!(listed.check(&outside).await, Err(TryResult::AddressRefused));
//! # Ok(())
//! # }
//! ```

mod administration;
mod directory;
mod events;
mod jobs;
mod refusals;
mod roots;
mod routes;
mod sessions;
mod webhooks;

use std::fmt;

pub use self::administration::{Administration, CommandError};
pub use self::directory::Directory;
pub use self::events::{EventOutbox, Events};
pub use self::jobs::Jobs;
pub use self::refusals::{HourlyRefusals, RefusalFilter, RefusedRequests};
pub use self::roots::LedgerRoots;
pub use self::routes::RouteReports;
pub use self::sessions::Sessions;
pub use self::webhooks::{Deliveries, DueDelivery, Endpoints, Outbox, Webhooks};
use crate::ports::named_ports;

named_ports! { EventOutbox }
