//! An operation: what it is, what happened when, why it cost what it cost, and what a retry would get.
//!
//! Holders see neither routes nor nodes, and only those who see costs see what it cost the operator.

pub(crate) mod ending;
mod price_lines;

use holdfast_accounts::OperationRecord;
use holdfast_domain::Micros;
use holdfast_domain::admin::{ResourceId, UseCase};
use holdfast_domain::operation::{Attempt, Operation, Phase, Situation};

use crate::failure::Failure;
use crate::kit::{Cell, Facts, Notice, Page, Section, Table, Tone, Visit, Visitor};
use crate::pages::parts::operation::{opened, state};
use crate::pages::parts::posting;
use crate::pages::parts::reference::Names;

texts! { #[template(path = "pages/operation.txt")] OperationText<'a> {
    First = "first",
    Admitted { run: u32, held: &'a str } = "admitted",
    Ended { operation: &'a Operation, charge: &'a str } = "ended",
    Free { phase: &'a Phase } = "free",
    Retry { phase: &'a Phase, situation: Situation } = "retry",
} }

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let record = opened(&visit).await?;
    let operation = &record.operation;
    let base = format!("/operations/{}", operation.id);
    let is_running = matches!(operation.phase, Phase::Leased);
    let is_stuck = record.situation == Situation::Stale;
    // Once all of the charge is refunded, the form would refuse every amount.
    let is_charged = matches!(&operation.phase, Phase::Completed { usage, .. }
        if usage.charge > record.refunded);
    let may_cancel =
        visit.may(UseCase::OperationCancel) && (is_running || operation.phase == Phase::Open);
    let may_reconcile = visit.may(UseCase::OperationReconcile) && is_stuck;
    let may_refund = visit.may(UseCase::PostingRefund) && is_charged;
    let of = [ResourceId::Wallet(operation.wallet), ResourceId::ApiKey(operation.api_key)];
    let names = Names::read(&visit, of).await?;
    let page = Page::new(format!("Request {}", operation.id))
        .below("Requests", "/operations")
        .action(may_refund, "Refund", format!("{base}/refund"))
        .action(may_cancel, "Cancel", format!("{base}/cancel"))
        .action(may_reconcile, "Reconcile", format!("{base}/reconcile"))
        .section(facts(&record, &names, &visit.visitor))
        .section(timeline(&record, &visit.visitor));
    let page = page.section(price(&record));
    let retry = OperationText::Retry { phase: &operation.phase, situation: record.situation };
    Ok(page.section(Notice::new(Tone::Plain, retry.to_string())))
}

fn facts(record: &OperationRecord, names: &Names<'_>, visitor: &Visitor) -> Facts {
    let operation = &record.operation;
    let currency = operation.price.currency;
    let money = |amount| Cell::money(amount, currency);
    let refunded = if record.refunded > Micros::ZERO && visitor.may(UseCase::PostingRead) {
        let sum = crate::kit::money(record.refunded, currency);
        Cell::link(sum, posting::refunds_address(operation))
    } else {
        money(record.refunded)
    };
    let charge = operation.phase.charge();
    let usage = operation.phase.usage();
    let mut rows = vec![
        ("State", state(operation, record.situation)),
        ("Charge", charge.map_or(Cell::Nothing, money)),
        ("Refunded", refunded),
        ("Hold", money(operation.hold)),
        ("Model", Cell::text(operation.model.as_str())),
        ("Wallet", names.link(ResourceId::Wallet(operation.wallet))),
        ("API key", names.link(ResourceId::ApiKey(operation.api_key))),
        ("Began", Cell::moment(operation.created_at)),
        ("Ended", Cell::some_moment(operation.phase.finished_at())),
    ];
    if let Some(usage) = usage {
        rows.push(("Meters", Cell::text(usage.metered.source.label())));
        let reasons = usage.metered.reasons;
        if !reasons.is_empty() && visitor.principal.sees_routes() {
            rows.push(("Report differs in", Cell::text(reasons.to_string())));
        }
    }
    if visitor.principal.sees_costs() {
        let cost = record.provider_cost();
        rows.push(("Cost to you", cost.map_or_else(|| Cell::text("not known"), money)));
    }
    if visitor.principal.sees_routes() {
        rows.push(("Node", Cell::text(operation.owner.node.name.as_str())));
    }
    rows.extend([
        ("Price version", Cell::code(&operation.price.id)),
        ("Request key", Cell::code(operation.request_key)),
        ("Id", Cell::code(operation.id)),
    ]);
    Facts::new("", rows)
}

/// The timeline, in the order of time. Attempts have no moments of their own.
fn timeline(record: &OperationRecord, visitor: &Visitor) -> Table {
    let operation = &record.operation;
    let currency = operation.price.currency;
    let shows_routes = visitor.principal.sees_routes();
    let event = |at: Option<_>, what: String| {
        let mut row = vec![Cell::some_moment(at), Cell::text(what)];
        if shows_routes {
            row.extend([Cell::Nothing, Cell::Nothing, Cell::Nothing, Cell::Nothing]);
        }
        row
    };
    let held = crate::kit::money(operation.hold, currency);
    let mut rows = Vec::new();
    if operation.generation > 1 {
        rows.push(event(Some(operation.created_at), OperationText::First.to_string()));
    }
    let admitted = OperationText::Admitted { run: operation.generation, held: &held };
    rows.push(event(Some(operation.admitted_at), admitted.to_string()));
    if shows_routes {
        rows.extend(operation.attempts.iter().map(attempt));
    }
    if operation.cancel_asked {
        rows.push(event(None, "cancellation requested".to_owned()));
    }
    let charge = operation.phase.charge().unwrap_or(Micros::ZERO);
    let charge = crate::kit::money(charge, currency);
    let ended = OperationText::Ended { operation, charge: &charge }.to_string();
    if !ended.is_empty() {
        rows.push(event(operation.phase.finished_at(), ended));
    }
    let head: &[&str] = if shows_routes {
        &["When", "What", "Route", "Proof", "Took", "May be billed"]
    } else {
        &["When", "What"]
    };
    Table::new("Timeline", head, rows, "")
}

fn attempt(attempt: &Attempt) -> Vec<Cell> {
    let proof = match &attempt.reason {
        Some(reason) => format!("{}: {reason}", attempt.class),
        None => attempt.class.to_string(),
    };
    let billed = if attempt.may_be_billed {
        Cell::badge("yes", Tone::Warning)
    } else {
        Cell::badge("no", Tone::Plain)
    };
    vec![
        Cell::Nothing,
        Cell::text("attempt"),
        Cell::text(attempt.route.as_ref()),
        Cell::text(proof),
        Cell::Number(format!("{} ms", attempt.latency.as_millis())),
        billed,
    ]
}

/// The charge, explained.
fn price(record: &OperationRecord) -> Section {
    let operation = &record.operation;
    match &operation.phase {
        Phase::Recorded(usage) | Phase::Completed { usage, .. } => {
            price_lines::table(&operation.price, usage).into()
        }
        phase @ (Phase::Leased | Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. }) => {
            Notice::new(Tone::Plain, OperationText::Free { phase }.to_string()).into()
        }
    }
}
