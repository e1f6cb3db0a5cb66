//! Reports for a person or a gauge: outstanding holds, facts of the database, connections. No report shows a
//! result.

use std::collections::BTreeMap;
use std::time::Duration;

use holdfast_domain::restore::Restore;
use holdfast_domain::{Currency, Micros, Timestamp};

/// Sums over the holds of running operations.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct OutstandingHolds {
    /// Number of operations with a hold.
    pub count: u64,
    /// Held micros by currency; only currencies with a hold.
    pub amounts: BTreeMap<Currency, Micros>,
    /// Time since the oldest of them was admitted, by the database's clock.
    pub oldest_age: Duration,
}

/// Facts of the database for gauges, the same whichever process reads them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Open wallets that have less than their threshold.
    pub low_wallets: u64,
    /// Events that are not fanned out.
    pub events: u64,
    /// Deliveries that have not ended.
    pub deliveries: u64,
    /// Last complete verification of the ledger.
    pub verification: Option<VerificationFacts>,
    /// Restore whose window is open.
    pub restore: Option<Restore>,
    /// True if a running operation holds funds: else there are no outstanding holds to read.
    pub has_holds: bool,
}

/// Outcome of a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerificationFacts {
    /// Moment of its end.
    pub finished_at: Timestamp,
    /// Number of its mismatches, those that are not listed too.
    pub mismatches: u64,
}

/// Connections of one pool at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolReading {
    /// Purpose of the pool.
    pub name: &'static str,
    /// Open connections that are not in use.
    pub idle: usize,
    /// Connections in use.
    pub used: usize,
}
