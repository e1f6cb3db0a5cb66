//! Offer of a process: the models that it serves, the routes that answer for them, and how these fare
//! as this process has seen it. Other processes have breakers of their own, and may see it otherwise.
//!
//! None of it is in a book. Never in here: a key, an address or an account of a provider.
//!
//! ```
//! use holdfast_domain::admin::offer::{ModelOffer, Offers, RouteHealth, RouteOffer};
//! use holdfast_domain::model::Contract;
//! use holdfast_testkit::sample;
//!
//! #[derive(Debug)]
//! struct OneModel(RouteOffer);
//!
//! impl Offers for OneModel {
//!     fn models(&self) -> Vec<ModelOffer> {
//!         let contract = Contract::new(sample::model(), 1, 128_000, 4_096);
//!         vec![ModelOffer { contract, routes: vec![self.0.clone()] }]
//!     }
//! }
//!
//! let (name, health) = ("sim/sample".to_owned(), RouteHealth::Well);
//! let (concurrency, cost, cools_for) = (Some(8), None, None);
//! let route = RouteOffer { name, priority: 0, weight: 1, concurrency, in_flight: 0, health, cost, cools_for };
//! assert_eq!(OneModel(route).models()[0].routes[0].health.label(), "well");
//! ```

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::model::Contract;
use crate::price::ProviderCost;

/// Model that a process serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelOffer {
    /// Contract of the model.
    pub contract: Contract,
    /// Routes that may answer, in the order of the configuration.
    pub routes: Vec<RouteOffer>,
}

/// Route of a model, with its health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteOffer {
    /// Name in logs, attempts and metrics: the configured provider and its model.
    pub name: String,
    /// Priority; lower is tried first.
    pub priority: u32,
    /// Share of the requests among routes of its priority.
    pub weight: u32,
    /// Limit of concurrent calls, over all models that route there.
    pub concurrency: Option<u32>,
    /// Calls that are under way.
    pub in_flight: u32,
    /// State of its circuit breaker.
    pub health: RouteHealth,
    /// Cost of a run there to the operator, if that is configured.
    pub cost: Option<Arc<ProviderCost>>,
    /// Rest of its cool-down, if it has one.
    pub cools_for: Option<Duration>,
}

/// State of a route's circuit breaker, as the next request meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteHealth {
    /// Takes requests.
    Well,
    /// After its cool-down: the next request is a probe.
    Probe,
    /// Cools down after failures, and is taken if no other route is left.
    LastResort,
    /// Paused, as its provider has requested.
    LeftAlone,
}

impl RouteHealth {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Well, Self::Probe, Self::LastResort, Self::LeftAlone];

    /// The name in answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Probe => "probe",
            Self::LastResort => "last_resort",
            Self::LeftAlone => "left_alone",
        }
    }
}

/// Lists the models that a process serves now.
pub trait Offers: Send + Sync + fmt::Debug {
    /// Every model, sorted by its public id.
    fn models(&self) -> Vec<ModelOffer>;
}
