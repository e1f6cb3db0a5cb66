//! Queries of usage: the parameters and their values. A parameter that is unknown, stands twice, or has a value
//! that it cannot have is refused by its name.
//!
//! OpenAI's clients write a list as `name[]=a&name[]=b`, others as `name=a&name=b`: both are read.
//!
//! A page is named by the moment that it begins at, not by a number of rows: buckets of time do not move while
//! a client pages. A limit bounds the buckets of a page, so that no query reads a whole ledger.

use std::borrow::Cow;
use std::ops::Range;

use holdfast_domain::admin::report::{UsageInterval, UsageScope};
use holdfast_domain::limits::Counter;
use holdfast_domain::{ApiKeyId, Timestamp, WalletId};
use holdfast_wire::api::moment;
use holdfast_wire::error::Code;
use http::Uri;

use crate::problem::Problem;

const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;
/// Values in one query, so that no stored value is compared with a long list.
const VALUES_MAX: usize = 128;
/// The last second whose year has four digits.
const SECONDS_MAX: i64 = 253_402_300_799;
/// Days that are reported by the hour, by the day and by the month at most.
const DAYS_MAX: [(UsageInterval, i64); 3] =
    [(UsageInterval::Hour, 31), (UsageInterval::Day, 366), (UsageInterval::Month, 3_660)];

/// OpenAiEndpoint of OpenAI's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenAiEndpoint {
    Completions,
    Costs,
}

/// Key that the results of a bucket are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    /// The model; of costs, the line.
    Model,
    ApiKey,
}

/// Query of Holdfast's own endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UsageQuery {
    pub(super) interval: UsageInterval,
    pub(super) by_model: bool,
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

/// Query for a page of buckets, in whole buckets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BucketQuery {
    /// Seconds of a bucket.
    width: i64,
    page: Range<i64>,
    end: i64,
    groups: Vec<Group>,
    /// The only models; all if the list is empty.
    models: Vec<String>,
    scope: UsageScope,
    /// False if other API keys are requested, which have no results.
    is_own: bool,
}

impl UsageQuery {
    pub(super) fn read(uri: &Uri, now: Timestamp) -> Result<Self, Problem> {
        let params = Params::read(uri, &["by", "from", "to"])?;
        let by = params.one("by")?.unwrap_or("day");
        let (interval, by_model) = grouping(by).ok_or_else(|| {
            bad(
                "by",
                "`by` is hour, day or month, alone or with model behind a comma, \
                       like day,model.",
            )
        })?;
        let from = params.hour("from")?.unwrap_or_else(|| Counter::SpendMonth.window(now));
        // The current hour is reported as far as it is over.
        let to = params.hour("to")?.unwrap_or_else(|| next_hour(now));
        let (first, last) = (from.as_micros(), to.as_micros());
        if first >= last {
            return Err(bad("to", "`to` is not after `from`, and is not included."));
        }
        let days = DAYS_MAX.iter().find(|(of, _days)| *of == interval).map_or(1, |(_, days)| *days);
        if last.saturating_sub(first) > days.saturating_mul(DAY * 1_000_000) {
            let message =
                format!("A report by {by} is of {days} days at most: send another `from`.");
            return Err(bad("from", message));
        }
        Ok(Self { interval, by_model, from, to })
    }
}

/// The interval, and true if models are distinguished.
fn grouping(by: &str) -> Option<(UsageInterval, bool)> {
    let (interval, model) = by.split_once(',').unwrap_or((by, ""));
    let interval = match interval {
        "hour" => UsageInterval::Hour,
        "day" => UsageInterval::Day,
        "month" => UsageInterval::Month,
        _unknown => return None,
    };
    match model {
        "" if !by.ends_with(',') => Some((interval, false)),
        "model" => Some((interval, true)),
        _unknown => None,
    }
}

fn next_hour(now: Timestamp) -> Timestamp {
    let hour = HOUR * 1_000_000;
    let now = now.as_micros();
    Timestamp::from_micros(now.saturating_sub(now.rem_euclid(hour)).saturating_add(hour))
}

impl BucketQuery {
    pub(super) fn read(
        endpoint: OpenAiEndpoint,
        uri: &Uri,
        (api_key, wallet): (ApiKeyId, Option<WalletId>),
        now: Timestamp,
    ) -> Result<Self, Problem> {
        let params = Params::read(uri, endpoint.parameters())?;
        let (width, limits) = match params.one("bucket_width")? {
            None | Some("1d") => (DAY, endpoint.days()),
            Some("1h") => (HOUR, 24..=168),
            Some(_other) => return Err(bad("bucket_width", "`bucket_width` is 1d or 1h.")),
        };
        let start = params.seconds("start_time")?.ok_or_else(|| {
            bad("start_time", "`start_time` is missing: send the Unix seconds of the first bucket.")
        })?;
        // One more than now: the end is not included, and operations of this second are.
        let until = now.as_micros().div_euclid(1_000_000).saturating_add(1);
        let asked_for = params.seconds("end_time")?;
        if asked_for.is_some_and(|end| end <= start) {
            return Err(bad(
                "end_time",
                "`end_time` is not after `start_time`, and is not included.",
            ));
        }
        // At least the bucket that begins at the start, even if that is in the future.
        let end = asked_for.unwrap_or(until).max(start.saturating_add(1));
        let start = start.saturating_sub(start.rem_euclid(width));
        let end = end.saturating_sub(1).div_euclid(width).saturating_add(1).saturating_mul(width);
        let limit = match params.one("limit")? {
            None => *limits.start(),
            Some(text) => {
                whole(text).filter(|limit| (1..=*limits.end()).contains(limit)).ok_or_else(
                    || bad("limit", format!("`limit` is a number from 1 to {}.", limits.end())),
                )?
            }
        };
        let first = match params.one("page")? {
            None => start,
            // Only the beginning of a bucket of this query: within one, a part would be shown as
            // the whole.
            Some(page) => place(page)
                .filter(|at| (start..end).contains(at) && at.rem_euclid(width) == 0)
                .ok_or_else(|| {
                    bad("page", "`page` is not the `next_page` of a page of this query.")
                })?,
        };
        // At most 180 days after a year of four digits: neither step saturates.
        let last = first.saturating_add(limit.saturating_mul(width)).min(end);
        let groups = params.all("group_by").map(|name| {
            let group = endpoint.groups().iter().find(|(known, _group)| *known == name);
            let known: Vec<_> = endpoint.groups().iter().map(|(name, _)| *name).collect();
            let known = known.join(" or ");
            group.map(|(_, group)| *group).ok_or_else(|| {
                bad("group_by", format!("`group_by` is {known}: no other grouping exists here."))
            })
        });
        let groups: Vec<_> = groups.collect::<Result<_, _>>()?;
        let own = api_key.to_string();
        let asked_for: Vec<_> = params.all("api_key_ids").collect();
        let (scope, is_own) = match wallet {
            None => {
                let is_own = asked_for.is_empty() || asked_for.contains(&own.as_str());
                (UsageScope::ApiKey(api_key), is_own)
            }
            // All keys of the wallet together, or the calling one: other keys are not listed separately.
            Some(wallet) if asked_for.is_empty() => {
                if groups.contains(&Group::ApiKey) {
                    let message = "This API key reads the usage of its whole wallet, whose keys \
                        are not distinguished: send `api_key_ids` with its own id as well.";
                    return Err(bad("group_by", message));
                }
                (UsageScope::Wallet(wallet), true)
            }
            Some(_) if asked_for.iter().all(|id| *id == own) => (UsageScope::ApiKey(api_key), true),
            Some(_) => {
                let message = "`api_key_ids` has this API key's own id, or is left out: other keys \
                    of the wallet are not distinguished.";
                return Err(bad("api_key_ids", message));
            }
        };
        let models = params.all("models").map(str::to_owned).collect();
        Ok(Self { width, page: first..last, end, groups, models, scope, is_own })
    }

    /// Operations that are summed.
    pub(super) const fn scope(&self) -> UsageScope {
        self.scope
    }

    pub(super) const fn interval(&self) -> UsageInterval {
        if self.width == HOUR { UsageInterval::Hour } else { UsageInterval::Day }
    }

    /// First second of the page, and the one after its last.
    pub(super) const fn page(&self) -> [i64; 2] {
        [self.page.start, self.page.end]
    }

    /// First second of each bucket of the page, and the one after its last.
    pub(super) fn buckets(&self) -> impl Iterator<Item = [i64; 2]> {
        let Self { width, page: Range { start, end }, .. } = *self;
        std::iter::successors(Some(start), move |at| at.checked_add(width))
            .take_while(move |at| *at < end)
            .map(move |at| [at, at.saturating_add(width)])
    }

    pub(super) fn next_page(&self) -> Option<String> {
        (self.page.end < self.end).then(|| format!("{PAGE}{}", self.page.end))
    }

    pub(super) fn has(&self, group: Group) -> bool {
        self.groups.contains(&group)
    }

    pub(super) fn has_model(&self, model: &str) -> bool {
        self.is_own && (self.models.is_empty() || self.models.iter().any(|it| it == model))
    }
}

const PAGE: &str = "page_";

fn place(page: &str) -> Option<i64> {
    page.strip_prefix(PAGE).and_then(whole)
}

/// A whole number in digits alone.
fn whole(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_number| is_number)
}

impl OpenAiEndpoint {
    const fn parameters(self) -> &'static [&'static str] {
        match self {
            Self::Completions => &[
                "start_time",
                "end_time",
                "bucket_width",
                "group_by",
                "limit",
                "page",
                "models",
                "api_key_ids",
            ],
            Self::Costs => &[
                "start_time",
                "end_time",
                "bucket_width",
                "group_by",
                "limit",
                "page",
                "api_key_ids",
            ],
        }
    }

    const fn groups(self) -> &'static [(&'static str, Group)] {
        match self {
            Self::Completions => &[("model", Group::Model), ("api_key_id", Group::ApiKey)],
            Self::Costs => &[("line_item", Group::Model), ("api_key_id", Group::ApiKey)],
        }
    }

    /// Days on a page by default, and the most.
    const fn days(self) -> std::ops::RangeInclusive<i64> {
        match self {
            Self::Completions => 7..=31,
            Self::Costs => 7..=180,
        }
    }
}

/// Parameters of a query, decoded, without the brackets that lists may have.
struct Params<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl<'a> Params<'a> {
    fn read(uri: &'a Uri, known: &[&str]) -> Result<Self, Problem> {
        let query = uri.query().unwrap_or_default();
        let mut params = Vec::new();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let name =
                name.strip_suffix("[]").map(|name| Cow::from(name.to_owned())).unwrap_or(name);
            if !known.contains(&&*name) {
                let message =
                    format!("There is no such parameter here: there are {}.", known.join(", "));
                let refused = Problem::new(Code::UnknownParameter);
                return Err(Problem {
                    message: message.into(),
                    param: Some(shown(&name).into()),
                    ..refused
                });
            }
            if params.len() >= VALUES_MAX {
                return Err(bad(&name, format!("A query has {VALUES_MAX} values at most.")));
            }
            params.push((name, value));
        }
        Ok(Self(params))
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| &**value)
    }

    /// The only value of a parameter.
    fn one(&self, name: &'static str) -> Result<Option<&str>, Problem> {
        let mut values = self.all(name);
        let value = values.next();
        match values.next() {
            None => Ok(value),
            Some(_second) => Err(bad(name, format!("`{name}` occurs more than once."))),
        }
    }

    fn seconds(&self, name: &'static str) -> Result<Option<i64>, Problem> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let seconds = whole(text).filter(|seconds| *seconds <= SECONDS_MAX);
        let refusal = || bad(name, format!("`{name}` is a number of Unix seconds."));
        seconds.map(Some).ok_or_else(refusal)
    }

    /// A moment at which an hour begins.
    fn hour(&self, name: &'static str) -> Result<Option<Timestamp>, Problem> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let is_whole = |at: &Timestamp| at.as_micros().rem_euclid(HOUR * 1_000_000) == 0;
        let refusal = || {
            bad(
                name,
                format!(
                    "`{name}` is a date like 2026-11-01, or the beginning of an hour like \
                               2026-11-01T09:00:00Z."
                ),
            )
        };
        moment(text).filter(is_whole).map(Some).ok_or_else(refusal)
    }
}

/// A name that the caller chose, as far as an error repeats it.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn bad(name: &str, message: impl Into<Cow<'static, str>>) -> Problem {
    Problem {
        message: message.into(),
        param: Some(name.into()),
        ..Problem::new(Code::InvalidValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: ApiKeyId = ApiKeyId::from_u128(7);
    /// 2026-11-23T17:20:05Z.
    const NOW: Timestamp = Timestamp::from_micros(1_795_454_405_000_000);

    fn buckets(endpoint: OpenAiEndpoint, query: &str) -> Result<BucketQuery, Problem> {
        let uri = format!("/v1/x?{query}").parse().unwrap();
        BucketQuery::read(endpoint, &uri, (KEY, None), NOW)
    }

    fn usage(query: &str) -> Result<UsageQuery, Problem> {
        UsageQuery::read(&format!("/v1/usage?{query}").parse().unwrap(), NOW)
    }

    #[test]
    fn buckets_are_whole_and_pages_follow_each_other() {
        let day = NOW.as_micros() / 1_000_000 / DAY * DAY;
        let query =
            buckets(OpenAiEndpoint::Completions, &format!("start_time={}", day - 9 * DAY + 5));
        let query = query.unwrap();
        assert_eq!(query.page(), [day - 9 * DAY, day - 2 * DAY]);
        assert_eq!(query.buckets().count(), 7);
        let next = query.next_page().unwrap();
        let rest = format!("start_time={}&page={next}", day - 9 * DAY + 5);
        let rest = buckets(OpenAiEndpoint::Completions, &rest).unwrap();
        assert_eq!((rest.page(), rest.next_page()), ([day - 2 * DAY, day + DAY], None));
        let hours = format!("start_time={day}&end_time={}&bucket_width=1h&limit=2", day + HOUR + 1);
        let hours = buckets(OpenAiEndpoint::Costs, &hours).unwrap();
        assert_eq!((hours.page(), hours.next_page()), ([day, day + 2 * HOUR], None));
    }

    #[test]
    fn what_is_not_known_or_cannot_be_is_refused_by_its_name() {
        for (query, param) in [
            ("", "start_time"),
            ("start_time=x", "start_time"),
            ("start_time=-1", "start_time"),
            ("start_time=+1", "start_time"),
            ("start_time=253402300800", "start_time"),
            ("start_time=1&start_time=2", "start_time"),
            ("start_time=9&end_time=9", "end_time"),
            ("start_time=1&bucket_width=1m", "bucket_width"),
            ("start_time=1&limit=0", "limit"),
            ("start_time=1&limit=32", "limit"),
            ("start_time=1&page=page_5", "page"),
            ("start_time=86400&page=page_0", "page"),
            ("start_time=1&group_by=project_id", "group_by"),
            ("start_time=1&group_by%5B%5D=line_item", "group_by"),
            ("start_time=1&project_ids[]=a", "project_ids"),
            ("start_time=1&batch=true", "batch"),
        ] {
            let told = buckets(OpenAiEndpoint::Completions, query).unwrap_err();
            assert_eq!(told.param.as_deref(), Some(param), "{query}: {told:?}");
        }
        for (query, param) in [
            ("by=week", "by"),
            ("by=day,", "by"),
            ("by=day,key", "by"),
            ("by=model,day", "by"),
            ("from=2026-11-01T09:30:00Z", "from"),
            ("from=yesterday", "from"),
            ("from=2026-11-02&to=2026-11-02", "to"),
            ("from=2026-01-01&by=hour", "from"),
            ("wallet=1", "wallet"),
        ] {
            let told = usage(query).unwrap_err();
            assert_eq!(told.param.as_deref(), Some(param), "{query}: {told:?}");
        }
    }

    #[test]
    fn lists_are_read_with_brackets_and_without() {
        let query = format!(
            "start_time=1&group_by%5B%5D=model&group_by=api_key_id&models=a%2Fb&models[]=c/d\
             &api_key_ids={KEY}"
        );
        let query = buckets(OpenAiEndpoint::Completions, &query).unwrap();
        assert!(query.has(Group::Model) && query.has(Group::ApiKey));
        assert!(query.has_model("a/b") && query.has_model("c/d") && !query.has_model("a"));
    }

    #[test]
    fn a_report_is_of_this_month_by_day_unless_it_says_otherwise() {
        let query = usage("").unwrap();
        let (from, to) = ("2026-11-01", "2026-11-23T18:00:00Z");
        let expected = UsageQuery {
            interval: UsageInterval::Day,
            by_model: false,
            from: moment(from).unwrap(),
            to: moment(to).unwrap(),
        };
        assert_eq!(query, expected);
        let query = usage("by=hour,model&from=2026-11-20&to=2026-11-20T05:00:00%2B02:00").unwrap();
        assert!(query.by_model);
        assert_eq!(query.to, moment("2026-11-20T03:00:00Z").unwrap());
    }
}
