//! Bounds on the resources of one wallet: how many of each kind are in force at once.
//!
//! ```text
//! configuration ─▶ AccountCommand { bounds } ─▶ facts (a count that ends at the bound) ─▶ decide
//! ```
//!
//! A bound comes with the command, as the configuration of its process has it. A wallet that has more, because the
//! bound was lowered, keeps them all and gets no further one. Not in here: the number of creations per minute, which
//! a process counts by itself.

use std::fmt;

/// Bounds on the resources in force of one wallet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalletBounds {
    /// API keys that are not revoked and have not ended.
    pub api_keys: u32,
    /// People with a role for the wallet, or with an unused invitation to one.
    pub people: u32,
    /// Webhooks that are not disabled.
    pub webhooks: u32,
    /// Admin keys that are not revoked and have not ended.
    pub admin_keys: u32,
}

impl WalletBounds {
    /// Creations for one wallet per minute without a configuration.
    pub const CREATIONS_PER_MINUTE: u32 = 10_000;
    /// Bounds without a configuration.
    pub const DEFAULT: Self =
        Self { api_keys: 10_000, people: 1_000, webhooks: super::WEBHOOKS_MAX, admin_keys: 1_000 };
}

impl Default for WalletBounds {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Kind of resource whose number is bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundedKind {
    /// API keys.
    ApiKeys,
    /// People.
    People,
    /// Admin keys.
    AdminKeys,
}

impl BoundedKind {
    /// Setting of the configuration that has the bound.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::ApiKeys => "admin.api_keys_per_wallet",
            Self::People => "admin.people_per_wallet",
            Self::AdminKeys => "admin.admin_keys_per_wallet",
        }
    }

    /// Way to make room without another bound.
    #[must_use]
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::ApiKeys => "revoke API keys that are not in use",
            Self::People => "end roles and invitations that are not needed",
            Self::AdminKeys => "revoke admin keys that are not in use",
        }
    }
}

impl fmt::Display for BoundedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKeys => "API keys",
            Self::People => "people and invitations",
            Self::AdminKeys => "admin keys",
        })
    }
}
