//! Bounds of the members that people set on wallets and API keys, the same in every front end.
//!
//! | bound | members |
//! |---|---|
//! | [`LIMIT`] | each counted limit ([`CountLimit`](holdfast_domain::limits::CountLimit)) |
//! | [`AMOUNT`] | `spend_micros`, `key_spend_micros` |
//! | [`THRESHOLD`] | `low_balance_micros` |
//! | [`SPAN_SECONDS`] | `ends_in_seconds` |
//! | [`GRACE_SECONDS`] | `grace_seconds` |
//!
//! Labels and hints of members are in [`members`].
//!
//! Each front end words its own refusal: a member is micros and may be null in JSON, and units of a currency and empty
//! in a form.

use std::ops::RangeInclusive;

use holdfast_domain::limits::SpendWindow;

pub mod members;

/// A limit that is counted: at least one, or no request would ever run. The numbers of JSON are exact up to a
/// little more.
pub const LIMIT: RangeInclusive<u64> = 1..=1_000_000_000_000_000;
/// A positive amount, in micros.
pub const AMOUNT: RangeInclusive<i64> = 1..=1_000_000_000_000_000;
/// An amount that may be zero, in micros.
pub const THRESHOLD: RangeInclusive<i64> = 0..=1_000_000_000_000_000;
/// A span until an end: up to a hundred years.
pub const SPAN_SECONDS: RangeInclusive<u64> = 1..=3_155_760_000;
/// A span for which earlier credentials stay: up to a hundred years.
pub const GRACE_SECONDS: RangeInclusive<u64> = 0..=3_155_760_000;

/// The window of a bound on spend that has this label.
#[must_use]
pub fn window(label: &str) -> Option<SpendWindow> {
    SpendWindow::ALL.into_iter().find(|window| window.label() == label)
}
