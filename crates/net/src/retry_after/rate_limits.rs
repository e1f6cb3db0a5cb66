//! Time until an exhausted rate limit is reset, by an answer's headers.
//!
//! A limit is a pair of headers: its remaining amount and its reset. Only a limit with a remaining
//! amount of zero is a pause; of several, the latest reset counts.
//!
//! | headers | `reset` | documented by |
//! |---|---|---|
//! | `x-ratelimit-*-requests`, `-tokens`, `-project-tokens` | `1s`, `6m0s`, `20ms`, `7.66s` | OpenAI's and Groq's guides to rate limits |
//! | `x-ratelimit-*-requests-day`, `-tokens-minute` and their like | seconds, with a fraction | Cerebras' guide to rate limits |
//! | `x-ratelimit-*` | seconds | Together's guide to rate limits |
//! | `x-ratelimit-*` | seconds since the Unix epoch | Perplexity (crmne/ruby_llm's recordings), SambaNova |
//! | `x-ratelimit-*` | milliseconds since the Unix epoch | OpenRouter |
//! | `ratelimit-*` | seconds | IETF's draft of RateLimit headers |
//! | `anthropic-ratelimit-requests-*`, `-tokens-*`, `-input-tokens-*`, `-output-tokens-*` | a date of RFC 3339 | Anthropic's guide to rate limits |
//!
//! The headers do not name the server, so the size of a bare number decides its unit: below 10⁹
//! seconds to wait (as seconds since the epoch that would be before 2001), below 10¹¹ seconds since
//! the epoch, else milliseconds.

use std::time::Duration;

use http::HeaderMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

const EPOCH_SECONDS_MIN: u64 = 1_000_000_000;
const EPOCH_MILLIS_MIN: u64 = 100_000_000_000;

/// Units of a duration, longest names first, in microseconds.
const UNITS: [(&str, u64); 8] = [
    ("ms", 1_000),
    ("us", 1),
    ("\u{b5}s", 1),
    ("ns", 0),
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
];

/// Time until the last exhausted limit is reset; `None` if there is none, or its reset is unreadable
/// or past. `now` is a time since the Unix epoch.
pub(super) fn reset(headers: &HeaderMap, now: Duration) -> Option<Duration> {
    let times = headers.iter().filter_map(|(name, value)| {
        let remaining = headers.get(remaining_of(name.as_str())?)?.to_str().ok()?;
        let value = value.to_str().ok().filter(|_value| is_zero(remaining))?;
        time_until(value, now)
    });
    times.max()
}

/// Name of the header with the remaining amount, by the name of the header with the reset.
fn remaining_of(name: &str) -> Option<String> {
    let is_limit =
        ["x-ratelimit-", "ratelimit-", "anthropic-"].iter().any(|start| name.starts_with(start));
    let (before, after) = name.split_once("reset").filter(|_halves| is_limit)?;
    Some(format!("{before}remaining{after}"))
}

fn is_zero(text: &str) -> bool {
    decimal(text.trim()) == Some((0, 0))
}

/// Time from now to the reset in a header or a member, in any of the units above.
pub fn time_until(text: &str, now: Duration) -> Option<Duration> {
    let text = text.trim();
    let time = if let Some((whole, micros)) = decimal(text) {
        let time = Duration::from_secs(whole).checked_add(Duration::from_micros(micros))?;
        match whole {
            0..EPOCH_SECONDS_MIN => time,
            EPOCH_SECONDS_MIN..EPOCH_MILLIS_MIN => time.checked_sub(now)?,
            EPOCH_MILLIS_MIN.. => Duration::from_millis(whole).checked_sub(now)?,
        }
    } else if let Some(time) = duration(text) {
        time
    } else {
        let until = OffsetDateTime::parse(text, &Rfc3339).ok()?.unix_timestamp();
        Duration::from_secs(u64::try_from(until).ok()?).checked_sub(now)?
    };
    Some(time).filter(|time| !time.is_zero())
}

/// A duration with units, as Go and protobuf write it: `6m0s`, `1h2m3.5s`, `20ms`.
fn duration(text: &str) -> Option<Duration> {
    let (mut rest, mut sum) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let end = rest.find(|read: char| !read.is_ascii_digit() && read != '.')?;
        let (number, behind) = rest.split_at_checked(end)?;
        let (whole, millionths) = decimal(number)?;
        let unit =
            UNITS.iter().find_map(|(name, micros)| Some((behind.strip_prefix(name)?, micros)));
        let (behind, micros) = unit?;
        let part = u128::from(whole) * u128::from(*micros)
            + u128::from(millionths) * u128::from(*micros) / 1_000_000;
        // More than 64 bits are still a long pause.
        let part = Duration::from_micros(u64::try_from(part).unwrap_or(u64::MAX));
        (rest, sum) = (behind, sum.saturating_add(part));
    }
    Some(sum).filter(|_sum| !text.is_empty())
}

/// Whole part of a number without a sign, and its fraction in millionths.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let millionths: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some((whole.parse().unwrap_or(u64::MAX), millionths.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    /// 2026-11-28, 00:00 UTC.
    const NOW: Duration = Duration::from_secs(1_795_824_000);

    #[track_caller]
    fn check(headers: &[(&'static str, &'static str)], millis: Option<u64>) {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let time = reset(&headers.collect(), NOW);
        assert_eq!(time, millis.map(Duration::from_millis));
    }

    #[test]
    fn the_reset_of_an_exhausted_limit_is_read_in_its_servers_unit() {
        for (reset, millis) in [
            ("1s", 1_000),
            ("6m0s", 360_000),
            ("20ms", 20),
            ("7.66s", 7_660),
            ("2m59.56s", 179_560),
            ("1h2m3s", 3_723_000),
            ("1d2h", 93_600_000),
            ("11.38", 11_380),
            ("60", 60_000),
            (" 5 ", 5_000),
            ("1795824030", 30_000),
            ("1795824030000", 30_000),
            ("2026-11-28T00:00:30Z", 30_000),
            ("2026-11-28T01:00:30+01:00", 30_000),
        ] {
            for (remaining, name) in [
                ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
                ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
                ("x-ratelimit-remaining-tokens-minute", "x-ratelimit-reset-tokens-minute"),
                ("x-ratelimit-remaining", "x-ratelimit-reset"),
                ("ratelimit-remaining", "ratelimit-reset"),
                ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
            ] {
                check(&[(remaining, "0"), (name, reset)], Some(millis));
            }
        }
    }

    #[test]
    fn a_limit_with_a_remaining_amount_is_no_pause() {
        let (reset, remaining) = ("x-ratelimit-reset-tokens", "x-ratelimit-remaining-tokens");
        check(&[(reset, "38s")], None);
        for some in ["1", "0.5", "-1", "", "none", "149984"] {
            check(&[(reset, "38s"), (remaining, some)], None);
        }
        check(&[(reset, "38s"), (remaining, "0")], Some(38_000));
        check(&[(reset, "38s"), (remaining, "0.0")], Some(38_000));
        // Another limit's.
        check(&[(reset, "38s"), ("x-ratelimit-remaining-requests", "0")], None);
        check(&[("x-reset", "38s"), ("x-remaining", "0")], None);
    }

    #[test]
    fn the_latest_reset_of_several_exhausted_limits_counts() {
        let requests = ("x-ratelimit-remaining-requests", "0");
        let tokens = ("x-ratelimit-remaining-tokens", "0");
        let resets = [("x-ratelimit-reset-requests", "1s"), ("x-ratelimit-reset-tokens", "6m30s")];
        check(&[requests, tokens, resets[0], resets[1]], Some(390_000));
        check(&[requests, resets[0], resets[1]], Some(1_000));
    }

    #[test]
    fn an_unreadable_or_past_reset_is_no_pause() {
        for text in [
            "",
            "0",
            "0s",
            "-5",
            "-5s",
            "+5",
            "soon",
            "5 s",
            "1e3",
            "s",
            "5x",
            "5s5",
            "1.5.5s",
            "..s",
            "1795823999",
            "1795823999000",
            "2026-11-27T23:59:59Z",
            "1969-12-31T23:59:59Z",
        ] {
            check(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", text)], None);
        }
    }

    #[test]
    fn an_absurd_reset_is_a_long_pause() {
        for text in [
            "999999999",
            "99999999999999999999999999",
            "99999999999999999999h",
            "9999-12-31T23:59:59Z",
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
            headers.insert("x-ratelimit-reset", HeaderValue::from_static(text));
            assert!(reset(&headers, NOW).unwrap() > Duration::from_secs(86_400), "{text}");
        }
    }
}
