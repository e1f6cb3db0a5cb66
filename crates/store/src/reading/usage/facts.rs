//! The statements of usage. All of them select the keys of the groups, the currency and the sums, in that order,
//! from one of four sources:
//!
//! ```text
//! usage_hours    operations that are summed, by the hour in which they finished
//! operations     the rest of them, by their numbers, or by the notes of those that ended late
//! postings       refunds that are not summed, each with its operation
//! late_costs     costs that ended rows do not have, each with its operation
//! ```
//!
//! Operations are selected without their refunds: refunds are summed by themselves, whatever the state of the
//! operation.

use std::ops::Range;

use holdfast_domain::usage::MeterKind;
use sea_orm::ColumnTrait;
use sea_orm::JoinType;
use sea_orm::sea_query::{Alias, Expr, ExprTrait as _, Func, Query, SelectStatement};

use super::WalletRange;
use crate::reading::outstanding::wide_total;
use crate::rows::entity::operation::{self, Column};
use crate::rows::entity::{posting, usage_hour, wallet};
use crate::rows::late_cost;
use crate::schema::Dialect;
use crate::transaction::hour::{SUM_COLUMNS, SUMS};
use holdfast_domain::admin::report::{GroupBy, UsageFilter};
use holdfast_domain::billing::COST_MAX;

/// Microseconds of an hour.
pub(crate) const HOUR: i64 = 3_600_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400_000_000;

/// Condition: an operation is not among those that are summed when they have ended.
const IS_NOT_LATE: &str =
    "NOT EXISTS (SELECT 1 FROM late_ends WHERE late_ends.op_seq = operations.seq)";
/// Condition: the charge of the gateway behind was not accepted. 4096 is
/// [`UsageReason::ChargeTooLarge`](holdfast_domain::usage::UsageReason::ChargeTooLarge).
const HAS_REFUSED_CHARGE: &str =
    "(operations.phase = 'completed' AND (coalesce(operations.usage_reasons, 0) & 4096) <> 0)";
/// Condition: an operation was abandoned, and not while it was open. 128 is
/// [`Reservation::CANCELLED_OPEN`](holdfast_domain::limits::Reservation::CANCELLED_OPEN).
const MAY_HAVE_RUN: &str =
    "(operations.phase = 'abandoned' AND (operations.reserved_counters & 128) = 0)";
const IS_LATE: &str = "operations.seq IN (SELECT op_seq FROM late_ends)";

/// The meters, in the order of [`MeterKind::ALL`].
const METERS: [Column; MeterKind::COUNT] = [
    Column::Input,
    Column::CachedInput,
    Column::CacheWrite,
    Column::AudioInput,
    Column::Output,
    Column::Reasoning,
    Column::AudioOutput,
    Column::Request,
    Column::Image,
];

/// Table that has the keys of the groups.
#[derive(Debug, Clone, Copy)]
enum Source {
    Operations,
    Hours,
}

/// Groups and operations of a statement: what it has in common with the others of its report.
#[derive(Debug, Clone)]
pub(crate) struct Scope<'s> {
    pub(crate) dialect: Dialect,
    pub(crate) keys: &'s [GroupBy],
    pub(crate) filter: &'s UsageFilter,
    /// Wallets of a part of a report.
    pub(crate) wallets: Option<WalletRange>,
    /// First number that is not summed yet: operations from here on are judged by their cost.
    pub(crate) summed_to: i64,
}

/// Operations that are read.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    /// Operations with these numbers, but for the noted ones.
    Numbers(Range<i64>),
    /// All that are noted.
    Late,
    /// Operations with these numbers, noted or not.
    Listed(Vec<i64>),
}

impl Source {
    const fn table(self) -> &'static str {
        match self {
            Self::Operations => "operations",
            Self::Hours => "usage_hours",
        }
    }

    const fn moment(self) -> &'static str {
        match self {
            Self::Operations => "operations.finished_at",
            Self::Hours => "usage_hours.hour",
        }
    }

    fn column(self, name: &str) -> Expr {
        Expr::cust(format!("{}.{name}", self.table()))
    }

    fn route(self, dialect: Dialect) -> Expr {
        match self {
            Self::Operations => Expr::cust(dialect.last_route()),
            Self::Hours => self.column("route"),
        }
    }

    /// Expression that identifies a group. Months are identified by their days: that is the same in both dialects.
    fn key(self, dialect: Dialect, by: GroupBy) -> Expr {
        let floor = |span: i64| Expr::cust(format!("{} / {span} * {span}", self.moment()));
        match by {
            GroupBy::Hour => floor(HOUR),
            GroupBy::Day | GroupBy::Month => floor(DAY),
            GroupBy::Model => self.column("model"),
            GroupBy::ApiKey => self.column("api_key_id"),
            GroupBy::Wallet => self.column("wallet_id"),
            GroupBy::Route => self.route(dialect),
        }
    }
}

impl Scope<'_> {
    /// Sums over the operations that are summed already, of these hours; `None`: of all.
    pub(crate) fn hours(&self, hours: &Range<i64>) -> SelectStatement {
        let sums = SUM_COLUMNS.map(|name| wide_total(&Source::Hours.column(name)));
        let mut all = self.grouped(Source::Hours, sums.into_iter().flatten());
        all.from(usage_hour::Entity);
        self.join_wallets(&mut all, Source::Hours);
        let hour = || usage_hour::Column::Hour.into_expr();
        // No condition if there is no bound: the index is not searched for it.
        if hours.start != i64::MIN {
            all.and_where(hour().gte(hours.start));
        }
        if hours.end != i64::MAX {
            all.and_where(hour().lt(hours.end));
        }
        all
    }

    /// Sums over some operations that finished then.
    pub(crate) fn operations(
        &self,
        selection: &Selection,
        finished: &Range<i64>,
    ) -> SelectStatement {
        let sums = self.values().map(|value| wide_total(&value));
        let mut page = self.grouped(Source::Operations, sums.into_iter().flatten());
        page.from(operation::Entity);
        self.join_wallets(&mut page, Source::Operations);
        join_excluded(&mut page);
        select(&mut page, selection);
        finished_in(&mut page, finished);
        page
    }

    /// Numbers of the finished operations whose cost is left out, in their order.
    pub(crate) fn excluded(&self, selection: &Selection) -> SelectStatement {
        let mut page = Query::select();
        page.column((Alias::new("operations"), Column::Seq))
            .from(operation::Entity)
            .and_where(Column::FinishedAt.is_not_null())
            .and_where(self.is_excluded())
            .order_by(Column::Seq, sea_orm::Order::Asc);
        join_excluded(&mut page);
        select(&mut page, selection);
        page
    }

    /// Sums over the refunds with these numbers, of operations that finished then.
    pub(crate) fn refunds(&self, postings: &Range<i64>, finished: &Range<i64>) -> SelectStatement {
        let amount = posting::Column::Amount.into_expr();
        // A margin is of what has a cost.
        let lost: Expr = Expr::case(self.is_costed(), Expr::val(0).sub(amount.clone())).into();
        let sum = |name: &str| match name {
            "refunded" => wide_total(&amount),
            "margin" => wide_total(&lost),
            _nothing_else => [zero(), zero()],
        };
        let sums = SUM_COLUMNS.map(sum).into_iter().flatten();
        let mut page = self.grouped(Source::Operations, sums);
        page.from(posting::Entity).cross_join(operation::Entity);
        self.join_wallets(&mut page, Source::Operations);
        join_excluded(&mut page);
        refunds_of(&mut page, postings);
        finished_in(&mut page, finished);
        page
    }

    /// Changes of the sums by costs that came after their operations, which finished then, and by those
    /// that are awaited.
    pub(crate) fn late_costs(&self, finished: &Range<i64>) -> SelectStatement {
        let sum = |name: &str| match name {
            "exposure" => wide_total(&Expr::cust(late_cost::EXPOSURE)),
            "costed" => wide_total(&Expr::cust(late_cost::COSTED)),
            "provider_cost" => wide_total(&Expr::cust(late_cost::COST)),
            "margin" => wide_total(&Expr::cust(late_cost::MARGIN)),
            _nothing_else => [zero(), zero()],
        };
        let sums = SUM_COLUMNS.map(sum).into_iter().flatten();
        let mut page = self.grouped(Source::Operations, sums);
        page.from("late_costs").cross_join(operation::Entity);
        self.join_wallets(&mut page, Source::Operations);
        page.and_where(Expr::cust(late_cost::IS_OF_OPERATION));
        finished_in(&mut page, finished);
        page
    }

    /// Sums over the refunds with these numbers, only of these operations.
    pub(crate) fn refunds_of(&self, those: &Selection, postings: &Range<i64>) -> SelectStatement {
        let mut page = self.refunds(postings, &(i64::MIN..i64::MAX));
        select(&mut page, those);
        page
    }

    /// Finished operations with these numbers whose cost no run can have caused, and that are not noted as
    /// excluded: numbers and ids, in their order, so many at most.
    pub(crate) fn absurd(numbers: &Range<i64>, most: u64) -> SelectStatement {
        let mut page = Query::select();
        page.columns([Column::Seq, Column::Id].map(|it| (Alias::new("operations"), it)))
            .from(operation::Entity)
            .and_where(Column::FinishedAt.is_not_null())
            .and_where(Column::ProviderCost.gt(COST_MAX.get()))
            .and_where(Column::Seq.gte(numbers.start))
            .and_where(Column::Seq.lt(numbers.end))
            .and_where(Expr::cust("excluded_costs.op_seq IS NULL"))
            .order_by(Column::Seq, sea_orm::Order::Asc)
            .limit(most);
        join_excluded(&mut page);
        page
    }

    /// Finished operations with these numbers that are not noted, one by one: keys and own sums, except for the
    /// margin. They are not added up, so that no row is too large.
    pub(crate) fn each_operation(&self, numbers: Range<i64>) -> SelectStatement {
        let own = |value: Expr| -> Expr {
            Expr::from(Func::coalesce([value, 0.into()])).cast_as("bigint")
        };
        let mut page = Query::select();
        page.exprs(self.keys.iter().map(|by| Source::Operations.key(self.dialect, *by)))
            .exprs(self.values().into_iter().take(SUMS - 1).map(own))
            .from(operation::Entity)
            .and_where(Column::FinishedAt.is_not_null());
        join_excluded(&mut page);
        select(&mut page, &Selection::Numbers(numbers));
        page
    }

    /// Refunds with these numbers, one by one: the keys of the operation, the amount, and 1 if that has a cost.
    pub(crate) fn each_refund(&self, numbers: Range<i64>) -> SelectStatement {
        let has_cost: Expr = Expr::case(self.is_costed(), 1).finally(0).into();
        let mut page = Query::select();
        page.exprs(self.keys.iter().map(|by| Source::Operations.key(self.dialect, *by)))
            .expr(posting::Column::Amount.into_expr())
            .expr(has_cost.cast_as("bigint"))
            .from(posting::Entity)
            .cross_join(operation::Entity);
        join_excluded(&mut page);
        refunds_of(&mut page, &numbers);
        page
    }

    /// Condition: the cost of an operation is in no sum. What is summed is judged once, when it is
    /// summed, and by command; what is not summed yet, by its cost.
    fn is_excluded(&self) -> Expr {
        let (most, summed_to) = (COST_MAX.get(), self.summed_to);
        Expr::cust(format!(
            "(operations.provider_cost IS NOT NULL AND (excluded_costs.op_seq IS NOT NULL \
             OR (operations.provider_cost > {most} \
                 AND (operations.seq >= {summed_to} OR {IS_LATE}))))"
        ))
    }

    /// Condition: an operation has a cost, and sums have it.
    fn is_costed(&self) -> Expr {
        Column::ProviderCost.is_not_null().and(self.is_excluded().not())
    }

    /// Addend of an operation for each sum, in the order of [`SUM_COLUMNS`]; zero, or null, if it adds none.
    fn values(&self) -> [Expr; SUMS] {
        let only = |those: Expr, then: Expr| -> Expr { Expr::case(those, then).into() };
        let one = |those: Expr| only(those, 1.into());
        let [completed, refused, abandoned] =
            ["completed", "refused", "abandoned"].map(|phase| one(Column::Phase.eq(phase)));
        let estimated = one(Column::MetersSource.eq("estimated"));
        let [
            input,
            cached_input,
            cache_write,
            audio_input,
            output,
            reasoning,
            audio_output,
            request,
            image,
        ] = METERS.map(|meter| meter.into_expr());
        let charge = Column::Charge.into_expr();
        let cost = only(self.is_costed(), Column::ProviderCost.into_expr());
        let is_excluded = self.is_excluded();
        // A run that may have had a cost, without a charge; or one whose charge at the gateway upstream was not
        // accepted.
        let is_exposed = Column::Phase
            .eq("refused")
            .or(Expr::cust(MAY_HAVE_RUN))
            .or(Expr::cust(HAS_REFUSED_CHARGE))
            .or(Column::Phase.eq("completed").and(is_excluded.clone()));
        let exposure = only(is_exposed, Column::Hold.into_expr());
        let excluded = one(is_excluded);
        let costed = one(self.is_costed());
        // Null without a cost: the cost is absent there, and so is the difference.
        let margin = charge.clone().sub(cost.clone());
        [
            completed,
            refused,
            abandoned,
            estimated,
            input,
            cached_input,
            cache_write,
            audio_input,
            output,
            reasoning,
            audio_output,
            request,
            image,
            charge,
            Column::Shortfall.into_expr(),
            zero(),
            exposure,
            excluded,
            costed,
            cost,
            margin,
        ]
    }

    fn grouped(&self, source: Source, sums: impl IntoIterator<Item = Expr>) -> SelectStatement {
        let mut select = Query::select();
        select
            .exprs(self.keys.iter().map(|by| source.key(self.dialect, *by)))
            .expr(wallet::Column::Currency.into_expr())
            .exprs(sums)
            // By place: an expression need not be the same one twice.
            .add_group_by((1..=self.keys.len().saturating_add(1)).map(at_place));
        select
    }

    fn join_wallets(&self, select: &mut SelectStatement, source: Source) {
        let UsageFilter { wallet, api_key, model, route } = self.filter;
        // Wallets come last in the join, whatever the planner estimates.
        select
            .cross_join(wallet::Entity)
            .and_where(wallet::Column::Id.into_expr().eq(source.column("wallet_id")));
        let ids = [
            ("wallet_id", wallet.map(|id| id.to_bytes())),
            ("api_key_id", api_key.map(|id| id.to_bytes())),
        ];
        for (name, id) in ids {
            if let Some(id) = id {
                select.and_where(source.column(name).eq(id.to_vec()));
            }
        }
        if let Some([after, up_to]) = self.wallets {
            let [after, up_to] = [after, up_to].map(|id| id.to_bytes().to_vec());
            select.and_where(source.column("wallet_id").gt(after));
            select.and_where(source.column("wallet_id").lte(up_to));
        }
        if let Some(model) = model {
            select.and_where(source.column("model").eq(model.as_str()));
        }
        if let Some(route) = route {
            select.and_where(source.route(self.dialect).eq(route.as_str()));
        }
    }
}

fn select(page: &mut SelectStatement, selection: &Selection) {
    match selection {
        Selection::Numbers(numbers) => {
            page.and_where(Column::Seq.gte(numbers.start))
                .and_where(Column::Seq.lt(numbers.end))
                .and_where(Expr::cust(IS_NOT_LATE));
        }
        Selection::Late => {
            page.and_where(Expr::cust(IS_LATE));
        }
        Selection::Listed(numbers) => {
            page.and_where(Column::Seq.is_in(numbers.iter().copied()));
        }
    }
}

/// An outer join: few operations have such a row.
fn join_excluded(page: &mut SelectStatement) {
    let of = Expr::cust("excluded_costs.op_seq = operations.seq");
    page.join(JoinType::LeftJoin, Alias::new("excluded_costs"), of);
}

fn refunds_of(page: &mut SelectStatement, postings: &Range<i64>) {
    page.and_where(Column::Id.into_expr().eq(posting::Column::OperationId.into_expr()))
        .and_where(posting::Column::Kind.eq("refund"))
        .and_where(posting::Column::Seq.gte(postings.start))
        .and_where(posting::Column::Seq.lt(postings.end));
}

fn finished_in(page: &mut SelectStatement, finished: &Range<i64>) {
    page.and_where(Column::FinishedAt.gte(finished.start))
        .and_where(Column::FinishedAt.lt(finished.end));
}

fn at_place(place: usize) -> Expr {
    Expr::cust(place.to_string())
}

/// A sum over no rows.
fn zero() -> Expr {
    Expr::cust("CAST(0 AS bigint)")
}
