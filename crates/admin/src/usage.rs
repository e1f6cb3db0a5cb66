//! `/usage`: sums of what was used and charged, by one group or two, as JSON or CSV.
//!
//! A cost that is not known is null, and never zero. What a role may not see has no member and no
//! column at all.
//!
//! A report is of whole hours. As JSON it has a bounded number of rows: a larger one is refused and not cut, because a
//! sum over a part of the rows would pass for the whole. A file is streamed ([`crate::export`]).

use std::collections::BTreeMap;

use holdfast_accounts::UsageReport;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    Group, GroupBy, Grouping, KnownCost, UsageFilter, UsageQuery, UsageRow,
};
use holdfast_domain::usage::MeterKind;
use holdfast_wire::file::group_name;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::Answer;
use crate::csv::{AcceptsCsv, ReportAnswer, ReportFormat};
use crate::description::Errors;
use crate::error::Problem;
use crate::export::usage_file;
use crate::page::List;
use crate::request::{Caller, Params};
use crate::value::{Moment, model, parse_some};

/// Groups, filters and period of a report. All filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UsageParams {
    /// One group, or two different ones with a comma: `hour`, `day`, `month`, `model`, `api_key`, `wallet`,
    /// `route`; `day` if absent. Holders have no `route`.
    #[param(example = "day,model", pattern = "^[a-z_]{3,7}(,[a-z_]{3,7})?$")]
    by: Option<String>,
    /// Operations of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// Operations of this API key.
    #[param(format = "uuid")]
    api_key_id: Option<String>,
    /// Operations of the model of this public id.
    #[param(pattern = "^[a-z0-9][a-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$")]
    model: Option<String>,
    /// Operations that tried this route last. Not for holders.
    route: Option<String>,
    /// Start of the period of finishing times, a whole hour; absent: from the first operation.
    #[param(inline)]
    from: Option<Moment>,
    /// End of the period, exclusive, a whole hour; absent: now.
    #[param(inline)]
    to: Option<Moment>,
    /// Format; it overrides `Accept`.
    #[param(inline)]
    format: Option<ReportFormat>,
}

/// Sums over the operations of a group that finished, in one currency.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Usage)]
pub(crate) struct UsageRowView {
    /// An hour, `2026-11-01T13:00:00Z`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    hour: Option<String>,
    /// A day, `2026-11-01`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    day: Option<String>,
    /// A month, `2026-11`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    month: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, format = "uuid")]
    api_key_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    api_key_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false, format = "uuid")]
    wallet_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    wallet_name: Option<String>,
    /// Route of the last attempt; empty if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    route: Option<String>,
    currency: String,
    /// Operations that were answered and settled.
    completed: u64,
    /// Operations that the provider refused.
    refused: u64,
    /// Operations that ended without a known outcome.
    abandoned: u64,
    /// The completed whose meters were counted here, and not reported by the provider.
    estimated: u64,
    /// Token counts of the completed, by kind.
    meters: BTreeMap<&'static str, u64>,
    charge_micros: i64,
    /// Part of the price of the completed that went beyond their holds.
    shortfall_micros: i64,
    /// Refunds of those charges, whenever they were made.
    refunded_micros: i64,
    #[serde(flatten)]
    #[schema(required = false)]
    costs: Option<UsageCosts>,
    /// True if a sum is more than a number can be, or a cost is left out; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    incomplete: bool,
}

/// Costs of the operations of a group. Not for support and holders.
#[derive(Debug, Serialize, ToSchema)]
struct UsageCosts {
    /// The completed whose cost is known.
    costed: u64,
    /// Cost of those; null if none is known.
    provider_cost_micros: Option<i64>,
    /// Charges of those less refunds less cost; null if no cost is known.
    margin_micros: Option<i64>,
    /// Holds of the refused and the abandoned: at most so much may they have cost the operator.
    exposure_micros: i64,
    /// The completed whose cost no run can have caused: it is left out, and their holds are exposure. Absent
    /// if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    costs_excluded: Option<u64>,
}

impl UsageRowView {
    fn new(row: &UsageRow, shows_costs: bool) -> Self {
        let UsageRow { group, second, currency, totals } = row;
        let costs = || {
            let known = totals.known();
            let micros =
                |of: fn(KnownCost) -> holdfast_domain::Micros| known.map(|it| of(it).get());
            UsageCosts {
                costed: totals.costed,
                provider_cost_micros: micros(|known| known.provider_cost),
                margin_micros: micros(|known| known.margin),
                exposure_micros: totals.exposure.get(),
                costs_excluded: Some(totals.costs_excluded).filter(|count| *count > 0),
            }
        };
        let meters = MeterKind::ALL.into_iter().map(MeterKind::label).zip(totals.meters);
        let mut view = Self {
            hour: None,
            day: None,
            month: None,
            model: None,
            api_key_id: None,
            api_key_name: None,
            wallet_id: None,
            wallet_name: None,
            route: None,
            currency: currency.to_string(),
            completed: totals.completed,
            refused: totals.refused,
            abandoned: totals.abandoned,
            estimated: totals.estimated,
            meters: meters.collect(),
            charge_micros: totals.charge.get(),
            shortfall_micros: totals.shortfall.get(),
            refunded_micros: totals.refunded.get(),
            costs: shows_costs.then(costs),
            incomplete: totals.is_saturated || (shows_costs && totals.is_incomplete()),
        };
        std::iter::once(group).chain(second).for_each(|group| view.name(group));
        view
    }

    /// Sets the member of this group.
    fn name(&mut self, group: &Group) {
        match group {
            Group::Hour(_) => self.hour = Some(group_name(group)),
            Group::Day(_) => self.day = Some(group_name(group)),
            Group::Month(_) => self.month = Some(group_name(group)),
            Group::Model(id) => self.model = Some(id.clone()),
            Group::Route(route) => self.route = Some(route.clone()),
            Group::ApiKey { name, id } => {
                (self.api_key_id, self.api_key_name) = (Some(id.to_string()), Some(name.clone()));
            }
            Group::Wallet { name, id } => {
                (self.wallet_id, self.wallet_name) = (Some(id.to_string()), Some(name.clone()));
            }
        }
    }
}

#[utoipa::path(
    get, path = "/usage", operation_id = "report_usage", tag = "reports", params(UsageParams),
    responses(
        (
            status = 200,
            description = "The sums, all of them, by group and currency; or a file of them, whose last row is \
                `closing` with their number.",
            content(
                (List<UsageRowView> = "application/json"), (String = "text/csv"), (String = "application/jsonl"),
            ),
        ),
        Errors,
    )
)]
/// Sums what finished in a period, by groups. An operation belongs to the period in which it finished,
/// and its refunds with it. As JSON at most 20,000 rows: a report of more is refused. A file has all of them.
pub(crate) async fn usage(
    caller: Caller,
    accepts: AcceptsCsv,
    Params(params): Params<UsageParams>,
) -> Result<ReportAnswer<List<UsageRowView>>, Problem> {
    let by = grouping(params.by.as_deref().unwrap_or("day"))?;
    let filter = UsageFilter {
        wallet: parse_some("wallet_id", params.wallet_id.as_deref())?,
        api_key: parse_some("api_key_id", params.api_key_id.as_deref())?,
        model: model(params.model.as_deref())?.map(|id| id.to_string()),
        route: params.route,
    };
    let [from, to] = [params.from, params.to].map(|bound| bound.map(|Moment(at)| at));
    let query = UsageQuery { by, filter, period: Period { from, to }, rows_max: None };
    if let Some(format) = accepts.format(params.format).of_file() {
        let file = caller.accounts().export_usage(&caller.principal, query).await?;
        return Ok(ReportAnswer::File(usage_file(file, format)));
    }
    // After the parameters, so that a malformed request takes no place; held until the rows are
    // rendered.
    let _place = caller.gate.begin_report(&caller.principal)?;
    let UsageReport { rows, shows_costs } =
        caller.accounts().usage(&caller.principal, query).await?;
    let views =
        move || List::whole(rows.iter().map(|row| UsageRowView::new(row, shows_costs)).collect());
    Ok(ReportAnswer::Json(Answer::large(views).await?))
}

fn grouping(text: &str) -> Result<Grouping, Problem> {
    let mut groups = text.split(',').map(group);
    let (first, second, more) = (groups.next().flatten(), groups.next(), groups.next());
    let grouping = match (first, second, more) {
        (Some(first), None, _) => Some(Grouping::by(first)),
        (Some(first), Some(Some(second)), None) => Grouping::by_both(first, second),
        (None, ..) | (_, Some(None), _) | (_, _, Some(_)) => None,
    };
    grouping.ok_or_else(|| {
        let message = "A report is by one group, or by two that differ, like day,model; the groups are \
                       hour, day, month, model, api_key, wallet and route.";
        Problem::invalid("by", message)
    })
}

fn group(name: &str) -> Option<GroupBy> {
    Some(match name {
        "hour" => GroupBy::Hour,
        "day" => GroupBy::Day,
        "month" => GroupBy::Month,
        "model" => GroupBy::Model,
        "api_key" => GroupBy::ApiKey,
        "wallet" => GroupBy::Wallet,
        "route" => GroupBy::Route,
        _unknown => return None,
    })
}

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::report::Totals;
    use holdfast_domain::{ApiKeyId, Micros, Timestamp, WalletId};
    use serde_json::{Value, json};

    use super::*;

    /// 2026-11-01T00:00:00Z, in seconds.
    const DAY: i64 = 1_793_491_200;

    const TOTALS: Totals = Totals {
        completed: 1,
        refused: 2,
        abandoned: 3,
        estimated: 4,
        meters: [1, 2, 3, 4, 5, 6, 7, 8, 1 << 60],
        charge: Micros::new(5),
        shortfall: Micros::new(6),
        refunded: Micros::new(7),
        exposure: Micros::new(11),
        costs_excluded: 0,
        costed: 8,
        provider_cost: Micros::new(9),
        margin: Micros::new(-10),
        is_saturated: false,
    };

    fn row(group: Group, second: Option<Group>, totals: Totals) -> UsageRow {
        UsageRow { group, second, currency: "EUR".parse().unwrap(), totals }
    }

    fn shown(row: &UsageRow, shows_costs: bool) -> Value {
        serde_json::to_value(UsageRowView::new(row, shows_costs)).unwrap()
    }

    /// A row with these members, and with those that all rows have.
    fn with(members: &[&Value]) -> Value {
        let mut row = json!({
            "currency": "EUR", "completed": 1, "refused": 2, "abandoned": 3, "estimated": 4,
            "meters": {
                "input": 1, "cached_input": 2, "cache_write": 3, "audio_input": 4, "output": 5,
                "reasoning": 6, "audio_output": 7, "request": 8, "image": 1_u64 << 60,
            },
            "charge_micros": 5, "shortfall_micros": 6, "refunded_micros": 7,
        });
        let members = members.iter().flat_map(|it| it.as_object().unwrap().clone());
        row.as_object_mut().unwrap().extend(members);
        row
    }

    #[test]
    fn a_row_has_the_members_of_its_groups() {
        let at = |seconds| Timestamp::from_micros(seconds * 1_000_000);
        let (day, hour) = (at(DAY), at(DAY + 13 * 3_600));
        let model = Group::Model("a/b".to_owned());
        let key = Group::ApiKey { name: "k".to_owned(), id: ApiKeyId::from_u128(2) };
        let wallet = Group::Wallet { name: "w".to_owned(), id: WalletId::from_u128(3) };
        let owners = json!({
            "api_key_id": "00000000-0000-0000-0000-000000000002", "api_key_name": "k",
            "wallet_id": "00000000-0000-0000-0000-000000000003", "wallet_name": "w",
        });
        let of_hour = json!({"hour": "2026-11-01T13:00:00Z", "model": "a/b"});
        let costs = json!({
            "costed": 8, "provider_cost_micros": 9, "margin_micros": -10, "exposure_micros": 11,
        });
        for (group, second, members) in [
            (Group::Day(day), None, json!({"day": "2026-11-01"})),
            (Group::Month(day), None, json!({"month": "2026-11"})),
            (Group::Hour(hour), Some(model), of_hour),
            (Group::Route(String::new()), None, json!({"route": ""})),
            (key, Some(wallet), owners),
        ] {
            let row = row(group, second, TOTALS);
            assert_eq!(shown(&row, true), with(&[&members, &costs]));
            assert_eq!(shown(&row, false), with(&[&members]));
        }
    }

    #[test]
    fn a_row_without_a_known_cost_has_null_and_excluded_costs_make_it_incomplete() {
        let route = || Group::Route("p/m".to_owned());
        let unknown =
            Totals { costed: 0, provider_cost: Micros::ZERO, margin: Micros::ZERO, ..TOTALS };
        let excluded = Totals { costs_excluded: 2, ..unknown };
        let saturated = Totals { is_saturated: true, ..unknown };
        let costs = json!({
            "route": "p/m", "costed": 0, "provider_cost_micros": null, "margin_micros": null,
            "exposure_micros": 11,
        });
        let (named, incomplete) = (json!({"route": "p/m"}), json!({"incomplete": true}));
        for (totals, all, without_costs) in [
            (unknown, with(&[&costs]), with(&[&named])),
            (
                excluded,
                with(&[&costs, &json!({"costs_excluded": 2}), &incomplete]),
                with(&[&named]),
            ),
            (saturated, with(&[&costs, &incomplete]), with(&[&named, &incomplete])),
        ] {
            let row = row(route(), None, totals);
            assert_eq!(shown(&row, true), all);
            assert_eq!(shown(&row, false), without_costs);
        }
    }
}
