//! Pause that a provider requests in the head or body of an error.
//!
//! | source | unit | servers |
//! |---|---|---|
//! | `retry-after-ms` | milliseconds | OpenAI, Azure |
//! | `retry-after` | seconds, or a date of RFC 9110, 5.6.7 | all |
//! | `x-ratelimit-reset-*` and its like, if its `remaining` is 0 | [`rate_limits`] | OpenAI, Groq, Anthropic and others |
//!
//! A pause in the body is its provider's: `holdfast_providers` reads those of Google and OpenRouter.
//!
//! The first readable source counts; the first two drop fractions. A date is compared with the
//! answer's own `date`: both come from the same clock, so a wrong one does no harm. Without that
//! header it is compared with the gateway's clock, and a past date is ignored.
//!
//! Never: a guess, or a time in the text of a message. An unreadable value is no pause. There is no
//! maximum here: a server may request a day, and the routes decide whether a pause is kept, and its
//! maximum.

mod rate_limits;

pub use self::rate_limits::time_until;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, StatusCode};
use time::PrimitiveDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// OpenAI's and Azure's, in milliseconds: finer than the standard one.
const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

/// The form of a date that servers send (RFC 9110, 5.6.7). The obsolete two are not in use.
const DATE_FORM: &[BorrowedFormatItem<'_>] = format_description!(
    "[weekday repr:short], [day] [month repr:short] [year] [hour]:[minute]:[second] GMT"
);

/// Returns `true` for a status that is about the server and not about the request: a pause with any
/// other status is ignored.
pub fn requests_pause(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// Pause in the head of an answer of such a status; `None` if there is no readable one.
pub(crate) fn pause(headers: &HeaderMap) -> Option<Duration> {
    retry_after(headers).or_else(|| rate_limits::reset(headers, now_of(headers)))
}

/// Pause of `retry-after-ms` or `retry-after`.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(millis) = text(&RETRY_AFTER_MS).and_then(whole) {
        return Some(Duration::from_millis(millis));
    }
    let after = text(&RETRY_AFTER)?;
    if let Some(seconds) = whole(after) {
        return Some(Duration::from_secs(seconds));
    }
    let until = date(after)?;
    match text(&DATE).and_then(date) {
        // A past date is a pause of zero, which is not the same as no pause.
        Some(now) => Some(until.saturating_sub(now)),
        None => until.checked_sub(clock()).filter(|rest| !rest.is_zero()),
    }
}

/// Time of an answer by its server's clock, else by ours; since the Unix epoch.
fn now_of(headers: &HeaderMap) -> Duration {
    let date = headers.get(DATE).and_then(|value| date(value.to_str().ok()?.trim()));
    date.unwrap_or_else(clock)
}

/// Time by our clock, since the Unix epoch.
#[must_use]
pub fn clock() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// A number's whole part: some write fractions.
fn whole(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    // A number too large for 64 bits is still a wish for a long pause.
    (digits(whole) && digits(fraction)).then(|| whole.parse().unwrap_or(u64::MAX))
}

fn date(text: &str) -> Option<Duration> {
    let date = PrimitiveDateTime::parse(text, DATE_FORM).ok()?.assume_utc();
    u64::try_from(date.unix_timestamp()).ok().map(Duration::from_secs)
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

    #[test]
    fn a_date_without_that_of_the_answer_is_measured_by_our_clock() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Thu, 31 Dec 9998 23:59:59 GMT"));
        assert!(retry_after(&headers).unwrap() > Duration::from_secs(86_400));
    }

    #[test]
    fn retry_after_goes_before_the_reset_of_a_limit() {
        let limit = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")];
        let pause_of = |more: &[(&'static str, &'static str)]| {
            let headers = limit.iter().chain(more).map(|(name, value)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            });
            pause(&headers.collect()).unwrap().as_millis()
        };
        assert_eq!(pause_of(&[]), 360_000);
        assert_eq!(pause_of(&[("retry-after", "2")]), 2_000);
        assert_eq!(pause_of(&[("retry-after-ms", "40")]), 40);
        assert_eq!(pause_of(&[("retry-after", "soon")]), 360_000);
    }

    #[test]
    fn only_429_and_503_have_a_pause() {
        let asking: Vec<_> = (100..1_000)
            .filter(|status| requests_pause(StatusCode::from_u16(*status).unwrap()))
            .collect();
        assert_eq!(asking, [429, 503]);
    }
}
