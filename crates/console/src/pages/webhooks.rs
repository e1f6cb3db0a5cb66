//! Webhooks: receivers of events, of one wallet or of all wallets.
//!
//! The whole address is shown to those who may change it: it may carry a secret of its receiver. Others see its origin.

use holdfast_domain::admin::{ResourceId, UseCase, WebhookRecord};

use crate::failure::Failure;
use crate::kit::{Cell, Filter, Page, Pages, Table, Visit, Visitor};
use crate::pages::parts::reference::{self, Names, wallet_field};
use crate::pages::parts::webhook::{kinds, origin, state, wallet};

texts! { #[template(path = "pages/webhooks.txt")] WebhooksText { Empty = "empty" } }

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let page = Page::new("Webhooks").form(&visit, UseCase::WebhookCreate, "/webhooks/new");
    let found = found(&visit).await;
    match wallet_field(&visit).await? {
        Some(field) => {
            let filter = Filter::new("/webhooks", vec![field]);
            page.narrowed(filter, found.map(|table| vec![table.into()]))
        }
        None => Ok(page.section(found?)),
    }
}

async fn found(visit: &Visit) -> Result<Table, Failure> {
    let wallet = reference::wallet(visit, &visit.query).await?;
    let pages = Pages::new(visit, "/webhooks", &visit.query);
    let listed = visit.accounts().webhooks(visit.principal(), wallet, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    let wallets = listed.rows.iter().filter_map(|record| record.wallet.map(ResourceId::Wallet));
    let names = Names::read(visit, wallets).await?;
    let rows = listed.rows.iter().map(|record| row(record, &names, &visit.visitor));
    Ok(Table::of("Newest first", rows, WebhooksText::Empty).next(next))
}

fn row(record: &WebhookRecord, names: &Names<'_>, visitor: &Visitor) -> [(&'static str, Cell); 5] {
    [
        ("To", Cell::link(origin(record), format!("/webhooks/{}", record.id))),
        ("State", state(record)),
        ("Wallet", wallet(record, names, visitor)),
        ("Kinds", Cell::text(kinds(record))),
        ("Created", Cell::moment(record.created_at)),
    ]
}
