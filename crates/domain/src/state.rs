//! States: data that a provider's model sends with a call of a tool and requires back with the call's result,
//! like signatures, or thoughts that only it can read. No part of an answer: callers never see them.
//!
//! A state goes back only to the provider and the model of its [`Origin`]: another one could not read it, and
//! must not be sent it. If one is gone, the provider must do without.
//!
//! # Example
//!
//! ```
//! use holdfast_domain::state::{Origin, ProviderState};
//!
//! let state = ProviderState::new("EqQBCgwI").unwrap();
//! assert_eq!(state.as_str(), "EqQBCgwI");
//! assert!(ProviderState::new("").is_none());
//! assert_ne!(Origin::of("gemini", "google", "pro"), Origin::of("gemini", "google", "flash"));
//! ```

use std::collections::BTreeMap;

use crate::private::Private;
use crate::secret::derived;

/// State that came with a call. Opaque to all but the kind of provider whose model sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderState(Private<Box<str>>);

impl ProviderState {
    /// Most bytes of a state, 1 MiB. A longer one is not kept.
    pub const LEN_MAX: usize = 1 << 20;

    /// State of this text; `None` if that is empty or too long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (1..=Self::LEN_MAX).contains(&text.len()).then(|| Self(Private(text.into())))
    }

    /// The text, as it came.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// States of earlier calls, by the ids that callers know the calls by.
pub type ProviderStates = BTreeMap<String, ProviderState>;

/// Origin of a state, and the only route to which it goes back: a hash, which reveals no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin([u8; 32]);

impl Origin {
    /// Origin of states of this shape, from the provider and the model that a route names.
    #[must_use]
    pub fn of(shape: &str, provider: &str, model: &str) -> Self {
        // The shape too: one model behind another kind of provider wants another form of state
        // back.
        let parts = [shape.as_bytes(), provider.as_bytes(), model.as_bytes()];
        Self(derived("holdfast 2026-11 state origin v1", &parts))
    }

    /// The origin with exactly these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes that are stored.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

/// States that came with the calls of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStates {
    /// Origin of all of them.
    pub origin: Origin,
    /// States by the call's choice and its place among that choice's calls.
    pub states: BTreeMap<[u32; 2], ProviderState>,
}
