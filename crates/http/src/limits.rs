//! Limits of an API key as its caller sees them: the error of the limit that is reached, with a
//! way out, and the `x-ratelimit-…` headers, named and spelled as OpenAI's so that SDKs read them.

use std::time::Duration;

use holdfast_domain::Micros;
use holdfast_domain::limits::{Counter, ReachedLimit};
use holdfast_engine::{RateLimitStatus, RateLimitWindow};
use holdfast_wire::error::Code;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::problem::{Problem, RetryAdvice};

/// Names of the headers for the limit, the remainder and the time to the reset.
type HeaderNames = [HeaderName; 3];

const REQUESTS: HeaderNames = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];
const TOKENS: HeaderNames = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// Error of a limit that is reached: `rate_limit_exceeded` or `spend_limit_exceeded`. For a request that can
/// never fit, the error forbids a retry.
pub(crate) fn limit_problem(reached: &ReachedLimit) -> Problem {
    let ReachedLimit { amount, bound, .. } = reached;
    let left = reached.remaining();
    let is_hopeless = !reached.may_fit_later();
    let message = match reached.counter {
        Counter::Requests => format!(
            "This API key may run {bound} requests a minute and this minute's are used up: send the \
             same request again after `retry-after`."
        ),
        Counter::Tokens if is_hopeless => format!(
            "This request may use {amount} tokens and this API key may use {bound} a minute: shorten \
             the prompt, lower max_completion_tokens, or use an API key with a higher limit."
        ),
        Counter::Tokens => format!(
            "This API key may use {bound} tokens a minute, {left} of this minute's are left, and this \
             request may use {amount}: send it again after `retry-after`, or lower \
             max_completion_tokens."
        ),
        Counter::Concurrency => format!(
            "This API key may run {bound} operations at once and so many run: send the same request \
             again when one of them has ended."
        ),
        Counter::SpendTotal => spend(reached, "in total", "running requests to end"),
        Counter::SpendDay => spend(reached, "a day", "the next day (UTC)"),
        Counter::SpendMonth => spend(reached, "a month", "the next month (UTC)"),
    };
    let code = match reached.counter {
        Counter::Requests | Counter::Tokens | Counter::Concurrency => Code::RateLimitExceeded,
        Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => Code::SpendLimitExceeded,
    };
    let retry = match (RetryAdvice::of(code), reached.resets_in()) {
        // What does not fit into a whole minute does not fit into the next one.
        (RetryAdvice::Soon, _) if is_hopeless => RetryAdvice::Never,
        (RetryAdvice::Soon, Some(wait)) => RetryAdvice::After(wait),
        (retry, _) => retry,
    };
    let problem = if code == Code::SpendLimitExceeded {
        Problem::of_shortage(code, Micros::new(*amount), Some(Micros::new(left)))
    } else {
        Problem::new(code)
    };
    Problem { message: message.into(), retry, ..problem }
}

fn spend(reached: &ReachedLimit, each: &str, wait_for: &str) -> String {
    let (amount, bound, left) = (reached.amount, reached.bound, reached.remaining());
    if !reached.may_fit_later() {
        return format!(
            "This request may cost up to {amount} micros and this API key may spend {bound} {each}: \
             shorten the prompt, lower max_completion_tokens, or use an API key with a higher limit."
        );
    }
    format!(
        "This API key may spend {bound} micros {each}, {left} of them are left, and this request may \
         cost up to {amount}: lower max_completion_tokens, wait for {wait_for}, or use another API key."
    )
}

/// Sets the `x-ratelimit-…` headers of the limits by the minute; none for a limit not set.
pub(crate) fn put(headers: &mut HeaderMap, rates: &RateLimitStatus) {
    for (names, rate) in [(REQUESTS, rates.requests), (TOKENS, rates.tokens)] {
        let Some(RateLimitWindow { limit, remaining, resets_in }) = rate else { continue };
        let [limit_name, remaining_name, reset_name] = names;
        headers.insert(limit_name, HeaderValue::from(limit));
        headers.insert(remaining_name, HeaderValue::from(remaining));
        if let Ok(reset) = HeaderValue::try_from(format_span(resets_in)) {
            headers.insert(reset_name, reset);
        }
    }
}

/// Duration in OpenAI's spelling: `20ms`, `1.5s`, `6m0s`; whole milliseconds, rounded up, because
/// a caller that came a fraction early would be refused again.
fn format_span(span: Duration) -> String {
    let millis = span.as_micros().div_ceil(1_000);
    let (minutes, seconds, rest) = (millis / 60_000, millis / 1_000 % 60, millis % 1_000);
    let fraction = format!(".{rest:03}");
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    match (minutes, seconds) {
        (0, 0) if rest > 0 => format!("{rest}ms"),
        (0, _) => format!("{seconds}{fraction}s"),
        (_, _) => format!("{minutes}m{seconds}{fraction}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_spelled_as_openai_does() {
        for (micros, text) in [
            (0, "0s"),
            (1, "1ms"),
            (20_000, "20ms"),
            (999_001, "1s"),
            (1_500_000, "1.5s"),
            (12_345_000, "12.345s"),
            (60_000_000, "1m0s"),
            (360_000_000, "6m0s"),
            (61_050_000, "1m1.05s"),
        ] {
            assert_eq!(format_span(Duration::from_micros(micros)), text);
        }
    }
}
