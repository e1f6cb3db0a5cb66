//! Origins that the operator has listed, as they are at each moment, and the judgement of addresses by
//! them.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use holdfast_domain::admin::Endpoints;
use holdfast_domain::admin::webhook::{Endpoint, Origin, TryResult};

use crate::resolve::AddressError;
use crate::sender::Sender;

/// Holder of the origins that are listed now. A reload replaces them as a whole; each try reads them
/// once, so an origin that is taken off is sent to no more.
#[derive(Debug, Clone)]
pub struct AllowedOrigins(Arc<RwLock<Arc<[Origin]>>>);

impl AllowedOrigins {
    /// Starts with these.
    #[must_use]
    pub fn new(origins: &[Origin]) -> Self {
        Self(Arc::new(RwLock::new(origins.into())))
    }

    /// The origins of now. The lock is held for a copy of a pointer.
    #[must_use]
    pub fn get(&self) -> Arc<[Origin]> {
        // A panic elsewhere leaves the pointer whole: it is written in one step.
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the list; addresses that are judged from now on are judged by the new one.
    pub fn replace(&self, origins: &[Origin]) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = origins.into();
    }
}

/// Judge of receivers' addresses, for the creation of webhooks.
#[derive(Debug, Clone)]
pub struct Receivers {
    /// Sender whose resolver looks up the addresses.
    pub sender: Arc<Sender>,
    /// Origins that are listed.
    pub allowed: AllowedOrigins,
}

#[async_trait]
impl Endpoints for Receivers {
    fn allowed(&self) -> Arc<[Origin]> {
        self.allowed.get()
    }

    async fn check(&self, endpoint: &Endpoint) -> Result<(), TryResult> {
        self.sender.check(endpoint).await.map_err(|error| match error {
            AddressError::NotFound(_) => TryResult::HostNotFound,
            AddressError::NotPublic => TryResult::AddressRefused,
            AddressError::TimedOut(_) => TryResult::TimedOut,
        })
    }
}
