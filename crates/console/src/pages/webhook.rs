//! A webhook: its address, its kinds of events and its deliveries.

pub(crate) mod change;
pub(crate) mod settings;

use holdfast_domain::admin::webhook::{DeliveryRecord, DeliveryState};
use holdfast_domain::admin::{ResourceId, UseCase};

use crate::failure::Failure;
use crate::kit::{Cell, Facts, Page, Pages, Table, Tone, Visit};
use crate::pages::parts::reference::Names;
use crate::pages::parts::webhook::{kinds, opened, origin, state, wallet};

texts! { #[template(path = "pages/webhooks.txt")] WebhookText { NoDelivery = "no_delivery" } }

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let record = opened(&visit).await?;
    let (webhook, base) = (record.id, format!("/webhooks/{}", record.id));
    let pages = Pages::new(&visit, &base, &visit.query);
    let deliveries =
        visit.accounts().deliveries(visit.principal(), webhook, pages.request()?).await?;
    let names = Names::read(&visit, record.wallet.map(ResourceId::Wallet)).await?;
    let is_active = record.disabled.is_none();
    // A path or a query may carry the receiver's secret: only those who may change it see more
    // than its origin.
    let url =
        if visit.may(UseCase::WebhookUpdate) { record.url.0.clone() } else { origin(&record) };
    let rows = vec![
        ("State", state(&record)),
        ("Address", Cell::code(url)),
        ("Wallet", wallet(&record, &names, &visit.visitor)),
        ("Kinds", Cell::text(kinds(&record))),
        ("Description", Cell::some_text(record.description.as_deref())),
        ("Secret rotated", Cell::some_moment(record.secret.generations.rotated_at)),
        ("Created", Cell::moment(record.created_at)),
        ("Created by", Cell::code(record.created_by)),
        ("Id", Cell::code(record.id)),
    ];
    let next = pages.next(deliveries.next)?;
    let may_resend = visit.may(UseCase::WebhookResend) && is_active;
    let rows_of = deliveries.rows.iter().map(|row| delivery(row, &base, may_resend));
    let may = |use_case, is_now: bool| visit.may(use_case) && is_now;
    Ok(Page::new(format!("Webhook to {}", origin(&record)))
        .below("Webhooks", "/webhooks")
        .action(may(UseCase::WebhookTest, is_active), "Send a test", format!("{base}/test"))
        .action(may(UseCase::WebhookUpdate, true), "Edit", format!("{base}/edit"))
        .action(may(UseCase::WebhookRotate, true), "Rotate the secret", format!("{base}/rotate"))
        .danger(may(UseCase::WebhookDisable, is_active), "Disable", format!("{base}/disable"))
        .action(may(UseCase::WebhookEnable, !is_active), "Enable", format!("{base}/enable"))
        .section(Facts::new("", rows))
        .section(
            Table::of("Deliveries", rows_of, WebhookText::NoDelivery)
                .keep(&["State", "Last answer"])
                .next(next),
        ))
}

fn delivery(record: &DeliveryRecord, base: &str, may_resend: bool) -> [(&'static str, Cell); 7] {
    let tone = match record.state {
        DeliveryState::Pending => Tone::Plain,
        DeliveryState::Delivered => Tone::Good,
        DeliveryState::Dead => Tone::Bad,
    };
    let result = record.last_result.as_deref().map(|result| result.replace('_', " "));
    let result = match (result, record.last_status) {
        (Some(result), Some(status)) => Cell::text(format!("{result} ({status})")),
        (Some(result), None) => Cell::text(result),
        (None, _) => Cell::Nothing,
    };
    let again = if may_resend {
        Cell::action("Send again", format!("{base}/deliveries/{}/resend", record.event))
    } else {
        Cell::Nothing
    };
    [
        ("Event", Cell::link(record.kind.as_ref(), format!("/events/{}", record.event))),
        ("State", Cell::badge(record.state.label(), tone)),
        ("Attempts", Cell::count(record.tries)),
        ("Last answer", result),
        ("Created", Cell::moment(record.created_at)),
        ("Next or ended", Cell::some_moment(record.next_at.or(record.finished_at))),
        ("Again", again),
    ]
}
