//! Values of forms that have a bound: amounts, limits, moments. Each is read from its field, or refused beside
//! it, and written back into it as it was read.
//!
//! Never: an amount through a float, or a limit that is none because it was misspelled.

use std::time::Duration;

use holdfast_accounts::fields;
use holdfast_domain::limits::{SpendLimit, SpendWindow};
use holdfast_domain::{Currency, Micros, Timestamp};
use holdfast_wire::api;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::{Choice, FieldKind, SentFields, money};

/// A limit that is counted: at least one, or no request would ever run.
pub(crate) fn count(sent: &SentFields, name: &str) -> Result<Option<u64>, Failure> {
    let bad = || {
        let message =
            format!("Write a whole number from 1 to {}, or leave it empty.", fields::LIMIT.end());
        Failure::field(name, message)
    };
    let Some(text) = sent.get(name) else { return Ok(None) };
    let count = text.parse().ok().filter(|count| fields::LIMIT.contains(count));
    count.map(Some).ok_or_else(bad)
}

/// An amount of zero or more.
pub(crate) fn threshold(sent: &SentFields, name: &str) -> Result<Option<Micros>, Failure> {
    let amount: Option<Micros> = sent.read(name)?;
    let bad = || Failure::field(name, "Write an amount of 0 or more, or leave it empty.");
    let is_sound = amount.is_none_or(|amount| fields::THRESHOLD.contains(&amount.get()));
    if is_sound { Ok(amount) } else { Err(bad()) }
}

/// A bound on spend: an amount and its window. Without an amount there is no bound.
pub(crate) fn spend(
    sent: &SentFields,
    [name, window]: [&str; 2],
) -> Result<Option<SpendLimit>, Failure> {
    let Some(micros) = sent.read::<Micros>(name)? else { return Ok(None) };
    if !fields::AMOUNT.contains(&micros.get()) {
        return Err(Failure::field(name, "Enter an amount above 0, or leave the field empty."));
    }
    let chosen = sent.get(window).and_then(fields::window);
    let window = chosen.ok_or_else(|| Failure::field(window, FieldRefusal::NotAChoice))?;
    Ok(Some(SpendLimit { micros, window }))
}

/// Field of the span for which earlier secrets stay.
const GRACE: &str = "grace_seconds";

/// Spans to choose from, in seconds.
pub(crate) fn graces(spans: &[(u64, &str)]) -> FieldKind {
    let choice = |(span, label): &(u64, &str)| Choice::new(span.to_string(), *label);
    FieldKind::Select(spans.iter().map(choice).collect())
}

/// Reads a span, one of these.
pub(crate) fn grace(sent: &SentFields, spans: &[(u64, &str)]) -> Result<Duration, Failure> {
    // Any number can be sent: one of years would keep the other secrets in force.
    let known = |text: &str| spans.iter().find(|(span, _)| span.to_string() == text);
    sent.require_choice(GRACE, known).map(|(span, _)| Duration::from_secs(*span))
}

/// The windows of a bound on spend.
pub(crate) fn windows() -> FieldKind {
    let choice = |window: SpendWindow| Choice::new(window.label(), words(window));
    FieldKind::Select(SpendWindow::ALL.into_iter().rev().map(choice).collect())
}

const fn words(window: SpendWindow) -> &'static str {
    match window {
        SpendWindow::Total => "in all",
        SpendWindow::Day => "a day (UTC)",
        SpendWindow::Month => "a month (UTC)",
    }
}

/// A bound on spend as people read it.
pub(crate) fn spend_text(spend: SpendLimit, currency: Currency) -> String {
    format!("{} {}", money(spend.micros, currency), words(spend.window))
}

/// A moment in UTC, as a field for moments sends it.
pub(crate) fn moment(sent: &SentFields, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = sent.get(name) else { return Ok(None) };
    // Browsers leave the seconds out if they are zero.
    let seconds = if text.len() == "2027-01-31T09:30".len() { ":00" } else { "" };
    let moment = api::moment(&format!("{text}{seconds}Z"));
    let bad = || Failure::field(name, "Write a moment in UTC, like 2027-01-31T09:30.");
    moment.map(Some).ok_or_else(bad)
}

/// A moment as a field for moments holds it, without its seconds.
pub(crate) fn moment_text(moment: Option<Timestamp>) -> String {
    let exact = moment.map(api::rfc3339).unwrap_or_default();
    exact.get(..16).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_stand_is_said_beside_its_field() {
        let fields = SentFields::parse(b"a=0&b=-1&c=1.0000001&d=tomorrow&e=7&w=year&z=0");
        for wrong in [
            count(&fields, "a").map(drop),
            count(&fields, "c").map(drop),
            threshold(&fields, "b").map(drop),
            spend(&fields, ["z", "w"]).map(drop),
            spend(&fields, ["c", "w"]).map(drop),
            moment(&fields, "d").map(drop),
        ] {
            assert!(wrong.unwrap_err().field.is_some());
        }
        assert_eq!(spend(&fields, ["e", "w"]).unwrap_err().field.as_deref(), Some("w"));
        assert_eq!(count(&fields, "e").unwrap(), Some(7));
        assert_eq!(threshold(&fields, "z").unwrap(), Some(Micros::ZERO));
        assert_eq!(spend(&fields, ["none", "w"]).unwrap(), None);
    }

    #[test]
    fn a_moment_reads_what_it_wrote() {
        let fields = SentFields::parse(b"a=2027-01-31T09:30&b=2027-01-31T09:30:00");
        let read = moment(&fields, "a").unwrap();
        assert_eq!(read, moment(&fields, "b").unwrap());
        assert_eq!(moment_text(read), "2027-01-31T09:30");
        assert_eq!(moment_text(None), "");
    }
}
