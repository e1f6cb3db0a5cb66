//! What a provider's model says with a call of a tool and wants back with the call's result: signatures,
//! thoughts that only it can read. No part of an answer: callers never see it.

use std::collections::BTreeMap;
use std::fmt;

use crate::answer::{Answer, Choice};
use crate::secret::derived;

/// What came with one call. Opaque to all but the kind of provider whose model said it.
#[derive(Clone, PartialEq, Eq)]
pub struct ProviderState(Box<str>);

impl ProviderState {
    /// The most bytes of one. What is longer is not kept.
    pub const LEN_MAX: usize = 1 << 20;

    /// Takes what came; `None` where it is nothing, or too long.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        (1..=Self::LEN_MAX).contains(&text.len()).then(|| Self(text.into()))
    }

    /// What came.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ProviderState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProviderState({} bytes)", self.0.len())
    }
}

/// What came with earlier calls, by the ids that callers know them by.
pub type ProviderStates = BTreeMap<String, ProviderState>;

/// Where a state comes from, and the only place where it goes back to. It names nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin([u8; 32]);

impl Origin {
    /// States of this shape, from the provider and the model that a route names.
    #[must_use]
    pub fn of(shape: &str, provider: &str, model: &str) -> Self {
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

/// What came with the calls of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStates {
    /// Where it all comes from.
    pub origin: Origin,
    /// Each by its choice and its place among that choice's calls.
    pub states: BTreeMap<[u32; 2], ProviderState>,
}

impl CallStates {
    /// What came with the calls of an answer from there; `None` where nothing did.
    #[must_use]
    pub fn of(answer: &Answer, origin: Origin) -> Option<Self> {
        let calls = answer.choices().flat_map(|(choice, Choice { tool_calls, .. })| {
            tool_calls.iter().map(move |(call, said)| ([choice, *call], said))
        });
        let states: BTreeMap<_, _> =
            calls.filter_map(|(at, call)| Some((at, call.state.clone()?))).collect();
        (!states.is_empty()).then_some(Self { origin, states })
    }
}
