//! The JSON of Holdfast's own API and of the command line's `--json`: one shape for both, so that a
//! script reads either. Money is integers named `…_micros`, moments are RFC 3339 in UTC, and what is
//! not known is null.
//!
//! Not here: OpenAI's shapes, except the list of models, which extends OpenAI's, and pages of usage and
//! costs, which are read by OpenAI's clients.

mod account;
mod book;
mod model;
mod operation;
mod quote;
mod usage;

use holdfast_domain::Timestamp;
use holdfast_domain::price::UnitPrices;
use holdfast_domain::usage::{MeterKind, Meters};
use serde::ser::{Serialize, Serializer};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;

pub use self::account::AccountView;
pub use self::book::{CountsView, MismatchView, VerificationView};
pub use self::model::{ModelListView, ModelView, PriceView};
pub use self::operation::{NotJson, OperationResult, OperationView};
pub use self::quote::QuoteView;
pub use self::usage::{
    BucketView, CompletionsUsageView, CostView, PageView, UsageIntervalView, UsageReportView,
};
use crate::render;

/// Renders a shape of this module.
#[must_use]
pub fn render(view: &impl Serialize) -> Vec<u8> {
    render::to_bytes(view)
}

/// A moment in RFC 3339, in UTC, always with six digits of a second: as text they sort as in time. The
/// end of time, which a saturated sum may be, is the last moment that has four digits for its year.
#[must_use]
pub fn rfc3339(moment: Timestamp) -> String {
    const FORMAT: &[BorrowedFormatItem<'_>] = format_description!(
        version = 2,
        "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
    );
    // The first and the last microsecond whose year has four digits.
    const FIRST: i64 = -62_167_219_200_000_000;
    const LAST: i64 = 253_402_300_799_999_999;
    // Clamped first: a year of RFC 3339 has four digits and no sign.
    let nanos = i128::from(moment.as_micros().clamp(FIRST, LAST)) * 1_000;
    let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos);
    let text = moment.ok().and_then(|moment| moment.format(FORMAT).ok());
    text.unwrap_or_default()
}

/// Reads a date, which is its first moment in UTC, or a moment in RFC 3339; `None` for anything else.
#[must_use]
pub fn moment(text: &str) -> Option<Timestamp> {
    let midnight = format!("{text}T00:00:00Z");
    let text = if text.len() == "2026-11-01".len() { &midnight } else { text };
    let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let micros = moment.unix_timestamp_nanos().div_euclid(1_000);
    i64::try_from(micros).ok().map(Timestamp::from_micros)
}

/// Counts by the label of their kind, all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetersView(Meters);

impl MetersView {
    /// Shows these meters.
    #[must_use]
    pub const fn of(meters: &Meters) -> Self {
        Self(*meters)
    }
}

impl Serialize for MetersView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(kind, count)| (kind.label(), count)))
    }
}

/// Rates by the label of their kind: those for a million, or those for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitPricesView {
    rates: UnitPrices,
    per_million: bool,
}

impl Serialize for UnitPricesView {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kinds =
            MeterKind::ALL.into_iter().filter(|kind| kind.per_million() == self.per_million);
        serializer.collect_map(kinds.map(|kind| (kind.label(), self.rates.rate(kind))))
    }
}
