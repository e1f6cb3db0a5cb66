//! Time for which a call is retried: until 2 s before the timeout that its caller has announced, else for the
//! configured time with a gateway that fails. Time is an argument here.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

/// Headers in which official SDKs announce their timeout, in seconds, perhaps with a fraction.
const ANNOUNCED: [HeaderName; 2] = [
    HeaderName::from_static("x-stainless-read-timeout"),
    HeaderName::from_static("x-stainless-timeout"),
];
/// The shortest timeout that the gateway believes; a shorter one counts as this.
const ANNOUNCED_MIN: Duration = Duration::from_secs(5);
/// The longest one that is believed.
const ANNOUNCED_MAX: Duration = Duration::from_secs(86_400);
/// Time before the announced timeout in which no request is sent any more: the answer has to arrive.
const MARGIN: Duration = Duration::from_secs(2);
/// Time before the announced timeout at which a request is given up: the gateway has answered by then.
const GIVE_UP: Duration = Duration::from_secs(1);
/// The first pause if the gateway requests none, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// Budget of the retries of one call.
#[derive(Debug, Clone)]
pub(crate) struct RetryBudget {
    announced: Option<Duration>,
    /// Retry time with a gateway that fails, if the caller has announced no timeout.
    otherwise: Duration,
    /// Beginning of the caller's wait: its request, or the last that it was written.
    since: Instant,
    /// The first failure since then.
    failing_since: Option<Instant>,
    failures: u32,
}

impl RetryBudget {
    /// Budget of a request that has come with these headers.
    pub(crate) fn new(headers: &HeaderMap, otherwise: Duration, now: Instant) -> Self {
        let announced = ANNOUNCED.iter().find_map(|name| seconds(headers.get(name)?));
        let announced = announced.map(|it| it.clamp(ANNOUNCED_MIN, ANNOUNCED_MAX));
        Self { announced, otherwise, since: now, failing_since: None, failures: 0 }
    }

    /// The caller was sent some bytes: its wait begins anew.
    pub(crate) fn begin_anew(&mut self, now: Instant) {
        (self.since, self.failing_since, self.failures) = (now, None, 0);
    }

    /// The pause before the next request, after one has failed and the gateway has sent `hint`; `None` if there
    /// is no time for another.
    pub(crate) fn pause(&mut self, hint: Option<Duration>, now: Instant) -> Option<Duration> {
        let failing_since = *self.failing_since.get_or_insert(now);
        let end = match self.announced {
            Some(announced) => self.since + announced.saturating_sub(MARGIN),
            None => failing_since + self.otherwise,
        };
        // From the fifth doubling on the pause is `PAUSE_MAX`: the shift stops long before it
        // overflows.
        let doubled = PAUSE_MIN.saturating_mul(1 << self.failures.min(8)).min(PAUSE_MAX);
        self.failures += 1;
        let pause = hint.unwrap_or(doubled);
        // The gateway may request more than the clock can represent.
        now.checked_add(pause).is_some_and(|again| again < end).then_some(pause)
    }

    /// Time that one request may take; `None` if only the gateway bounds it.
    pub(crate) fn request_time(&self, now: Instant) -> Option<Duration> {
        let end = self.since + self.announced?.saturating_sub(GIVE_UP);
        Some(end.saturating_duration_since(now))
    }

    /// Announces to the gateway the rest of the caller's time, if the caller announced any.
    pub(crate) fn announce(&self, headers: &mut HeaderMap, now: Instant) {
        let Some(announced) = self.announced else { return };
        // Rounded down: the gateway has to answer before the caller gives up.
        let left = (self.since + announced).saturating_duration_since(now).as_secs().max(1);
        for name in ANNOUNCED {
            if headers.contains_key(&name) {
                headers.insert(name, HeaderValue::from(left));
            }
        }
    }
}

/// Whole seconds of a header; a fraction is cut off.
fn seconds(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let whole = text.split('.').next().unwrap_or_default();
    whole.parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn budget(announced: Option<&'static str>) -> (RetryBudget, Instant) {
        let now = Instant::now();
        let mut headers = HeaderMap::new();
        headers.extend(announced.map(|it| (ANNOUNCED[0].clone(), HeaderValue::from_static(it))));
        (RetryBudget::new(&headers, 120 * SECOND, now), now)
    }

    #[test]
    fn it_ends_two_seconds_before_the_announced_time_out() {
        let (mut budget, now) = budget(Some("30.0"));
        assert_eq!(budget.pause(Some(SECOND), now + 26 * SECOND), Some(SECOND));
        assert_eq!(budget.pause(Some(SECOND), now + 27 * SECOND), None);
        assert_eq!(budget.request_time(now + 9 * SECOND), Some(20 * SECOND));
        budget.begin_anew(now + 28 * SECOND);
        assert_eq!(budget.pause(Some(SECOND), now + 54 * SECOND), Some(SECOND));
    }

    #[test]
    fn without_one_it_is_counted_from_the_first_failure() {
        let (mut budget, now) = budget(None);
        let first = now + 300 * SECOND;
        assert_eq!(budget.pause(None, first), Some(PAUSE_MIN), "a long run is no failure");
        assert_eq!(budget.pause(None, first), Some(PAUSE_MIN * 2));
        assert_eq!(budget.pause(Some(SECOND), first + 119 * SECOND), None);
        assert_eq!(budget.pause(Some(Duration::MAX), first), None);
        assert_eq!(budget.request_time(first), None);
    }

    #[test]
    fn each_ask_announces_what_is_left() {
        let (budget, now) = budget(Some("30"));
        let mut headers = HeaderMap::new();
        headers.insert(&ANNOUNCED[0], HeaderValue::from_static("30"));
        budget.announce(&mut headers, now + 12 * SECOND);
        assert_eq!(headers[&ANNOUNCED[0]], "18");
        assert!(!headers.contains_key(&ANNOUNCED[1]), "nothing is announced that was not");
    }
}
