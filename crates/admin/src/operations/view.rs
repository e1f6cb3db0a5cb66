//! Operations in answers, without their requests and results.
//!
//! | role | hidden |
//! |---|---|
//! | owner, operator, finance, auditor | none |
//! | support | costs |
//! | holders | costs, routes and nodes |
//!
//! A hidden member is absent, and not null: a null cost means an unknown one. One place ([`Sight`]) decides that
//! for each role, so that a list and a single operation cannot differ.
//!
//! Never in a view: a prompt, a text of a result, a credential.

use std::collections::BTreeMap;

use holdfast_accounts::OperationRecord;
use holdfast_domain::Micros;
use holdfast_domain::admin::Role;
use holdfast_domain::admin::listing::OperationListing;
use holdfast_domain::operation::{Attempt, Operation, Situation, situation};
use holdfast_domain::price::PriceLine;
use holdfast_domain::usage::UsageReason;
use serde::Serialize;
use utoipa::ToSchema;

use crate::value::Moment;

/// Parts of an operation that a role sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// All of it.
    Whole,
    /// All but what it cost the operator.
    WithoutCosts,
    /// Neither costs nor routes nor nodes.
    Holder,
}

impl Sight {
    pub(super) const fn of(role: Role) -> Self {
        match role {
            Role::Owner | Role::Operator | Role::Finance | Role::Auditor => Self::Whole,
            Role::Support => Self::WithoutCosts,
            Role::HolderAdmin | Role::HolderDeveloper | Role::HolderViewer => Self::Holder,
        }
    }
}

/// An operation, without its request and its answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Operation)]
pub(crate) struct OperationView {
    #[schema(format = "uuid")]
    id: String,
    /// The caller's `Idempotency-Key`.
    #[schema(format = "uuid")]
    idempotency_key: String,
    #[schema(format = "uuid")]
    api_key_id: String,
    /// Name of the API key, in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    api_key_name: Option<String>,
    #[schema(format = "uuid")]
    wallet_id: String,
    /// Computed from the status and its owner's lease: `not_started`, `in_progress`, `stale` or
    /// `completed`.
    situation: String,
    /// `leased`, `recorded`, `open`, `completed`, `refused` or `abandoned`.
    status: String,
    model: String,
    contract: u32,
    price_version: String,
    currency: String,
    /// Number of its hold.
    generation: u32,
    #[schema(format = "uuid")]
    hold_id: String,
    #[schema(format = "uuid")]
    usage_id: Option<String>,
    hold_micros: i64,
    /// Amount that the caller pays; null as long as it runs.
    charge_micros: Option<i64>,
    shortfall_micros: Option<i64>,
    refunded_micros: i64,
    /// Token counts by kind.
    meters: Option<BTreeMap<String, u64>>,
    meters_source: Option<String>,
    /// Ways in which the meters differ from the provider's report; empty if they are as reported.
    /// Not for holders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    usage_reasons: Option<Vec<&'static str>>,
    /// Lines of the price of the counted meters; only in a single operation, and none as long as it runs. Their sum
    /// is rounded up once: it is the charge and the shortfall together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    price_lines: Option<Vec<PriceLineView>>,
    created_at: Moment,
    finished_at: Option<Moment>,
    cancel_asked: bool,
    /// Cost of the run, as far as it is known. Not for support and holders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    provider_cost_micros: Option<Option<i64>>,
    /// Attempts at routes. Not for holders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    attempts: Option<Vec<AttemptView>>,
    /// Name of the node that ran it. Not for holders.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    node: Option<String>,
}

/// Line of a charge: its amount is `units` × `price_micros` / `per_units`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PriceLine)]
struct PriceLineView {
    kind: &'static str,
    units: u64,
    price_micros: u64,
    per_units: u64,
}

impl From<PriceLine> for PriceLineView {
    fn from(line: PriceLine) -> Self {
        Self {
            kind: line.kind.label(),
            units: line.units,
            price_micros: line.rate,
            per_units: if line.kind.per_million() { 1_000_000 } else { 1 },
        }
    }
}

/// Attempt at a route.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
struct AttemptView {
    route: String,
    class: String,
    latency_ms: u64,
    may_be_billed: bool,
    reason: Option<String>,
}

impl From<&Attempt> for AttemptView {
    fn from(attempt: &Attempt) -> Self {
        Self {
            route: attempt.route.to_string(),
            class: attempt.class.to_string(),
            // `as_millis` is a u128, and no latency reaches the end of a u64.
            latency_ms: u64::try_from(attempt.latency.as_millis()).unwrap_or(u64::MAX),
            may_be_billed: attempt.may_be_billed,
            reason: attempt.reason.as_deref().map(str::to_owned),
        }
    }
}

impl OperationView {
    /// An operation of a list.
    pub(super) fn listed(row: OperationListing, sight: Sight) -> Self {
        let situation = situation(&row.operation, row.lease.as_ref(), row.now);
        let beside = (row.refunded, row.late_cost);
        let view = Self::new(&row.operation, situation, beside, sight);
        Self { api_key_name: row.api_key_name, ..view }
    }

    /// View of a single operation.
    pub(super) fn shown(record: OperationRecord, sight: Sight) -> Self {
        let operation = &record.operation;
        let lines = operation.phase.usage().into_iter().flat_map(|usage| {
            let meters = &usage.metered.meters;
            operation.price.tariff.applied(meters).lines(meters).map(PriceLineView::from)
        });
        let price_lines = Some(lines.collect());
        let beside = (record.refunded, record.late_cost);
        let view = Self::new(operation, record.situation, beside, sight);
        Self { price_lines, ..view }
    }

    /// View of an operation with its refunds and the cost that came after its ending.
    fn new(
        operation: &Operation,
        situation: Situation,
        (refunded, late_cost): (Micros, Option<Micros>),
        sight: Sight,
    ) -> Self {
        let usage = operation.phase.usage();
        let charge = operation.phase.charge();
        // A cost that came after the ending has a row of its own: the operation's is final by then.
        let cost = usage.and_then(|usage| usage.metered.provider_cost).or(late_cost);
        let attempts = || operation.attempts.iter().map(AttemptView::from).collect();
        let node = || operation.owner.node.name.to_string();
        Self {
            id: operation.id.to_string(),
            idempotency_key: operation.request_key.to_string(),
            api_key_id: operation.api_key.to_string(),
            api_key_name: None,
            wallet_id: operation.wallet.to_string(),
            situation: situation.label().to_owned(),
            status: operation.phase.label().to_owned(),
            model: operation.model.to_string(),
            contract: operation.binding.terms.contract,
            price_version: operation.price.id.to_string(),
            currency: operation.price.currency.to_string(),
            generation: operation.generation,
            hold_id: operation.id.hold(operation.generation).to_string(),
            usage_id: usage.map(|_recorded| operation.id.usage().to_string()),
            hold_micros: operation.hold.get(),
            charge_micros: charge.map(Micros::get),
            // A caller that pays no charge has no shortfall either.
            shortfall_micros: usage.map(|usage| usage.shortfall).or(charge).map(Micros::get),
            refunded_micros: refunded.get(),
            meters: usage.map(|usage| {
                let meters = usage.metered.meters.iter();
                meters.map(|(kind, count)| (kind.label().to_owned(), count)).collect()
            }),
            meters_source: usage.map(|usage| usage.metered.source.label().to_owned()),
            usage_reasons: usage
                .filter(|_usage| sight != Sight::Holder)
                .map(|usage| usage.metered.reasons.iter().map(UsageReason::label).collect()),
            price_lines: None,
            created_at: Moment(operation.created_at),
            finished_at: operation.phase.finished_at().map(Moment),
            cancel_asked: operation.cancel_asked,
            // Two levels: absent for a role that sees no costs, null for an unknown cost. One of
            // the two forms for both would let a reader take an unknown cost for none.
            provider_cost_micros: (sight == Sight::Whole).then_some(cost.map(Micros::get)),
            attempts: (sight != Sight::Holder).then(attempts),
            node: (sight != Sight::Holder).then(node),
        }
    }
}
