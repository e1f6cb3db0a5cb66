//! Values of bodies, parameters and answers: moments, ids, texts, limits, labels.
//!
//! | in JSON | in the domain |
//! |---|---|
//! | `"2027-01-31T09:30:00Z"` | [`Timestamp`], read in any offset, written in UTC with microseconds |
//! | a UUID | an id |
//! | `spend_micros`, `spend_window` | [`SpendLimit`]: both or neither |
//! | `"day"` | a label: one of a closed set, which the description lists |
//!
//! What cannot stand is an `invalid_value` that names its member.

pub(crate) mod schema;

use std::collections::BTreeSet;
use std::str::FromStr;

use holdfast_accounts::fields::{AMOUNT, LIMIT};
use holdfast_accounts::sentence;
use holdfast_domain::admin::job::{JobKind, JobState};
use holdfast_domain::admin::listing::{AdminKeyState, ApiKeyState, Scope};
use holdfast_domain::admin::offer::RouteHealth;
use holdfast_domain::admin::{PersonState, Role, WalletState};
use holdfast_domain::credential::{BalanceVisibility, UsageScope};
use holdfast_domain::limits::{SpendLimit, SpendWindow};
use holdfast_domain::model::{ModelPattern, PublicModelId};
use holdfast_domain::operation::OperationStatus;
use holdfast_domain::{Micros, Timestamp};
use holdfast_wire::api::rfc3339;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{KnownFormat, RefOr};
use utoipa::{PartialSchema, ToSchema};

use crate::error::Problem;

/// A moment, as RFC 3339 writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) Timestamp);

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let moment = OffsetDateTime::parse(&text, &Rfc3339);
        // Rounded down, before 1970 too: a moment never becomes a later one.
        let micros = moment.ok().map(|moment| moment.unix_timestamp_nanos().div_euclid(1_000));
        let micros = micros.and_then(|micros| i64::try_from(micros).ok());
        micros.map(Timestamp::from_micros).map(Self).ok_or_else(|| {
            de::Error::custom("expected a moment of RFC 3339, like 2027-01-31T09:30:00Z")
        })
    }
}

impl PartialSchema for Moment {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for Moment {}

/// Reads a member that is there, `null` among its values: with `default`, what is absent stays
/// apart from what is null.
pub(crate) fn present<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Reads a text that its type judges.
pub(crate) fn parse<T>(param: &'static str, text: &str) -> Result<T, Problem>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| Problem::invalid(param, sentence(&error.to_string())))
}

/// Reads a filter value, which may have a spelling that is no longer accepted for new values.
pub(crate) fn sought<T, E: std::fmt::Display>(
    param: &'static str,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, Problem> {
    let read = text.map(read).transpose();
    read.map_err(|error| Problem::invalid(param, sentence(&error.to_string())))
}

/// Reads a text that may be missing.
pub(crate) fn parse_some<T>(param: &'static str, text: Option<&str>) -> Result<Option<T>, Problem>
where
    T: FromStr,
    T::Err: std::fmt::Display,
{
    text.map(|text| parse(param, text)).transpose()
}

/// Judges a count limit: at least one, because zero would let no operation run.
pub(crate) fn count(param: &'static str, count: Option<u64>) -> Result<Option<u64>, Problem> {
    if count.is_none_or(|count| LIMIT.contains(&count)) {
        return Ok(count);
    }
    Err(Problem::invalid(
        param,
        format!(
            "A limit is a whole number from 1 to {}; null means that there is none.",
            LIMIT.end()
        ),
    ))
}

/// Judges an amount, which must be positive.
pub(crate) fn amount(param: &'static str, micros: i64) -> Result<Micros, Problem> {
    if AMOUNT.contains(&micros) {
        return Ok(Micros::new(micros));
    }
    Err(Problem::invalid(
        param,
        format!("This amount is a whole number from 1 to {}.", AMOUNT.end()),
    ))
}

/// Joins the two members of a bound on spend.
pub(crate) fn spend(
    [micros_param, window_param]: [&'static str; 2],
    micros: Option<i64>,
    window: Option<WindowLabel>,
) -> Result<Option<SpendLimit>, Problem> {
    match (micros, window) {
        (None, None) => Ok(None),
        (Some(micros), Some(window)) => {
            let micros = amount(micros_param, micros)?;
            Ok(Some(SpendLimit { micros, window: window.into() }))
        }
        (Some(_), None) | (None, Some(_)) => {
            let message = format!("Send {micros_param} and {window_param} together, or neither.");
            let param = if micros.is_none() { micros_param } else { window_param };
            Err(Problem::invalid(param, message))
        }
    }
}

/// Joins the two members of a bound on spend in an edit: both absent, both null, or both values.
#[expect(clippy::option_option, reason = "an edit tells absent from null")]
pub(crate) fn edited_spend(
    params: [&'static str; 2],
    micros: Option<Option<i64>>,
    window: Option<Option<WindowLabel>>,
) -> Result<Option<Option<SpendLimit>>, Problem> {
    match (micros, window) {
        (None, None) => Ok(None),
        (Some(micros), Some(window)) => spend(params, micros, window).map(Some),
        // One of the two is null or absent: placeholders give `spend` the same gap, and with it its
        // message.
        (micros, window) => {
            spend(params, micros.map(|_| 0), window.map(|_| WindowLabel::Total)).map(Some)
        }
    }
}

/// Reads the public id of a model that lists and reports are filtered by.
pub(crate) fn model(id: Option<&str>) -> Result<Option<PublicModelId>, Problem> {
    let read = id.map(PublicModelId::try_from).transpose();
    read.map_err(|error| Problem::invalid("model", sentence(&error.to_string())))
}

/// Reads an allow-list. An empty one is refused, because it would allow no model.
pub(crate) fn models(ids: &[String]) -> Result<BTreeSet<ModelPattern>, Problem> {
    if ids.is_empty() {
        let message = "An empty list would allow no model: write ids, or null for all of them.";
        return Err(Problem::invalid("models", message));
    }
    let read = |id: &String| {
        let parsed = ModelPattern::try_from(id.as_str());
        parsed.map_err(|error| Problem::invalid("models", sentence(&error.to_string())))
    };
    ids.iter().map(read).collect()
}

/// Writes the names of a closed set of the domain, as they are in JSON.
macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident for $of:ident { $($variant:ident),+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = "snake_case")]
        pub(crate) enum $name { $($variant),+ }

        impl From<$name> for $of {
            fn from(label: $name) -> Self {
                match label { $($name::$variant => Self::$variant),+ }
            }
        }

        impl From<$of> for $name {
            fn from(value: $of) -> Self {
                match value { $($of::$variant => Self::$variant),+ }
            }
        }
    )+};
}

labels! {
    /// Window over which spend is summed, in UTC.
    WindowLabel for SpendWindow { Total, Day, Month }
    /// Visibility of the wallet's balance to the bearer of an API key.
    BalanceLabel for BalanceVisibility { Shown, Hidden }
    /// Scope of the usage reports that the bearer of an API key may read.
    UsageLabel for UsageScope { Key, Wallet }
    /// State of a wallet.
    WalletStateLabel for WalletState { Active, Suspended, Closed }
    /// State of an API key.
    ApiKeyStateLabel for ApiKeyState { InForce, Suspended, Ended, Revoked }
    /// Operations that a list is of.
    ScopeLabel for Scope { All, Running, Stale }
    /// State of a route's circuit breaker, as the next request meets it.
    RouteHealthLabel for RouteHealth { Well, Probe, LastResort, LeftAlone }
    /// State of an admin key.
    AdminKeyStateLabel for AdminKeyState { InForce, Ended }
    /// State of a person.
    PersonStateLabel for PersonState { Pending, Active, Ended }
    /// Work that a job does.
    JobKindLabel for JobKind { Verification }
    /// State of a job.
    JobStateLabel for JobState { Queued, Running, Done, Failed, Cancelled }
    /// Status of an operation.
    StatusLabel for OperationStatus { Leased, Recorded, Open, Completed, Refused, Abandoned }
    /// Role of an admin key or a person.
    RoleLabel for Role {
        Owner, Operator, Finance, Support, Auditor, HolderAdmin, HolderDeveloper, HolderViewer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(value: impl Serialize) -> String {
        serde_json::to_value(value).unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn labels_are_those_of_the_domain() {
        for role in Role::ALL {
            assert_eq!(label(RoleLabel::from(role)), role.label());
        }
        for kind in JobKind::ALL {
            assert_eq!(label(JobKindLabel::from(kind)), kind.label());
        }
        for state in JobState::ALL {
            assert_eq!(label(JobStateLabel::from(state)), state.label());
        }
        for health in RouteHealth::ALL {
            assert_eq!(label(RouteHealthLabel::from(health)), health.label());
        }
        for window in SpendWindow::ALL {
            assert_eq!(label(WindowLabel::from(window)), window.label());
        }
        for balance in BalanceVisibility::ALL {
            assert_eq!(label(BalanceLabel::from(balance)), balance.label());
        }
        for status in OperationStatus::ALL {
            assert_eq!(label(StatusLabel::from(status)), status.label());
        }
        for usage in UsageScope::ALL {
            assert_eq!(label(UsageLabel::from(usage)), usage.label());
        }
    }

    #[test]
    fn moments_are_read_in_any_offset_and_written_in_utc() {
        let moment: Moment = serde_json::from_str(r#""2027-01-31T09:30:00.5+01:00""#).unwrap();
        assert_eq!(label(moment), "2027-01-31T08:30:00.500000Z");
        for text in [r#""2027-01-31""#, r#""tomorrow""#, "7", r#""2027-01-31T09:30:00""#] {
            assert!(serde_json::from_str::<Moment>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_bound_on_spend_has_both_its_members() {
        let params = ["spend_micros", "spend_window"];
        let bound = SpendLimit { micros: Micros::new(5), window: SpendWindow::Day };
        assert_eq!(spend(params, Some(5), Some(WindowLabel::Day)).unwrap(), Some(bound));
        assert!(spend(params, Some(5), None).is_err());
        assert!(spend(params, Some(0), Some(WindowLabel::Day)).is_err());
        assert_eq!(edited_spend(params, None, None).unwrap(), None);
        assert_eq!(edited_spend(params, Some(None), Some(None)).unwrap(), Some(None));
        assert!(edited_spend(params, Some(None), None).is_err());
        assert!(edited_spend(params, None, Some(Some(WindowLabel::Day))).is_err());
    }
}
