//! Pause that a provider asks for, as the headers of an answer say it.
//!
//! `retry-after-ms` (milliseconds; OpenAI's and Azure's) goes before `retry-after` (seconds, or a
//! date of RFC 9110, 5.6.7), and fractions are cut off. A date is measured against the answer's own
//! `date`: both come from the same clock, so a wrong one does no harm.
//!
//! Never: a guess. A header that cannot be read asks for nothing. No limit stands here: a server
//! may ask for a day, and the routes decide if a pause is kept, and for how long at most.

use std::time::Duration;

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName};
use time::PrimitiveDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// OpenAI's and Azure's, in milliseconds: finer than the standard one.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The form of a date that servers send (RFC 9110, 5.6.7). The obsolete two are nobody's here.
const DATE_FORM: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// Pause that the headers of an answer ask for; `None` where they say nothing that can be read.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text(&RETRY_AFTER_MS).and_then(whole) {
        return Some(Duration::from_millis(millis));
    }
    let after = text(&RETRY_AFTER)?;
    if let Some(seconds) = whole(after) {
        return Some(Duration::from_secs(seconds));
    }
    let (until, now) = (date(after)?, date(text(&DATE)?)?);
    // A date that has passed asks for no pause, which is more than saying nothing.
    Some(Duration::try_from(until - now).unwrap_or(Duration::ZERO))
}

/// A number's whole part: some write fractions.
fn whole(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // A number too large for 64 bits is still a wish for a long pause.
    (digits(whole) && digits(fraction)).then(|| whole.parse().unwrap_or(u64::MAX))
}

fn date(text: &str) -> Option<PrimitiveDateTime> {
    PrimitiveDateTime::parse(text, DATE_FORM).ok()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], millis: Option<u64>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let told = retry_after(&headers.collect());
        assert_eq!(told, millis.map(Duration::from_millis));
    }

    #[test]
    fn seconds_milliseconds_and_dates_are_read() {
        check(&[], None);
        check(&[("retry-after", "3")], Some(3_000));
        check(&[("retry-after", " 1.5 ")], Some(1_000));
        check(&[("retry-after-ms", "250"), ("retry-after", "1")], Some(250));
        check(&[("retry-after-ms", "12.75")], Some(12));
        check(&[("retry-after-ms", "soon"), ("retry-after", "1")], Some(1_000));
        check(&[("retry-after", "86400")], Some(86_400_000));
        let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        check(&[date, ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")], Some(30_000));
        check(&[date, ("retry-after", "Sun, 06 Nov 1994 08:49:07 GMT")], Some(0));
    }

    #[test]
    fn what_cannot_be_read_asks_for_nothing() {
        for text in ["", "-1", "+1", "1,5", "1.", "soon", "Sun, 06 Nov 1994 08:50:07 GMT", "1e9"] {
            check(&[("retry-after", text)], None);
        }
    }
}
